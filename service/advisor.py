"""The answering pipeline: read, check the rules, understand, retrieve, rank, compose. Every channel calls it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Literal

from trainmedic.kb.comparison.run_diff import Side
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import FactBook
from trainmedic.kb.engine.mechanism import origin_id
from trainmedic.kb.engine.patches import Parse, patched, reread, unstarted, with_patches
from trainmedic.kb.error_messages.explain import MessageMatch, explain
from trainmedic.kb.errors import Forbidden, InvalidRequest, NotFound, StoreError
from trainmedic.kb.identities import identities_of, mask_identities
from trainmedic.kb.mask import mask
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment, Source
from trainmedic.kb.model.report import Finding, Report, Status
from trainmedic.kb.model.report_view import ReportView
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.serialization import to_json_once
from trainmedic.kb.stopwatch import Stopwatch
from trainmedic.kb.threads.thread import SimilarThread
from trainmedic.service.answer import Answer, AuditView, DefectView, MessagesView, SightingsView
from trainmedic.service.composition.audit import audited, defects_beside
from trainmedic.service.composition.diff_views import DiffView
from trainmedic.service.composition.error_messages import explained, with_messages
from trainmedic.service.composition.messages import messages
from trainmedic.service.composition.run_diff import diff_view, side_of, two_runs_view, with_comparison
from trainmedic.service.composition.similar import with_similar
from trainmedic.service.composition.template_answer import template_answer
from trainmedic.service.composition.views import report_view
from trainmedic.service.observers.observer import Observer
from trainmedic.service.observers.tracing import tracer
from trainmedic.service.question import conversation
from trainmedic.service.question.conversation import Message
from trainmedic.service.question.intent import Intent, Relation, understand
from trainmedic.service.question.query import Query, build_query
from trainmedic.service.question.request import Ask, safely_named
from trainmedic.service.question.two_runs import of_failing_run, two_runs
from trainmedic.service.ranking.candidates import candidates_of, context_of, impossible_defects
from trainmedic.service.ranking.diagnose import Diagnosis, diagnose
from trainmedic.service.ranking.features import Candidate, Context, findings_of, said_concepts, shown_by_log
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.reranked import Choice, reranked
from trainmedic.service.ranking.retrieve import Hit, retrieve
from trainmedic.service.ranking.similar import shown, similar_threads
from trainmedic.service.storage.curation import SeenCauseView, UnresolvedView, seen_views, unresolved_views
from trainmedic.service.storage.fingerprint import fingerprint
from trainmedic.service.storage.history import (
    Conversation,
    Feedback,
    History,
    PastTurn,
    StoredAnswer,
    Turn,
    storable,
    turn_of,
)
from trainmedic.service.what_if.apply import WhatIf, what_if, with_changes
from trainmedic.service.what_if.compare import Difference, difference

log = logging.getLogger("trainmedic.advisor")
CANDIDATES = 40
"""Causes that retrieval hands to ranking."""
COMPARED = (Relation.STILL_FAILING, Relation.CHANGED_EVIDENCE, Relation.PATCHED)
"""Messages whose answer begins with the difference to the previous one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAnswer:
    """One question as far as it can be answered without a model: ``answer`` is complete by itself.

    ``supposed`` is what the rules say of a change that the question only supposes, ``changes`` the difference to the
    previous answer. ``printed`` are messages of frameworks in the evidence, ``similar`` reports of others,
    ``cases`` the published cases. ``working`` are the texts of the run that works, if the files are of two runs.
    """

    request: Ask
    attachments: tuple[Attachment, ...]
    message: Message
    context: Context
    diagnosis: Diagnosis
    answer: Answer
    supposed: WhatIf | None = None
    changes: Difference | None = None
    printed: tuple[MessageMatch, ...] = ()
    similar: tuple[SimilarThread, ...] = ()
    cases: Mapping[str, Case] = field(default_factory=dict)
    working: tuple[Source, ...] = ()

    @property
    def earlier(self) -> tuple[Turn, ...]:
        """The earlier turns of the conversation that were read."""
        return self.message.turns


