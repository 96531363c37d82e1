"""What the service answers, as frozen values. docs/api.md says what each field means.

Tolerant: fields that a newer service adds are ignored (`Answer.raw` still has them), and those that an older one lacks
have their defaults. `read` makes any of them from JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import MappingProxyType, NoneType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
RAW = "raw"
"""The field that holds the whole JSON object."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A stretch of what was sent: 1-based, the end column exclusive; ``attachment`` None is the question itself."""

    attachment: str | None = None
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1
    text: str = ""
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A fact that would decide something, and how to ask for it."""

    fact: str
    why: str = ""
    ask: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one rule found. ``patch`` is a unified diff of the text sent, or None."""

    rule_id: str
    title: str = ""
    severity: str = ""
    status: str = ""
    message: str = ""
    fix: str = ""
    patch: str | None = None
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[Missing, ...] = ()
    cases: tuple[str, ...] = ()
    concludes: str = "fault"
    clears: tuple[str, ...] = ()
    appears: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refutation:
    """What people try or say that does not help, and why."""

    claim: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A candidate cause. ``score`` is the probability, 0 to 1, that it is the right one."""

    rank: int
    case_id: str
    title: str = ""
    cause: str = ""
    fix: str = ""
    confidence: str = ""
    score: float = 0.0
    evidence_grade: str = ""
    cases: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    refutations: tuple[Refutation, ...] = ()
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """What a marker such as ``[1]`` points at."""

    marker: int
    kind: str = ""
    id: str = ""
    title: str = ""
    url: str | None = None
    quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Something the log or the question shows. ``value`` may be nan or infinite."""

    kind: str
    meaning: str = ""
    value: float | None = None
    step: int | None = None
    stated: bool = False
    evidence: Evidence = field(default_factory=Evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A logged metric: (step, value) in order, and the step at which a failure shows, or None."""

    name: str
    attachment: str | None = None
    points: tuple[tuple[int, float], ...] = ()
    marked: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of an investigation."""

    number: int
    tool: str = ""
    what: str = ""
    arguments: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    result: str = ""
    ok: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """A setting of the run under its canonical name: the value, and the user's own spelling."""

    value: Any = None
    key: str = ""
    default: bool = False
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """The run as the service understood it."""

    framework: str | None = None
    algorithm: str | None = None
    stage: str | None = None
    model: str | None = None
    model_family: str | None = None
    reasons: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    versions: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    settings: Mapping[str, RunSetting] = field(default_factory=lambda: NOTHING)
    runs: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What became of one input; ``name`` None is the question."""

    name: str | None = None
    kind: str = ""
    bytes: int = 0
    lines: int = 0
    read: bool = True
    truncated: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """How many secrets of one kind were masked."""

    kind: str
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that could not be read as it stands."""

    code: str
    message: str = ""
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What was read, masked, and not understood."""

    inputs: tuple[Input, ...] = ()
    masked: tuple[Masked, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The whole answer. Act on the first cause where ``verdict`` is ``answered``; ``raw`` is the JSON as it came."""

    id: str
    verdict: str
    answer: str
    conversation_id: str = ""
    language: str = "en"
    mode: str = ""
    model: str | None = None
    causes: tuple[Cause, ...] = ()
    findings: tuple[Finding, ...] = ()
    citations: tuple[Citation, ...] = ()
    missing: tuple[Missing, ...] = ()
    signals: tuple[Signal, ...] = ()
    run: TrainingRun = field(default_factory=TrainingRun)
    receipt: Receipt = field(default_factory=Receipt)
    series: tuple[Series, ...] = ()
    steps: tuple[Step, ...] = ()
    kb_version: str = ""
    ruleset_version: str = ""
    notices: tuple[str, ...] = ()
    usage: Mapping[str, int] = field(default_factory=lambda: NOTHING)
    timings_ms: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    trace_id: str = ""
    raw: Mapping[str, Any] = field(default_factory=lambda: NOTHING, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of a streamed text. The answer at the end of the stream replaces all of them."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the rules found in files of one run."""

    findings: tuple[Finding, ...] = ()
    run: TrainingRun = field(default_factory=TrainingRun)
    signals: tuple[Signal, ...] = ()
    receipt: Receipt = field(default_factory=Receipt)
    ruleset_version: str = ""
    failures: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=lambda: NOTHING, repr=False, compare=False)

    @property
    def fired(self) -> tuple[Finding, ...]:
        """The findings that are certain."""
        return tuple(finding for finding in self.findings if finding.status == "fired")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One case found."""

    case_id: str
    title: str = ""
    score: float = 0.0
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Cases found, best first."""

    hits: tuple[Hit, ...] = ()
    kb_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """One line of the list of cases."""

    id: str
    title: str = ""
    kind: str = ""
    family: str = ""
    frameworks: tuple[str, ...] = ()
    evidence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSummary:
    """One line of the list of rules."""

    id: str
    title: str = ""
    severity: str = ""
    status: str = ""
    frameworks: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDocument:
    """One case: its fields as they are kept, and its page."""

    case: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    markdown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDocument:
    """One rule: its summary with the condition, and its page."""

    rule: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    markdown: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """``ok``, ``degraded`` (something optional is down or a page failed) or ``unready``."""

    status: str
    cases: int = 0
    rules: int = 0
    failed_pages: tuple[str, ...] = ()
    down: Mapping[str, str] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """What is running."""

    trainmedic: str = ""
    kb_version: str = ""
    ruleset_version: str = ""
    index: str = ""


def read(kind: type[T], data: object) -> T:
    """A value of ``kind`` from JSON. Raises `ValueError`, `TypeError` or `KeyError` where that is something else."""
    return cast(T, _read(kind, data))


def _read(kind: Any, data: Any) -> Any:
    if kind is Any:
        return data
    if is_dataclass(kind):
        return _read_fields(cast(type, kind), data)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _read_tuple(parts, data)
    if origin is Mapping:
        return MappingProxyType({str(key): _read(parts[1], item) for key, item in _object(data).items()})
    if NoneType in parts:
        return None if data is None else _read(next(part for part in parts if part is not NoneType), data)
    if kind is bool and not isinstance(data, bool):
        raise TypeError(f"true or false, not {data!r}")
    if isinstance(data, dict | list) or data is None:
        raise TypeError(f"{kind.__name__}, not {type(data).__name__}")
    return kind(data)  # float("nan") among them: that is how the wire spells it


def _read_fields(kind: type, data: Any) -> Any:
    given = _object(data)
    values = {name: _read(type_, given[name]) for name, type_ in _types(kind) if name in given and name != RAW}
    if any(name == RAW for name, _ in _types(kind)):
        values[RAW] = MappingProxyType(given)
    return kind(**values)


def _read_tuple(parts: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise TypeError(f"a list, not {type(data).__name__}")
    if len(parts) == 2 and parts[1] is Ellipsis:
        return tuple(_read(parts[0], item) for item in data)
    return tuple(_read(part, item) for part, item in zip(parts, data, strict=True))


def _object(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TypeError(f"an object, not {type(data).__name__}")
    return data


@cache
def _types(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((each.name, hints[each.name]) for each in fields(kind))
