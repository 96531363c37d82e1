"""The answering pipeline: read, check the rules, understand, retrieve, rank, compose. Every channel calls it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.mask import mask
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.serialization import to_json
from trainmedic.kb.stopwatch import Stopwatch
from trainmedic.service.answer import Answer, ReportView
from trainmedic.service.composition.template_answer import template_answer
from trainmedic.service.composition.views import report_view
from trainmedic.service.observers.observer import Observer
from trainmedic.service.question import conversation
from trainmedic.service.question.conversation import Message
from trainmedic.service.question.intent import understand
from trainmedic.service.question.query import Query, build_query
from trainmedic.service.question.request import Ask, safely_named
from trainmedic.service.ranking.candidates import candidates_of, context_of
from trainmedic.service.ranking.diagnose import Diagnosis, diagnose
from trainmedic.service.ranking.features import Candidate, Context
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.retrieve import Hit, retrieve
from trainmedic.service.storage.history import Feedback, History, StoredAnswer, Turn, storable, turn_of
from trainmedic.service.what_if.apply import WhatIf, what_if

CANDIDATES = 40
"""Causes that retrieval hands to ranking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAnswer:
    """One question as far as it can be answered without a model: ``answer`` is complete by itself.

    ``earlier`` holds the earlier turns of the conversation that were read, ``supposed`` what the rules say of a change
    that the question only supposes.
    """

    request: Ask
    attachments: tuple[Attachment, ...]
    earlier: tuple[Turn, ...]
    context: Context
    diagnosis: Diagnosis
    answer: Answer
    supposed: WhatIf | None = None


