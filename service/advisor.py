"""The interface that every channel calls: ask, check, audit, diff, explain and search over one body of knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType

from trainmedic.kb.effective.code import by_source
from trainmedic.kb.effective.table import effective
from trainmedic.kb.errors import StoreError
from trainmedic.kb.frameworks.horizon import packages_of
from trainmedic.kb.mask import mask
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.kb.model.report_view import ReportView
from trainmedic.kb.sources.compared import compared
from trainmedic.kb.sources.library import Library
from trainmedic.kb.stopwatch import Stopwatch
from trainmedic.service.answer.assemble import Asked, assemble
from trainmedic.service.answer.audit import audited
from trainmedic.service.answer.effective import effective_report
from trainmedic.service.answer.error_messages import explained
from trainmedic.service.answer.run_diff import diff_view
from trainmedic.service.answer.schema import Answer, AuditView, DiffView, EffectiveReport, MessagesView
from trainmedic.service.answer.views import report_view
from trainmedic.service.dialogue.query import build_query
from trainmedic.service.dialogue.request import Ask, safely_named
from trainmedic.service.dialogue.turn import Turn, turn_of
from trainmedic.service.dialogue.two_runs import of_failing_run
from trainmedic.service.observers.tracing import tracer
from trainmedic.service.pipeline import Draft, Pipeline
from trainmedic.service.ranking.features import Candidate, Context
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.retrieve import Hit, retrieve
from trainmedic.service.storage.memory import Memory


class Advisor:
    """Answers questions from one body of knowledge. Holds no state but the memory; safe to share between threads.

    The knowledge may be renewed at any moment. Whoever makes several calls for one answer makes them on a `snapshot`.
    """

    def __init__(
        self, knowledge: Knowledge, read: Read, memory: Memory | None = None, source: Library | None = None
    ) -> None:
        """``read`` reads all that is sent: whoever composes the service says in which process.

        Conversations go on from ``memory``; without one, nothing is remembered. ``source`` is that of the releases at
        hand; without it, none is.
        """
        self.source = source
        self.knowledge = knowledge
        self.read = read
        self.memory = memory or Memory()
        self.embedded_percent = 0
        """How much of the knowledge is embedded while its index has words only."""

    @property
    def pipeline(self) -> Pipeline:
        return Pipeline(self.knowledge, self.read, self.source)

    def snapshot(self) -> Advisor:
        """This advisor with the knowledge of now, whatever `renew` does later."""
        return copy(self)

    def renew(self, knowledge: Knowledge) -> None:
        """Answer from other knowledge from now on; calls that have begun end with what they began with."""
        self.knowledge = knowledge

    def ask(self, request: Ask, trace_id: str = "") -> Answer:
        """Answer one question without a model. Raises `InvalidRequest` if the request is empty."""
        draft = self.prepare(request, trace_id)
        return self.memory.remember(draft.asked, self.compose(draft))

    def prepare(self, request: Ask, trace_id: str = "") -> Draft:
        """Everything that an answer says; nothing is composed or stored yet. Raises `InvalidRequest` if the request is
        empty."""
        with tracer.start_as_current_span("diagnose", record_exception=False, set_status_on_exception=False) as span:
            request = request.validated()
            turns, recalled = self._earlier(request)
            draft = self.pipeline.draft(request, turns)
            causes = tuple(cause.case.id for cause in draft.diagnosis.causes)
            span.set_attribute("trainmedic.verdict", draft.diagnosis.verdict)
            span.set_attribute("trainmedic.causes", causes)
            for stage, milliseconds in draft.timings_ms.items():
                span.set_attribute(f"trainmedic.{stage}_ms", milliseconds)
        return replace(
            draft,
            trace_id=trace_id,
            recalled=recalled,
            embedded_percent=self.embedded_percent,
        )

    def compose(self, draft: Draft, asked: Asked | None = None) -> Answer:
        """The answer of a draft, with the time that this took."""
        watch = Stopwatch()
        answer = assemble(draft, asked)
        spent, times = watch.laps["total"], dict(draft.timings_ms)
        times |= {name: round(times.get(name, 0.0) + spent, 3) for name in ("compose", "total")}
        return replace(answer, timings_ms=MappingProxyType(times))

    def candidates(self, request: Ask) -> tuple[tuple[Candidate, ...], Context]:
        """Input of the ranking for one question: the candidates and what they share."""
        return self.pipeline.candidates(request.validated())

    def check(self, attachments: Sequence[Attachment], language: str = "en") -> ReportView:
        """Rules only: no retrieval, no model, nothing stored."""
        evidence = self.read("", safely_named(attachments))
        return report_view(evidence, self.pipeline.check(evidence), "zh" if language == "zh" else "en")

    def effective(self, attachments: Sequence[Attachment], language: str = "en") -> EffectiveReport:
        """Every option that decides the runs of these files. Nothing is stored."""
        evidence, source = self.read("", safely_named(attachments)), self.source
        for package in (packages_of(evidence.runs) or frozenset()) & evidence.versions.keys():
            fact = evidence.versions[package]
            if source is not None and fact.exact is not None:
                source.sources.order(package, fact.exact)
        initialise = by_source(source.derived.tree) if source is not None else None
        found = (effective(evidence, run, initialise) for run in evidence.runs if run.options)
        return effective_report(evidence, found, "zh" if language == "zh" else "en")

    def audit(
        self,
        attachments: Sequence[Attachment],
        language: str = "en",
        *,
        good: Sequence[Attachment] = (),
        question: str = "",
        with_possible: bool = False,
    ) -> AuditView:
        """The known defects of an environment; ``good`` lists the packages of one that works. Nothing is stored."""
        evidence = self.read(question, safely_named(attachments))
        versions = self.read("", safely_named(good)).versions if good else None
        defects = self.knowledge.audited.of(evidence.versions)
        source = compared(versions, evidence, self.source) if versions and self.source is not None else ()
        return audited(evidence, defects, language, with_possible=with_possible, good=versions, source=source)[0]

    def diff(self, good: Sequence[Attachment], bad: Sequence[Attachment], language: str = "en") -> DiffView:
        """A failing run against one that works. Nothing is stored."""
        pipeline = self.pipeline
        works, fails = (pipeline.side(attachments) for attachments in (good, bad))
        known = works.evidence.versions
        source = compared(known, fails.evidence, self.source) if self.source is not None else ()
        return diff_view(works, fails, pipeline.knowledge.mechanisms.mechanisms, language, source)

    def explain(self, text: str, attachments: Sequence[Attachment] = (), language: str = "en") -> MessagesView:
        """The error messages in a text and in files, explained; nothing is stored."""
        return explained(self.read(text, safely_named(attachments)), "zh" if language == "zh" else "en")

    def search(self, text: str, top_k: int = 10, filters: Mapping[str, str] | None = None) -> tuple[Hit, ...]:
        """The cases nearest to a text, with scores and why; causes of another level if ``filters`` name one."""
        evidence, known = self.read(text, ()), self.knowledge
        return retrieve(
            build_query(evidence, Report(), evidence.question, glossary=known.glossary),
            known.index,
            known.embedder,
            top_k=top_k,
            filters={"level": "case", **(filters or {})},
            cases=known.published,
            explain=True,
        )

    def case(self, case_id: str) -> Case | None:
        """A published case, or None."""
        return self.knowledge.published.get(case_id)

    def _earlier(self, request: Ask) -> tuple[tuple[Turn, ...], bool]:
        """The earlier turns, and whether all that are stored could be read."""
        unstored = tuple(turn_of(mask(text).text) for text in request.earlier)
        if request.conversation_id is None:
            return unstored, True
        try:
            turns = self.memory.turns(request.conversation_id, request.owner)
        except StoreError:
            return unstored, False
        failing = (replace(turn, attachments=of_failing_run(turn.question, turn.attachments)) for turn in turns)
        return (*failing, *unstored), True