class Advisor:
    """Answers questions from one body of knowledge. Holds no state but the history; safe to share between threads.

    The knowledge may be renewed at any moment. Whoever makes several calls for one answer makes them on a `snapshot`.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        history: History | None = None,
        observers: Sequence[Observer] = (),
        read: Parse = parse,
    ) -> None:
        """``read`` reads what is sent: `kb.parse.pipeline.parse`, here or in another process."""
        self.knowledge = knowledge
        self.history = history
        self.embedded_percent = 0
        """How much of the knowledge is embedded while its index has words only."""
        self._observers = tuple(observers)
        self._read = read

    def snapshot(self) -> Advisor:
        """This advisor with the knowledge of now, whatever `renew` does later."""
        return copy(self)

    def renew(self, knowledge: Knowledge) -> None:
        """Answer from other knowledge from now on; calls that have begun end with what they began with."""
        self.knowledge = knowledge

    def ask(self, request: Ask, trace_id: str = "") -> Answer:
        """Answer one question without a model. Raises `InvalidRequest` if the request is empty."""
        advisor = self.snapshot()
        prepared = advisor.prepare(request, trace_id)
        return advisor.remember(prepared, prepared.answer)

    def prepare(self, request: Ask, trace_id: str = "", restated: str = "") -> PreparedAnswer:
        """The answer without a model, with everything that it rests on; nothing is stored yet.

        ``restated`` is the question in other words, searched for beside the user's own. Raises `InvalidRequest` if the
        request is empty.
        """
        with tracer.start_as_current_span("diagnose", record_exception=False, set_status_on_exception=False) as span:
            prepared = self.snapshot()._prepare(request, trace_id, restated)
            answer = prepared.answer
            span.set_attribute("trainmedic.verdict", answer.verdict)
            span.set_attribute("trainmedic.causes", [cause.case_id for cause in answer.causes])
            for stage, milliseconds in answer.timings_ms.items():
                span.set_attribute(f"trainmedic.{stage}_ms", milliseconds)
        return prepared

    def _prepare(self, request: Ask, trace_id: str, restated: str) -> PreparedAnswer:
        watch = Stopwatch()
        request = request.validated()
        turns, recalled = self._earlier(request)
        runs = two_runs(request.question, request.attachments)
        attachments = runs.fails if runs is not None else request.attachments
        message = conversation.read(request.question, attachments, turns, self.knowledge.glossary, self._read)
        if message.relation is Relation.STILL_FAILING and not turns[-1].verdict:
            turns = self._with_outcome(turns, request.top_k)
            message = conversation.read(request.question, attachments, turns, self.knowledge.glossary, self._read)
        watch.lap("parse")
        candidates, context = self._look_up(message, watch, restated)
        changes = self._changes(message, context, turns)
        if changes is not None:
            ruled_out = {cause_id for case in changes.ruled_out for cause_id in self._same_fix(case)}
            candidates = tuple(candidate for candidate in candidates if candidate.cause.id not in ruled_out)
        diagnosis = diagnose(candidates, context, self.knowledge.weights, request.top_k)
        intent = context.intent
        supposed = what_if(context.evidence, intent.changes, self.knowledge.rules) if intent.changes else None
        language = intent.language if request.language == "auto" else request.language
        version = self.knowledge.cases.version
        printed = explain(context.evidence)
        answer = template_answer(message, context, diagnosis, supposed, language, version, changes=changes)
        answer = with_messages(answer, printed, self.knowledge.published)
        answer = replace(answer, defects=self._defects(context.evidence, answer))
        similar = () if answer.verdict == "no_fault" else shown(context.similar)
        answer = with_similar(answer, similar)
        working = self._side(runs.works) if runs is not None else None
        if working is not None:
            failing = self._side_of(context.evidence, context.report)
            compared = two_runs_view(working, failing, self.knowledge.mechanisms.mechanisms, language)
            answer = with_comparison(answer, compared)
        watch.lap("compose")
        answer = replace(
            answer,
            notices=(*answer.notices, *self._notices(language, recalled=recalled)),
            words_only=self.knowledge.index.words_only,
            id=uuid.uuid4().hex,
            conversation_id=request.conversation_id or uuid.uuid4().hex,
            trace_id=trace_id,
            timings_ms=watch.laps,
            sightings=self._sightings(context.evidence, answer, request),
        )
        return PreparedAnswer(
            request=request,
            attachments=request.attachments,
            message=message,
            context=context,
            diagnosis=diagnosis,
            answer=answer,
            supposed=supposed,
            changes=changes,
            printed=printed,
            similar=similar,
            cases=self.knowledge.published,
            working=working.evidence.sources if working is not None else (),
        )

    def reordered(self, prepared: PreparedAnswer, choices: Sequence[Choice]) -> PreparedAnswer:
        """The answer with a model's valid choices first (see `service.ranking.reranked`): as many causes as before, and
        the same verdict."""
        context, previous = prepared.context, prepared.answer
        texts = (context.evidence.question, *(source.text for source in context.evidence.sources))
        # The model has seen them without the names of people and machines.
        known = identities_of(texts)
        lines = [line for text in texts for seen in (text, mask_identities(text, known)) for line in seen.splitlines()]
        differential = reranked(prepared.diagnosis.differential, choices, lines)
        causes = differential.causes[: len(prepared.diagnosis.causes)]
        diagnosis = replace(prepared.diagnosis, differential=differential, causes=causes)
        answer = template_answer(
            prepared.message,
            context,
            diagnosis,
            prepared.supposed,
            previous.language,
            previous.kb_version,
            changes=prepared.changes,
        )
        answer = with_similar(with_messages(answer, prepared.printed, prepared.cases), prepared.similar)
        answer = with_comparison(answer, previous.comparison)
        answer = replace(
            answer,
            id=previous.id,
            conversation_id=previous.conversation_id,
            trace_id=previous.trace_id,
            timings_ms=previous.timings_ms,
            notices=previous.notices,
            words_only=previous.words_only,
            defects=previous.defects,
            sightings=previous.sightings,
        )
        return replace(prepared, diagnosis=diagnosis, answer=answer)

    def candidates(self, request: Ask) -> tuple[tuple[Candidate, ...], Context]:
        """What ranking works on for one question: the candidates and what they share."""
        request = request.validated()
        advisor = self.snapshot()
        attachments = of_failing_run(request.question, request.attachments)
        message = conversation.read(request.question, attachments, (), advisor.knowledge.glossary, self._read)
        return advisor._look_up(message, Stopwatch())

    def check(self, attachments: Sequence[Attachment], language: str = "en") -> ReportView:
        """Rules only: no retrieval, no model, nothing stored."""
        evidence = self._read("", safely_named(attachments))
        return report_view(evidence, self._check(evidence), "zh" if language == "zh" else "en")

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
        evidence = self._read(question, safely_named(attachments))
        versions = self._read("", safely_named(good)).versions if good else None
        defects = self.knowledge.defects.of(evidence.versions)
        return audited(evidence, defects, language, with_possible=with_possible, good=versions)[0]

    def diff(self, good: Sequence[Attachment], bad: Sequence[Attachment], language: str = "en") -> DiffView:
        """A failing run against one that works. Nothing is stored."""
        works, fails = (self._side(attachments) for attachments in (good, bad))
        return diff_view(works, fails, self.knowledge.mechanisms.mechanisms, language)

    def _side(self, attachments: Sequence[Attachment]) -> Side:
        evidence = self._read("", safely_named(attachments))
        return self._side_of(evidence, self._check(evidence))

    def _side_of(self, evidence: Evidence, report: Report) -> Side:
        return side_of(evidence, report, self.knowledge.defects.of(evidence.versions))

    def explain(self, text: str, attachments: Sequence[Attachment] = (), language: str = "en") -> MessagesView:
        """What the error messages in a text and in files say; nothing is stored."""
        return explained(self._read(text, safely_named(attachments)), "zh" if language == "zh" else "en")

    def search(self, text: str, top_k: int = 10, filters: Mapping[str, str] | None = None) -> tuple[Hit, ...]:
        """The cases nearest to a text, with scores and why; causes of another level if ``filters`` name one."""
        evidence = self._read(text, ())
        advisor = self.snapshot()
        query = build_query(evidence, Report(), evidence.question, glossary=advisor.knowledge.glossary)
        known = advisor.knowledge
        return retrieve(
            query,
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

    def sightings(self, cause_id: str) -> SightingsView | None:
        """How many conversations of this service a cause, or the causes of a mechanism, came first in."""
        view = next((view for view in self.seen() if view.id == cause_id), None)
        return SightingsView(count=view.count, last=view.last) if view is not None else None

    def seen(self, language: Literal["en", "zh"] = "en") -> tuple[SeenCauseView, ...]:
        """How often each cause and mechanism was the answer here; nothing if no history is kept."""
        if self.history is None:
            return ()
        titles = {cause_id: cause.title.get(language) for cause_id, cause in self.knowledge.published.items()}
        places = self.knowledge.places
        return seen_views(
            self.history.sightings_of_causes(),
            titles,
            lambda cause_id: next((place.mechanism for place in places.get(cause_id, ())), ""),
        )

    def unresolved(self) -> tuple[UnresolvedView, ...]:
        """The questions that nobody was helped with, those alike as one; nothing if no history is kept."""
        if self.history is None:
            return ()

        def nearest(text: str) -> str:
            return next((hit.case_id for hit in self.search(text, 1)), "")

        return unresolved_views(self.history.unresolved(), self.knowledge.embedder.vectors, nearest)

    def answer(self, answer_id: str) -> StoredAnswer | None:
        """A stored answer with its conversation; None if it is unknown or no history is kept."""
        return self.history.stored_answer(answer_id) if self.history is not None else None

    def branch(self, answer_id: str, owner: str = "") -> str | None:
        """The conversation to go on with after an answer, as `History.branch` has it; None without a history."""
        return self.history.branch(answer_id, owner) if self.history is not None else None

    def conversations(self, owner: str, offset: int = 0, limit: int = 50) -> tuple[Conversation, ...]:
        """An owner's conversations, the latest first; nothing if no history is kept."""
        return self.history.conversations(owner, offset, limit) if self.history is not None else ()

    def past_turns(self, conversation_id: str, owner: str, offset: int = 0, limit: int = 50) -> tuple[PastTurn, ...]:
        """The turns of an owner's conversation, oldest first; empty beyond its end.

        Raises `NotFound` for a conversation that is unknown or somebody else's.
        """
        history = self.history
        turns = history.past_turns(conversation_id, owner, offset, limit) if history is not None else ()
        if not turns and (history is None or not history.past_turns(conversation_id, owner, limit=1)):
            raise NotFound("no such conversation")
        return turns

    def delete_conversation(self, conversation_id: str, owner: str | None) -> None:
        """Delete a conversation with everything made from it, as `History.delete` has it.

        Raises `NotFound` for one that is unknown or somebody else's.
        """
        deleted = self.history.delete(conversation_id, owner) if self.history is not None else ()
        if not deleted:
            raise NotFound("no such conversation")
        for observer in self._observers:
            observer.on_deletion(deleted)

    def give_feedback(self, feedback: Feedback, owner: str | None = None) -> None:
        """Store feedback about an answer of the owner's, or with None of anybody's.

        Raises `NotFound` for an unknown answer, and `Forbidden` for somebody else's.
        """
        if self.history is None:
            raise InvalidRequest("no history is kept, so feedback has nothing to refer to")
        if owner is not None and not self._is_of(feedback.answer_id, owner, self.history):
            raise Forbidden("only who asked may say whether the answer helped")
        # People paste into comments too: what is stored is masked, like everything else.
        reason, comment = (mask_identities(storable(text)) for text in (feedback.reason, feedback.comment))
        masked = replace(feedback, reason=reason, comment=comment)
        previous = self.history.feedback(feedback.answer_id)
        self.history.give_feedback(masked)
        if self._observers:
            stored = self.answer(feedback.answer_id)
            for observer in self._observers:
                observer.on_feedback(masked, previous, stored.answer if stored is not None else {})

    def _is_of(self, answer_id: str, owner: str, history: History) -> bool:
        """Whether an answer is the owner's; an unknown one is nobody else's."""
        stored = history.stored_answer(answer_id)
        if stored is None:
            return True
        # By the answer and not by its conversation alone: clients choose ids, and two owners may choose the same.
        conversation, offset = str(stored.answer["conversation_id"]), 0
        while turns := history.past_turns(conversation, owner, offset):
            if any(turn.answer_id == answer_id for turn in turns):
                return True
            offset += len(turns)
        return False

    def remember(self, prepared: PreparedAnswer, answer: Answer) -> Answer:
        """Store the turn with its final answer, and notify the observers.

        Returns the answer. It says so if the database cannot be reached: whoever asks in an outage has the answer.
        """
        try:
            self._store(prepared, answer)
        except StoreError as error:
            log.warning("an answer could not be stored: %s", error.hint)
            notice = messages("not_stored", answer.language)
            answer = replace(answer, notices=(*(n for n in answer.notices if n != notice), notice))
        for observer in self._observers:
            observer.on_answer(answer)
        return answer

    def _store(self, prepared: PreparedAnswer, answer: Answer) -> None:
        if self.history is not None:
            evidence = prepared.context.evidence
            names = {attachment.name for attachment in prepared.attachments}
            sources = {source.name: source for source in (*prepared.working, *evidence.sources)}
            turn = turn_of(
                evidence.question,
                [source for name, source in sources.items() if name in names],
                answer_id=answer.id,
                verdict=answer.verdict,
                causes=tuple(cause.case_id for cause in answer.causes),
            )
            versions = (answer.kb_version, answer.ruleset_version, self.knowledge.index.manifest.id)
            mark = fingerprint(evidence, _named(answer))
            self.history.add(
                answer.conversation_id,
                turn,
                versions,
                answer=to_json_once(answer),
                fingerprint=mark,
                owner=prepared.request.owner,
                continues=any(turn.answer_id for turn in prepared.earlier),
            )

    def _look_up(self, message: Message, watch: Stopwatch, restated: str = "") -> tuple[tuple[Candidate, ...], Context]:
        glossary = self.knowledge.glossary
        evidence = self._as_it_is_now(message)
        intent = understand(
            message.question,
            evidence,
            glossary,
            language=message.language,
            relation=message.relation,
            changes=message.changes,
        )
        book = FactBook(evidence, said_concepts(intent))
        report = self._check(evidence, book)
        watch.lap("rules")
        text = f"{intent.text}\n{restated}" if restated else intent.text
        query = build_query(evidence, report, text, glossary=glossary)
        leave_out = impossible_defects(evidence, intent, self.knowledge)
        hits = self._hits(query, leave_out)
        watch.lap("retrieve")
        similar = self._similar(query, intent)
        context = context_of(evidence, report, intent, hits, self.knowledge, leave_out, similar, book)
        return candidates_of(hits, context, self.knowledge), context

    def _as_it_is_now(self, message: Message) -> Evidence:
        """The evidence with the changes that the user reports, among them the fixes of causes that were tried."""
        evidence, rules = message.evidence, self.knowledge.rules
        if message.made:
            evidence = with_changes(evidence, message.made, rules)
        if message.unstarted:
            evidence = unstarted(evidence)
        if message.tried:
            report = check(evidence, rules)
            findings = [
                finding
                for cause_id in message.tried
                if cause_id in self.knowledge.published
                for finding in findings_of(self.knowledge.published[cause_id], report)
                if finding in report.fired and not message.renewed(finding) and not shown_by_log(finding, evidence)
            ]
            edits = [edit for finding in findings for fix in finding.fixes[:1] for edit in fix.edits]
            if edits:
                evidence = reread(evidence, patched(edits, evidence.sources), self._read)
        return evidence

    def _changes(self, message: Message, context: Context, turns: Sequence[Turn]) -> Difference | None:
        """What this message changed against the answer before it; None if there is nothing to compare."""
        if not turns or message.only_talks or not (message.relation in COMPARED or message.made):
            return None
        last = turns[-1]
        earlier = conversation.read(last.question, last.attachments, turns[:-1], self.knowledge.glossary, self._read)
        found = difference(check(self._as_it_is_now(earlier), self.knowledge.rules), context.report)
        cleared = {cause_id for finding in found.cleared for cause_id in finding.cases}
        fixed = last.causes[:1] if message.relation is Relation.PATCHED and set(last.causes[:1]) & cleared else ()
        causes = [
            self.knowledge.published[cause_id]
            for cause_id in (*message.tried, *fixed)
            if cause_id in self.knowledge.published
        ]
        kept = [case for case in causes if not any(message.renewed(f) for f in _fired(case, context.report))]
        return replace(found, ruled_out=tuple(kept), unstarted=message.unstarted)

    def _same_fix(self, case: Case) -> frozenset[str]:
        """The cause and the origins that stand for it alone."""
        origins = (
            origin_id(mechanism, origin)
            for mechanism in self.knowledge.mechanisms.mechanisms
            for origin in mechanism.origins
            if origin.cases == (case.id,)
        )
        return frozenset((case.id, *origins, *(case.related if case.level == "origin" else ())))

    def _with_outcome(self, turns: Sequence[Turn], top_k: int) -> tuple[Turn, ...]:
        """The turns, the last one with what it is answered; for callers that keep the conversation themselves."""
        *before, last = turns
        message = conversation.read(last.question, last.attachments, before, self.knowledge.glossary, self._read)
        candidates, context = self._look_up(message, Stopwatch())
        diagnosis = diagnose(candidates, context, self.knowledge.weights, top_k)
        causes = tuple(cause.case.id for cause in diagnosis.causes)
        return (*before, replace(last, verdict=diagnosis.verdict, causes=causes))

    def _defects(self, evidence: Evidence, answer: Answer) -> tuple[DefectView, ...]:
        if answer.verdict == "no_fault":
            return ()
        mechanisms = {cause.mechanism.id for cause in answer.causes if cause.mechanism is not None}
        defects = self.knowledge.defects.of(evidence.versions)
        return defects_beside(evidence, defects.all, mechanisms, answer.language)

    def _similar(self, query: Query, intent: Intent) -> tuple[SimilarThread, ...]:
        """Reports of others like the question; none for a question of another field."""
        threads = self.knowledge.threads
        foreign = intent.out_of_scope or intent.domain_score < self.knowledge.weights.field
        if threads is None or foreign:
            return ()
        return similar_threads(query, threads, self.knowledge.embedder)

    def _sightings(self, evidence: Evidence, answer: Answer, request: Ask) -> SightingsView | None:
        """Earlier conversations about the same failure."""
        if self.history is None or answer.verdict == "no_fault":
            return None
        mark = fingerprint(evidence, _named(answer))
        try:
            seen = self.history.sightings(mark, request.conversation_id or "", request.owner)
        except StoreError:
            return None
        return SightingsView(count=seen.count, last=seen.last.date().isoformat()) if seen is not None else None

    def _notices(self, language: str, *, recalled: bool) -> tuple[str, ...]:
        building = self.knowledge.index.words_only
        return (
            *((messages("words_only", language, percent=self.embedded_percent),) if building else ()),
            *((messages("not_stored", language),) if not recalled else ()),
        )

    def _check(self, evidence: Evidence, book: FactBook | None = None) -> Report:
        rules = self.knowledge.rules  # read once: `check` calls this on an advisor that may be renewed
        return with_patches(check(evidence, rules, book), evidence, rules, self._read)

    def _hits(self, query: Query, leave_out: Collection[str]) -> tuple[Hit, ...]:
        known = self.knowledge
        return retrieve(
            query, known.index, known.embedder, top_k=CANDIDATES, cases=known.published, leave_out=leave_out
        )

    def _earlier(self, request: Ask) -> tuple[tuple[Turn, ...], bool]:
        """The earlier turns, and whether all that are stored could be read."""
        messages = tuple(turn_of(mask(text).text) for text in request.earlier)
        if self.history is None or request.conversation_id is None:
            return messages, True
        try:
            turns = self.history.turns(request.conversation_id, request.owner)
        except StoreError:
            return messages, False
        failing = (replace(turn, attachments=of_failing_run(turn.question, turn.attachments)) for turn in turns)
        return (*failing, *messages), True


def _named(answer: Answer) -> tuple[str, ...]:
    """The causes of an answer that commits to its first one."""
    return tuple(cause.case_id for cause in answer.causes) if answer.verdict == "answered" else ()


def _fired(case: Case, report: Report) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings_of(case, report) if finding.status is Status.FIRED)
