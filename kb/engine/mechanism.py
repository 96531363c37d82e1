"""Mechanisms as the engine weighs them: what speaks for and against each, and which of its origins hold.

`kb.pages.mechanism` makes mechanisms of pages. Weighing is three-valued: what is not known speaks neither way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from trainmedic.kb.engine.expressions import Expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.values import UNKNOWN
from trainmedic.kb.model.case import Case, Level
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Reference, Text

STRONG, WEAK = "strong", "weak"
WEIGHTS: Mapping[str, float] = {STRONG: 1.0, WEAK: 0.5}
COMMONNESS: Mapping[str, float] = {"often": 1.0, "sometimes": 0.5, "rarely": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Something that can be observed, with what it says about the mechanism."""

    when: Expression
    text: str  # the condition as written
    says: Text
    weight: str = WEAK


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One thing that a mechanism comes from. Without ``when`` no paste can decide it. ``symptoms`` are users' words for
    this origin alone."""

    id: str
    title: Text
    fix: Text
    when: Expression | None = None
    text: str = ""  # the condition as written
    common: str = "sometimes"
    cases: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    symptoms: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    _states: dict[bool | None, OriginState] = field(default_factory=dict, init=False, repr=False, compare=False)

    def without_place(self, value: bool | None) -> OriginState:
        """Its state where nothing that was pasted shows it, made once: most origins of most questions have one."""
        if value not in self._states:
            self._states[value] = OriginState(origin=self, value=value)
        return self._states[value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """A physical process, whatever the framework. ``predicts`` are the signal kinds that it produces.

    ``cases`` are instances that belong to none of the origins. ``sections`` maps language → section name
    (cause, confirm) → Markdown.
    """

    id: str
    title: Text
    family: str
    predicts: tuple[str, ...]
    symptoms: Mapping[str, tuple[str, ...]]
    explains: tuple[Observation, ...]
    origins: tuple[Origin, ...]
    sections: Mapping[str, Mapping[str, str]]
    sources: tuple[Reference, ...]
    against: tuple[Observation, ...] = ()
    excludes: tuple[Observation, ...] = ()
    cases: tuple[str, ...] = ()

    @property
    def all_cases(self) -> tuple[str, ...]:
        """Its cases and those of its origins, each once."""
        return tuple(dict.fromkeys((*self.cases, *(case for origin in self.origins for case in origin.cases))))

    def section(self, name: str, language: str) -> str:
        """One section's Markdown in ``language`` (English for anything but ``zh``)."""
        return self.sections.get("zh" if language == "zh" else "en", {}).get(name, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismSet:
    """All mechanisms in the order of their ids, what could not be loaded, and the version of their texts."""

    mechanisms: tuple[Mechanism, ...] = ()
    failures: tuple[PageProblem, ...] = ()
    version: str = ""
    pages: Mapping[str, Page] = field(default_factory=dict)

    def get(self, mechanism_id: str) -> Mechanism | None:
        return next((mechanism for mechanism in self.mechanisms if mechanism.id == mechanism_id), None)

    def find(self, cause_id: str) -> tuple[Mechanism, Origin | None] | None:
        """The mechanism, and the origin if the id names one (see `origin_id`); None if there is no such cause."""
        name, _, origin_name = cause_id.partition(ORIGIN_SEPARATOR)
        mechanism = self.get(name)
        if mechanism is None or not origin_name:
            return (mechanism, None) if mechanism is not None else None
        origin = next((origin for origin in mechanism.origins if origin.id == origin_name), None)
        return (mechanism, origin) if origin is not None else None


GRADES: Mapping[str, str] = {
    "reproduction": "reproduced",
    "maintainer": "maintainer",
    "reporter": "reporter",
    "source": "source-read",
    "docs": "source-read",
}
"""The kind of a source → the evidence grade that it allows."""
ORIGIN_SEPARATOR = "."


def origin_id(mechanism: Mechanism, origin: Origin) -> str:
    """The id under which an origin is a cause of its own."""
    return f"{mechanism.id}{ORIGIN_SEPARATOR}{origin.id}"


def page_of(cause_id: str) -> str:
    """The id of the page that a cause is on: an origin's is its mechanism's."""
    return cause_id.partition(ORIGIN_SEPARATOR)[0]


def causes_of(mechanism: Mechanism) -> tuple[Case, ...]:
    """The mechanism and each of its origins as causes: what is answered where no case covers the incident."""
    says = {source.says for source in mechanism.sources}
    grade = next((grade for says_so, grade in GRADES.items() if says_so in says), "reported")

    def cause(level: Level, name: str, of: Mechanism | Origin, fix: Text, rules: tuple[str, ...]) -> Case:
        sections = {}
        for language in ("en", "zh"):
            parts = {"cause": mechanism.section("cause", language), "confirm": mechanism.section("confirm", language)}
            sections[language] = MappingProxyType({**parts, "fix": fix.get(language)})
        return Case(
            id=name,
            title=of.title,
            kind="fault",
            family=mechanism.family,
            frameworks=(),
            evidence=grade,
            reviewed="",
            sections=MappingProxyType(sections),
            sources=mechanism.sources,
            signals=mechanism.predicts,
            symptoms=of.symptoms,
            rules=rules,
            related=of.all_cases if isinstance(of, Mechanism) else of.cases,
            level=level,
        )

    fixes = Text(
        en="\n".join(f"- {origin.title.en}: {origin.fix.en}" for origin in mechanism.origins),
        zh="\n".join(f"- {origin.title.zh}：{origin.fix.zh}" for origin in mechanism.origins),
    )
    rules = tuple(dict.fromkeys(rule for origin in mechanism.origins for rule in origin.rules))
    return (
        cause("mechanism", mechanism.id, mechanism, fixes, rules),
        *(
            cause("origin", origin_id(mechanism, origin), origin, origin.fix, origin.rules)
            for origin in mechanism.origins
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """An observation that holds on this evidence, with the places where it was read."""

    says: Text
    weight: float
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginState:
    """An origin on this evidence. ``value``: its condition holds, does not, or cannot be told (None).

    ``spans`` are where a condition that holds was read.
    """

    origin: Origin
    value: bool | None
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """A mechanism on this evidence."""

    mechanism: Mechanism
    supports: tuple[Statement, ...]
    contradicts: tuple[Statement, ...]
    excluded_by: tuple[Statement, ...]
    origins: tuple[OriginState, ...]

    @cached_property
    def support(self) -> float:
        """The summed weight of what speaks for it."""
        return sum(statement.weight for statement in self.supports)

    @cached_property
    def contradiction(self) -> float:
        """The summed weight of what speaks against it."""
        return sum(statement.weight for statement in self.contradicts)


def weigh(mechanism: Mechanism, facts: Facts) -> Weighed:
    """A mechanism and its origins on the facts of one run."""
    return Weighed(
        mechanism=mechanism,
        supports=tuple(_holding(mechanism.explains, facts)),
        contradicts=tuple(_holding(mechanism.against, facts)),
        excluded_by=tuple(_holding(mechanism.excludes, facts)),
        origins=tuple(_state(origin, facts) for origin in mechanism.origins),
    )


def weigh_all(mechanisms: Iterable[Mechanism], facts: Facts) -> Mapping[str, Weighed]:
    """Every mechanism on the facts of one run, by id."""
    return {mechanism.id: weigh(mechanism, facts) for mechanism in mechanisms}


def _holding(observations: Iterable[Observation], facts: Facts) -> Iterator[Statement]:
    for observation in observations:
        if observation.when.holds(facts) is True:
            outcome = observation.when.explain(facts)
            spans = tuple(span for span in outcome.evidence if not span.default)
            yield Statement(says=observation.says, weight=WEIGHTS[observation.weight], spans=spans)


def _state(origin: Origin, facts: Facts) -> OriginState:
    value = UNKNOWN if origin.when is None else origin.when.holds(facts)
    if value is UNKNOWN or origin.when is None:
        return origin.without_place(None)
    if not value:
        return origin.without_place(False)
    spans = tuple(span for span in origin.when.explain(facts).evidence if not span.default)
    return OriginState(origin=origin, value=True, spans=spans)


def missing_facts(origin: Origin, facts: Facts) -> tuple[str, ...]:
    """The facts that would decide an origin that cannot be told."""
    return origin.when.explain(facts).missing if origin.when is not None else ()
