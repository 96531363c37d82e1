"""Responses of the REST API besides answers: search hits, lists, pages, health. The client decodes the same types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from trainmedic.kb.engine.mechanism import Mechanism
    from trainmedic.kb.engine.rule import Rule
    from trainmedic.kb.model.case import Case
    from trainmedic.kb.pages.case import CaseSet
    from trainmedic.service.ranking import retrieve
    from trainmedic.service.storage.history import Conversation, PastTurn


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One case found, and why."""

    case_id: str
    title: str
    score: float
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Search hits, best first."""

    hits: tuple[Hit, ...]
    kb_version: str

    @classmethod
    def of(cls, hits: Iterable[retrieve.Hit], cases: CaseSet, language: Literal["en", "zh"]) -> Hits:
        known = ((hit, cases.get(hit.case_id)) for hit in hits)
        return cls(
            hits=tuple(
                Hit(case_id=case.id, title=case.title.get(language), score=round(hit.score, 6), why=hit.why)
                for hit, case in known
                if case is not None
            ),
            kb_version=cases.version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """One line of the list of cases."""

    id: str
    title: str
    kind: str
    family: str
    frameworks: tuple[str, ...]
    evidence: str

    @classmethod
    def of(cls, case: Case, language: str) -> CaseSummary:
        return cls(
            id=case.id,
            title=case.title.get(language),
            kind=case.kind,
            family=case.family,
            frameworks=case.frameworks,
            evidence=case.evidence,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSummary:
    """One line of the list of rules."""

    id: str
    title: str
    severity: str
    status: str
    frameworks: tuple[str, ...]
    cases: tuple[str, ...]

    @classmethod
    def of(cls, rule: Rule, language: str) -> RuleSummary:
        return cls(
            id=rule.id,
            title=rule.title.get(language),
            severity=rule.severity.value,
            status=rule.status,
            frameworks=tuple(rule.applies.get("framework", ())),
            cases=rule.cases,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginSummary:
    """A possible origin of a mechanism. ``when`` is its condition, empty if no text can decide it."""

    id: str
    title: str
    fix: str
    when: str
    cases: tuple[str, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismSummary:
    """One line of the list of mechanisms. ``cases`` are those of its origins too."""

    id: str
    title: str
    family: str
    predicts: tuple[str, ...]
    origins: tuple[OriginSummary, ...]
    cases: tuple[str, ...]

    @classmethod
    def of(cls, mechanism: Mechanism, language: str) -> MechanismSummary:
        return cls(
            id=mechanism.id,
            title=mechanism.title.get(language),
            family=mechanism.family,
            predicts=mechanism.predicts,
            origins=tuple(
                OriginSummary(
                    id=f"{mechanism.id}.{origin.id}",
                    title=origin.title.get(language),
                    fix=origin.fix.get(language),
                    when=origin.text,
                    cases=origin.cases,
                    rules=origin.rules,
                )
                for origin in mechanism.origins
            ),
            cases=mechanism.all_cases,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismPage:
    """A page of the list of mechanisms."""

    items: tuple[MechanismSummary, ...]
    total: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismDocument:
    """One mechanism: its summary and its page as Markdown."""

    mechanism: MechanismSummary
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePage:
    """A page of the list of cases."""

    items: tuple[CaseSummary, ...]
    total: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePage:
    """A page of the list of rules."""

    items: tuple[RuleSummary, ...]
    total: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDocument:
    """One case: its fields and its page as Markdown."""

    case: Mapping[str, Any]
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDocument:
    """One rule: its summary with the condition, and its page as Markdown."""

    rule: Mapping[str, Any]
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummary:
    """One line of the list of conversations. Times are ISO 8601; ``answer_id`` is the last answer's."""

    id: str
    title: str
    turns: int
    started: str
    last: str
    answer_id: str

    @classmethod
    def of(cls, conversation: Conversation) -> ConversationSummary:
        return cls(
            id=conversation.id,
            title=conversation.title,
            turns=conversation.turns,
            started=conversation.started.isoformat(timespec="seconds"),
            last=conversation.last.isoformat(timespec="seconds"),
            answer_id=conversation.answer_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationPage:
    """A page of the list of conversations."""

    items: tuple[ConversationSummary, ...]
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTurn:
    """One question of a conversation; ``files`` are the names of what was attached, ``asked`` is ISO 8601."""

    question: str
    files: tuple[str, ...]
    asked: str
    answer_id: str
    verdict: str
    causes: tuple[str, ...]

    @classmethod
    def of(cls, turn: PastTurn) -> ConversationTurn:
        return cls(
            question=turn.question,
            files=turn.files,
            asked=turn.asked.isoformat(timespec="seconds"),
            answer_id=turn.answer_id,
            verdict=turn.verdict,
            causes=turn.causes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDocument:
    """The turns of one conversation, oldest first, from ``offset``."""

    id: str
    items: tuple[ConversationTurn, ...]
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackReceipt:
    """The feedback as stored."""

    answer_id: str
    reaction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """``ok``, ``degraded`` (something optional is down or a page failed) or ``unready``.

    ``index`` is ``ready``, or ``building`` while answers search by words only; ``embedded_percent`` says how far it is.
    ``model`` says in words what the model is used for and what its endpoint can do; null if there is none, or it is
    down.
    """

    status: str
    cases: int
    rules: int
    failed_pages: tuple[str, ...]
    down: Mapping[str, str]
    model: str | None = None
    index: str = "ready"
    embedded_percent: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions of the program, the cases, the rules and the index."""

    trainmedic: str
    kb_version: str
    ruleset_version: str
    index: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedIndex:
    """The index in use; ``problem`` is why changed pages are not used, or null."""

    in_use: str
    kb_version: str
    ruleset_version: str
    problem: str | None