class Advisor:
    """Answers questions from one body of knowledge. Holds no state but the history; safe to share between threads."""

    def __init__(
        self, knowledge: Knowledge, history: History | None = None, observers: Sequence[Observer] = ()
    ) -> None:
        self.knowledge = knowledge
        self.history = history
        self._observers = tuple(observers)
        self._published = knowledge.published

    def ask(self, request: Ask, trace_id: str = "") -> Answer:
        """Answer one question without a model. Raises `InvalidRequest` if the request is empty."""
        prepared = self.prepare(request, trace_id)
        self.remember(prepared, prepared.answer)
        return prepared.answer

    def prepare(self, request: Ask, trace_id: str = "", restated: str = "") -> PreparedAnswer:
        """The answer without a model, with everything that it rests on; nothing is stored yet.

        ``restated`` is the question in other words, searched for beside the user's own. Raises `InvalidRequest` if the
        request is empty.
        """
        watch = Stopwatch()
        request = request.validated()
        message = conversation.read(
            request.question, request.attachments, self._earlier(request), self.knowledge.glossary
        )
        watch.lap("parse")
        candidates, context = self._look_up(message, watch, restated)
        diagnosis = diagnose(candidates, context, self.knowledge.weights, request.top_k)
        intent = context.intent
        supposed = what_if(message.evidence, intent.changes, self.knowledge.rules) if intent.changes else None
        language = intent.language if request.language == "auto" else request.language
        answer = template_answer(message, context, diagnosis, supposed, language, self.knowledge.cases.version)
        watch.lap("compose")
        answer = replace(
            answer,
            id=uuid.uuid4().hex,
            conversation_id=request.conversation_id or uuid.uuid4().hex,
            trace_id=trace_id,
            timings_ms=watch.laps,
        )
        return PreparedAnswer(
            request=request,
            attachments=request.attachments,
            earlier=message.turns,
            context=context,
            diagnosis=diagnosis,
            answer=answer,
            supposed=supposed,
        )

    def candidates(self, request: Ask) -> tuple[tuple[Candidate, ...], Context]:
        """What ranking works on for one question: the candidates and what they share."""
        request = request.validated()
        message = conversation.read(request.question, request.attachments, (), self.knowledge.glossary)
        return self._look_up(message, Stopwatch())

    def check(self, attachments: Sequence[Attachment], language: str = "en") -> ReportView:
        """Rules only: no retrieval, no model, nothing stored."""
        evidence = parse("", safely_named(attachments))
        return report_view(evidence, self._check(evidence), "zh" if language == "zh" else "en")

    def search(self, text: str, top_k: int = 10, filters: Mapping[str, str] | None = None) -> tuple[Hit, ...]:
        """The cases nearest to a text, with scores and why."""
        evidence = parse(text)
        query = build_query(evidence, Report(), evidence.question, glossary=self.knowledge.glossary)
        return self._retrieve(query, top_k, {**(filters or {}), "level": "case"}, explain=True)

    def case(self, case_id: str) -> Case | None:
        """A published case, or None."""
        return self._published.get(case_id)

    def answer(self, answer_id: str) -> StoredAnswer | None:
        """A stored answer with its conversation; None if it is unknown or no history is kept."""
        return self.history.stored_answer(answer_id) if self.history is not None else None

    def give_feedback(self, feedback: Feedback) -> None:
        """Store feedback about an answer. Raises `NotFound` for an unknown one."""
        if self.history is None:
            raise InvalidRequest("no history is kept, so feedback has nothing to refer to")
        # People paste into comments too: what is stored is masked, like everything else.
        masked = replace(feedback, reason=storable(feedback.reason), comment=storable(feedback.comment))
        previous = self.history.feedback(feedback.answer_id)
        self.history.give_feedback(masked)
        if self._observers:
            stored = self.answer(feedback.answer_id)
            for observer in self._observers:
                observer.on_feedback(masked, previous, stored.answer if stored is not None else {})

    def remember(self, prepared: PreparedAnswer, answer: Answer) -> None:
        """Store the turn with its final answer, and notify the observers."""
        if self.history is not None:
            evidence = prepared.context.evidence
            names = {attachment.name for attachment in prepared.attachments}
            turn = turn_of(
                evidence.question,
                [source for source in evidence.sources if source.name in names],
                answer_id=answer.id,
                verdict=answer.verdict,
                causes=tuple(cause.case_id for cause in answer.causes),
            )
            versions = (answer.kb_version, answer.ruleset_version, self.knowledge.index.manifest.id)
            self.history.add(answer.conversation_id, turn, versions, answer=to_json(answer))
        for observer in self._observers:
            observer.on_answer(answer)

    def _look_up(self, message: Message, watch: Stopwatch, restated: str = "") -> tuple[tuple[Candidate, ...], Context]:
        evidence, glossary = message.evidence, self.knowledge.glossary
        report = self._check(evidence)
        watch.lap("rules")
        intent = understand(
            message.question,
            evidence,
            glossary,
            language=message.language,
            relation=message.relation,
            changes=message.changes,
        )
        text = f"{intent.text}\n{restated}" if restated else intent.text
        hits = self._retrieve(build_query(evidence, report, text, glossary=glossary), CANDIDATES)
        watch.lap("retrieve")
        context = context_of(evidence, report, intent, self.knowledge)
        return candidates_of(hits, context, self.knowledge), context

    def _check(self, evidence: Evidence) -> Report:
        rules = self.knowledge.rules
        return with_patches(check(evidence, rules), evidence, rules, parse)

    def _retrieve(
        self, query: Query, top_k: int, filters: Mapping[str, str] | None = None, *, explain: bool = False
    ) -> tuple[Hit, ...]:
        index, embedder = self.knowledge.index, self.knowledge.embedder
        return retrieve(query, index, embedder, top_k=top_k, filters=filters, cases=self._published, explain=explain)

    def _earlier(self, request: Ask) -> tuple[Turn, ...]:
        messages = tuple(turn_of(mask(text).text) for text in request.earlier)
        if self.history is None or request.conversation_id is None:
            return messages
        return (*self.history.turns(request.conversation_id), *messages)
