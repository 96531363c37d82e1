"""The answer as clients see it: the one schema of the REST API, the Python client and MCP, texts in one language.

`kb.serialization` encodes and decodes these. A field added later needs a default: clients use it for answers of
older services.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal

from trainmedic.kb.model import case
from trainmedic.kb.model.environment import OptionChange, SourceComparison, VersionChange
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import (
    FindingView,
    HorizonView,
    MissingView,
    Number,
    ReceiptView,
    RunView,
    SignalView,
)
from trainmedic.kb.serialization import OpenChoice
from trainmedic.kb.threads.thread import Quote

Verdict = Annotated[case.Verdict, OpenChoice()]
Confidence = Annotated[case.Confidence, OpenChoice()]
Language = Annotated[Literal["en", "zh"], OpenChoice()]
Mode = Annotated[Literal["llm", "deterministic"], OpenChoice()]
Level = Annotated[case.Level, OpenChoice()]
CauseOrigin = Annotated[Literal["known", "model"], OpenChoice()]
CauseSupport = Annotated[Literal["proven", "supported", "unproven"], OpenChoice()]
State = Annotated[Literal["holds", "does_not_hold", "open"], OpenChoice()]
CitationKind = Annotated[Literal["case", "rule", "input"], OpenChoice()]
Effect = Annotated[
    Literal["silent", "hang", "crash", "save", "resume", "memory", "slow", "log"],
    OpenChoice(),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefutationView:
    """A common but wrong remedy or claim, and why it does not help."""

    claim: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismRef:
    """The mechanism that a cause belongs to."""

    id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseView:
    """One candidate cause. ``score`` is the calibrated probability (0 to 1) that it is the right one.

    ``level`` says how much it commits to. The ``case_id`` of a mechanism is its id, that of an origin
    ``mechanism.origin``. The ``fix`` of a mechanism lists the changes for the origins that are left, likeliest first.
    ``origin`` is ``model`` for a cause that no page has; its ``case_id`` is then ``model-1`` and the like. ``support``
    says what the program could prove of it, ``lines`` are the places that it rests on.
    """

    rank: int
    case_id: str
    title: str
    cause: str
    fix: str
    confidence: Confidence
    score: float
    evidence_grade: str
    cases: tuple[str, ...]
    findings: tuple[str, ...]
    refutations: tuple[RefutationView, ...]
    why: tuple[str, ...] = ()
    level: Level = "case"
    mechanism: MechanismRef | None = None
    origin: CauseOrigin = "known"
    support: CauseSupport = "supported"
    lines: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementView:
    """Something that speaks for or against a cause, with the places where it was read."""

    text: str
    evidence: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentialNode:
    """A mechanism, an origin or a case among the considered causes, with what it comes from as ``nodes``.

    ``probability`` includes that of ``nodes``. ``state`` says of an origin whether its condition holds in the pasted
    text. ``missing`` are facts that would decide it.
    """

    id: str
    level: Level
    title: str
    probability: float
    supports: tuple[StatementView, ...] = ()
    contradicts: tuple[StatementView, ...] = ()
    excluded_by: tuple[StatementView, ...] = ()
    state: State | None = None
    missing: tuple[MissingView, ...] = ()
    nodes: tuple[DifferentialNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedView:
    """A mechanism that would produce an observed symptom, but that the evidence excludes."""

    id: str
    title: str
    excluded_by: tuple[StatementView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentialView:
    """The considered causes as a tree: mechanisms, their origins, the cases of these; causes without a mechanism beside
    them. Most probable first. ``other`` is the probability that it is something else."""

    nodes: tuple[DifferentialNode, ...] = ()
    other: float = 1.0
    excluded: tuple[ExcludedView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """The target of a marker such as ``[1]`` in the answer."""

    marker: int
    kind: CitationKind
    id: str
    title: str
    url: str | None = None
    quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesView:
    """A logged metric over the run, downsampled: ``steps`` and ``values`` have the same length.

    Steps are the log's own; else its lines, or the numbers of its rows from 1 where one line has several: ``unit`` is
    step, line or row. ``marked`` is the step at which a failure shows, or None. ``lines`` are the points' lines in the
    log, ``hidden`` the positions of those whose 0 was printed for a NaN.
    """

    name: str
    attachment: str | None
    steps: tuple[int, ...]
    values: tuple[Number, ...]
    marked: int | None = None
    lines: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()
    unit: str = "step"

    @property
    def points(self) -> tuple[tuple[int, float], ...]:
        """(step, value) in order; values may be non-finite."""
        return tuple(zip(self.steps, self.values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the answer's text; all sections joined by blank lines are the text.

    ``kind`` identifies the part, independent of the language; clients skip unknown kinds. ``body`` is Markdown without
    the heading. A section without a heading continues the one before it. ``items`` are the entries of a list or the
    lines of the receipt, without details; ``markers`` the citations in the body. ``folded``: a detail that a channel
    may show on demand; such sections are the last ones.
    """

    kind: str
    heading: str = ""
    body: str
    items: tuple[str, ...] = ()
    markers: tuple[int, ...] = ()
    folded: bool = False

    @property
    def markdown(self) -> str:
        return f"### {self.heading}\n\n{self.body}" if self.heading else self.body


