"""The effective settings of a run as rows: an option, its value, and where that comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Value

Kind = Literal["written", "derived", "computed", "default", "unknown"]
"""``computed``: by the framework's own code, in a way that its source does not tell. ``unknown``: a variable of the
shell, or a default that differs between the releases in question."""
Loss = Literal["overridden", "dropped", "refused", "replaced", "unused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One option. ``name`` is the framework's, ``setting`` the canonical name (empty: none).

    ``part`` is what takes it: empty for the framework itself, else deepspeed, accelerate, launcher, env or a class.
    ``span`` is where it was written, ``origin`` says in words where the value comes from.
    """

    name: str
    value: Value
    kind: Kind
    origin: str
    part: str = ""
    setting: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Something written that does not take effect, and why."""

    name: str
    value: Value
    kind: Loss
    reason: str
    span: Span
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """The options of a run: those written first, then what follows from others, then defaults.

    ``releases`` are those whose defaults are stated; none if nothing was read of the run's release. ``owners`` are the
    classes or commands that the options belong to. ``partial``: the configuration is cut, so defaults answer nothing.
    """

    framework: str = ""
    algorithm: str = ""
    releases: tuple[str, ...] = ()
    transformers: str = ""
    owners: tuple[str, ...] = ()
    partial: bool = False
    rows: tuple[Row, ...] = ()
    lost: tuple[Lost, ...] = ()


Outcome = tuple[bool, Value, str]
"""Whether the value is known, the value, and the place of the code that sets it."""
Outcomes = Mapping[str, Outcome]
