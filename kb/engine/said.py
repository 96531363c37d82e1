"""What some evidence says something about, as marks (see `kb.engine.silence`)."""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """What decides whether something absent is known to be absent.

    ``whole``: a whole configuration was given; ``deepspeed``: with its DeepSpeed file, if it names one. ``rows``: rows
    of metrics; ``log``: anything that a run printed.
    """

    whole: bool
    deepspeed: bool
    rows: bool
    log: bool


class Said(NamedTuple):
    """The marks of some evidence, and its shape."""

    marks: frozenset[str]
    shape: Shape