def texts(sections: Iterable[Section]) -> list[str]:
    """The text of each; what goes on behind a fold has its heading once."""
    sections = tuple(sections)
    headings = ("", *(section.heading for section in sections))
    pairs = zip(sections, headings, strict=False)
    return [section.body if section.heading == before else section.markdown for section, before in pairs]


def markdown(sections: Iterable[Section]) -> str:
    """One text."""
    return "\n\n".join(texts(sections))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step of an investigation: the tool, what it was asked in the reader's words, and the result."""

    number: int
    tool: str
    what: str
    arguments: Mapping[str, str]
    result: str
    ok: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DefectView:
    """A known defect of an installed package.

    ``version`` is the installed one, ``affected`` the range of releases with the defect. ``doubts`` say why it may not
    be there: ``condition`` (the configuration decides; ``missing`` asks for it), ``named`` (only a name in the log
    speaks for it), ``version``, ``distant``, ``newer`` (than the defects are known of, so the fix may be in it),
    ``framework``.
    """

    id: str
    package: str
    version: str
    title: str
    effect: Effect
    affected: str
    introduced: str | None
    fixed: str | None
    certain: bool
    doubts: tuple[str, ...] = ()
    missing: tuple[MissingView, ...] = ()
    workaround: str = ""
    link: str = ""
    source: str = ""  # release, file and name of the fix in the package, where ``link`` leads to no change of it
    mechanism: str = ""
    evidence: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainderView:
    """A defect that no change of versions clears, and why: ``unreleased``, ``constraint``, ``trade``, ``version``."""

    defect: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageChangeView:
    """A package that two environments have in different versions; ``kind``: upgraded, downgraded, added, removed,
    changed."""

    package: str
    good: str | None
    bad: str | None
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """A failing environment against one that works. ``defects`` are ids of defects that only the failing one has, those
    that the pasted text speaks of first."""

    packages: tuple[PackageChangeView, ...] = ()
    defects: tuple[str, ...] = ()
    options: tuple[OptionChange, ...] = ()
    source: tuple[SourceComparison, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """The response of ``/v1/audit`` and ``trainmedic audit --format json``.

    ``packages`` are the versions that were read of packages with known defects. ``patch`` makes the ``changes`` in the
    requirement files among the input. ``horizon``: the packages in releases beyond what is known, of which a lack of
    defects says nothing.
    """

    defects: tuple[DefectView, ...]
    changes: tuple[VersionChange, ...]
    left: tuple[RemainderView, ...]
    packages: Mapping[str, str]
    receipt: ReceiptView
    patch: str = ""
    failures: tuple[str, ...] = ()
    compare: ComparisonView | None = None
    horizon: tuple[HorizonView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """A rule's finding or a cause that a follow-up changed."""

    id: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesView:
    """A follow-up against the answer before it: findings that cleared, that are new and that are left, and the causes
    that are ruled out because their fix was tried."""

    cleared: tuple[ChangeView, ...] = ()
    new: tuple[ChangeView, ...] = ()
    left: tuple[ChangeView, ...] = ()
    ruled_out: tuple[ChangeView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePlaceView:
    """The code that prints a message, in the last release read that has it. ``url`` is None if that has no tag."""

    file: str
    line: int
    function: str
    release: str
    url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionValueView:
    """The value of a name in a message's condition: printed there (``evidence`` None), or an option of the run."""

    name: str
    value: str
    evidence: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceView:
    """Known advice about a message. Texts are empty where ``cases`` say more."""

    meaning: str
    change: str
    no_help: str
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """An error message or warning of the pasted text that a framework's source has.

    ``kind`` is the exception, ``assert``, ``warning``, ``error`` or ``print``. ``text`` says in words which code prints
    it and when. ``whole`` is False if only the message's beginning was pasted. ``in_version`` says whether the releases
    with the message include the pasted version, None if that is unknown. ``others`` are packages with the same message.
    """

    package: str
    kind: str
    template: str
    evidence: Span
    place: MessagePlaceView
    condition: str
    values: tuple[ConditionValueView, ...]
    text: str
    first_release: str
    last_release: str
    version: str | None = None
    in_version: bool | None = None
    advice: AdviceView | None = None
    others: tuple[str, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesView:
    """The response of ``/v1/messages/explain`` and ``trainmedic explain --json``: messages that end the run first."""

    messages: tuple[MessageView, ...]
    receipt: ReceiptView


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarView:
    """A report of someone else that is like the question: ingested, not reviewed. ``likeness`` is from 0 to 1.

    ``resolution`` is empty and ``resolved_by`` None if no one said there what resolved it. ``versions`` maps package →
    version.
    """

    id: str
    source: str
    title: str
    url: str | None
    symptom: tuple[Quote, ...]
    resolution: tuple[Quote, ...]
    resolved_by: str | None
    versions: Mapping[str, str]
    updated: str
    likeness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectView:
    """The effect of a difference between two runs. ``kind``: rule, defect, origin, default, removed, renamed.

    ``explains``: it produces a symptom that only the failing run shows.
    """

    kind: str
    id: str
    title: str
    fix: str = ""
    explains: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceView:
    """One thing that differs between two runs; ``kind``: run, setting (canonical), option (as written), package.

    A value is None on a side that does not have it or does not say. The sources say where a value without a place comes
    from, such as a default. ``concerned``: the first cause is about it.
    """

    kind: str
    name: str
    good: str | None
    bad: str | None
    good_source: str = ""
    bad_source: str = ""
    good_place: Span | None = None
    bad_place: Span | None = None
    effects: tuple[EffectView, ...] = ()
    concerned: bool = False

    @property
    def explains(self) -> bool:
        return self.concerned or any(effect.explains for effect in self.effects)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionInEffect:
    """One option of a run with its value. ``kind``: written, derived, computed (by code that does not tell the value),
    default, unknown. ``name`` is the framework's, ``setting`` the canonical one, ``part`` what takes it (empty: the
    framework itself), ``origin`` where the value comes from."""

    name: str
    value: object
    kind: str
    origin: str
    part: str = ""
    setting: str = ""
    span: Span | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostOption:
    """Something written without effect. ``kind``: overridden, dropped, refused, replaced, unused."""

    name: str
    value: object
    kind: str
    reason: str
    span: Span
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveView:
    """Settings that decide a run, an entry of ``trainmedic effective --json``. ``releases``: those whose defaults are
    stated; ``owners``: the classes or commands of the options; ``partial``: the configuration is cut, so there are
    no defaults."""

    framework: str
    algorithm: str
    releases: tuple[str, ...]
    transformers: str
    owners: tuple[str, ...]
    partial: bool
    rows: tuple[OptionInEffect, ...]
    lost: tuple[LostOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveReport:
    """The response of ``/v1/effective``: each run that the files configure."""

    runs: tuple[EffectiveView, ...]
    receipt: ReceiptView
    horizon: tuple[HorizonView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveView:
    """The first step from which a metric differs for good; ``whole``: they differ from their first common step."""

    metric: str
    step: int
    good: Number
    bad: Number
    whole: bool
    good_place: Span
    bad_place: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffView:
    """The response of ``/v1/diff`` and ``trainmedic diff --format json``: a failing run against one that works.

    ``differences`` that explain the symptom come first. ``signals``, ``findings`` and ``defects`` are those of the
    failing run alone.
    """

    differences: tuple[DifferenceView, ...]
    curves: tuple[CurveView, ...]
    signals: tuple[SignalView, ...]
    findings: tuple[FindingView, ...]
    defects: tuple[DefectView, ...]
    good: RunView
    bad: RunView
    good_receipt: ReceiptView
    bad_receipt: ReceiptView
    failures: tuple[str, ...] = ()
    horizon: tuple[HorizonView, ...] = ()
    source: tuple[SourceComparison, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRunsView:
    """The failing run of an answer against one that works: everything else in the answer is about the failing one.

    ``works`` and ``fails`` name the files of each run. ``series`` and ``receipt`` are those of the run that works.
    """

    works: tuple[str, ...]
    fails: tuple[str, ...]
    differences: tuple[DifferenceView, ...]
    curves: tuple[CurveView, ...]
    series: tuple[SeriesView, ...]
    receipt: ReceiptView


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The whole answer. ``answer`` is Markdown with citation markers, the same text as ``sections``; ``causes`` is
    ordered, best first. ``words_only``: it was searched for without vectors, because the index had none yet.
    ``effective`` has what was written and what follows from it, no defaults."""

    id: str
    conversation_id: str
    verdict: Verdict
    language: Language
    mode: Mode
    model: str | None
    answer: str
    causes: tuple[CauseView, ...]
    findings: tuple[FindingView, ...]
    citations: tuple[Citation, ...]
    missing: tuple[MissingView, ...]
    signals: tuple[SignalView, ...]
    run: RunView
    receipt: ReceiptView
    kb_version: str
    ruleset_version: str
    notices: tuple[str, ...] = ()
    usage: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    timings_ms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    trace_id: str = ""
    series: tuple[SeriesView, ...] = ()
    steps: tuple[StepView, ...] = ()
    sections: tuple[Section, ...] = ()
    differential: DifferentialView = field(default_factory=DifferentialView)
    changes: ChangesView | None = None
    defects: tuple[DefectView, ...] = ()
    messages: tuple[MessageView, ...] = ()
    similar: tuple[SimilarView, ...] = ()
    words_only: bool = False
    comparison: TwoRunsView | None = None
    horizon: tuple[HorizonView, ...] = ()
    effective: EffectiveView | None = None
