"""A filter before the conditions: one about which the evidence says nothing is not evaluated.

Most conditions read facts that a question does not mention. Evidence has marks (settings, options, packages, signals,
words of its text …), and so has each condition: those without which its facts are the same as on empty evidence of the
same `Shape`. If the two share no mark, the condition has the value that it has there. Without this, checking the rules
and weighing the mechanisms takes twice as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from trainmedic.kb.engine.facts import BATCH, RECOGNISED, Facts
from trainmedic.kb.engine.log_text import inner_words
from trainmedic.kb.engine.values import UNKNOWN, Key
from trainmedic.kb.frameworks.profiles import SETTINGS_OF_FILES
from trainmedic.kb.model.evidence import Evidence, Row
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Option, Origin, Region, RunConfig


class Shape(NamedTuple):
    """The properties that decide whether something absent is known to be absent.

    ``whole``: a whole configuration was given; ``beside``: with the files that its settings name. ``rows``: rows
    of metrics; ``log``: anything that a run printed.
    """

    whole: bool
    beside: bool
    rows: bool
    log: bool


class Said(NamedTuple):
    """The marks of some evidence, and its shape."""

    marks: frozenset[str]
    shape: Shape


ALWAYS = ":always"
"""The mark of facts that every evidence may say something about."""
SHAPES = tuple(Shape(*values) for values in product((False, True), repeat=len(Shape._fields)))
_OF_SETTING = frozenset({"written", "default_used"})
_OF_OPTION = frozenset({"option", "has_option", "option_has_value", "option_origin"})
_OF_SIGNAL = frozenset({"signal", "seen", "stated", "onset"})
_OF_METRIC = frozenset({"metric", "metric_first", "metric_max", "metric_min", "metric_abs_max", "has_metric"})
_OF_TRACEBACK = frozenset({"traceback", "in_traceback", "oom_in", "oom_size", "oom_frame"})
_NOWHERE = Span(attachment=None, line=1, column=1, end_line=1, end_column=1, text="")


def said_by(facts: Facts) -> Said:
    """The marks and the shape of the evidence, as to one of its runs."""
    return facts.once(__name__, lambda facts: Said(marks=frozenset(_marks(facts)), shape=_shape(facts)))


def marks_of(keys: Iterable[Key]) -> frozenset[str]:
    """The marks without which these facts are as on evidence that says nothing."""
    return frozenset(mark for key in keys for mark in _marks_of(key))


@cache
def empty(shape: Shape) -> Facts:
    """The facts of evidence of this shape that says nothing."""
    scopes = (*([""] if shape.whole else []), *(SETTINGS_OF_FILES if shape.beside else []))
    options = tuple(map(_option, scopes))
    run = RunConfig(id="run", options=options, partial=not shape.whole)
    rows = (Row(step=None, metrics={}, span=_NOWHERE),) if shape.rows else ()
    regions = (Region(kind="log", source=None, start_line=1, end_line=1),) if shape.log else ()
    return Facts(Evidence(runs=(run,), rows=rows, regions=regions))


def _option(scope: str) -> Option:
    return Option(
        key="", value=None, raw=None, span=_NOWHERE, key_span=_NOWHERE, value_span=None, origin=Origin.FLAG, scope=scope
    )


def _shape(facts: Facts) -> Shape:
    run, evidence = facts.run, facts.evidence
    scopes = {option.scope for option in run.options}
    return Shape(
        whole=bool(run.options) and not run.partial,
        beside=all(name in scopes or facts.name(setting).value is None for name, setting in SETTINGS_OF_FILES.items()),
        rows=bool(evidence.rows),
        log=facts.has_log,
    )


def _marks(facts: Facts) -> Iterator[str]:
    run, evidence = facts.run, facts.evidence
    yield ALWAYS
    yield from facts.haystack.words
    yield from (f"name:{name}" for name in run.settings)
    yield from (f"name:{name}" for name in RECOGNISED if getattr(run, name) is not None)
    yield from (f"name:{name}" for name in BATCH if facts.fact(("name", name)).value is not UNKNOWN)
    yield from (f"option:{name}" for name in facts.keys)
    yield from (f"version:{package}" for package in evidence.versions)
    yield from (f"signal:{signal.kind}" for signal in evidence.signals)
    yield from (f"metric:{name}" for row in evidence.rows for name in row.metrics)
    yield from (f"said:{concept}" for concept in facts.concepts)
    yield from (f"code:{flaw.name}" for flaw in evidence.flaws)
    if run.regions:
        yield from ("name:entry", "name:launcher")
    if evidence.rows:
        yield "rows:"
    if evidence.tracebacks:
        yield "traceback:"


def _marks_of(key: Key) -> Iterator[str]:
    kind, *arguments = key
    if kind == "name" or kind in _OF_SETTING:
        yield f"name:{arguments[0]}"
    elif kind in _OF_OPTION:
        yield f"option:{arguments[0].replace('-', '_')}"
    elif kind in ("version", "version_of", "pinned"):
        yield from (f"version:{package}" for package in (arguments[:2] if kind == "pinned" else arguments[:1]))
    elif kind in _OF_SIGNAL:
        yield f"signal:{arguments[0]}"
    elif kind in _OF_METRIC or kind == "all_finite":
        yield from ("rows:" if name.endswith("*") else f"metric:{name}" for name in arguments)
    elif kind == "said":
        yield from (f"said:{concept}" for concept in arguments)
    elif kind == "code":
        yield f"code:{arguments[0]}"
    elif kind in _OF_TRACEBACK:
        yield "traceback:"
    elif kind == "log_says":
        yield from (max(inner_words(text), key=lambda word: (len(word), word), default=ALWAYS) for text in arguments)
    else:
        yield ALWAYS
