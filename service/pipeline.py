"""From a question to everything that its answer says: read, check, understand, retrieve, diagnose.

Nothing is composed and nothing is stored here; `service.answer.assemble` makes the answer of a draft.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.audit.audit import DefectMatch
from trainmedic.kb.comparison.run_diff import RunDiff, Side, diff_runs, side_of
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.facts import FactBook
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.error_messages.explain import MessageMatch, explain
from trainmedic.kb.identities import identities_of, mask_identities
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.kb.stopwatch import Stopwatch
from trainmedic.kb.threads.thread import SimilarThread
from trainmedic.service.dialogue.conversation import Message, message_of
from trainmedic.service.dialogue.difference import Difference
from trainmedic.service.dialogue.intent import Relation, understand
from trainmedic.service.dialogue.query import Query, build_query
from trainmedic.service.dialogue.request import Ask, safely_named
from trainmedic.service.dialogue.turn import Asked, Turn
from trainmedic.service.dialogue.two_runs import of_failing_run, two_runs
from trainmedic.service.dialogue.what_if import WhatIf, what_if
from trainmedic.service.ranking.candidates import candidates_of, context_of, impossible_defects
from trainmedic.service.ranking.defects import defects_beside
from trainmedic.service.ranking.diagnose import Diagnosis, complaint, diagnose
from trainmedic.service.ranking.features import Candidate, Context, said_concepts
from trainmedic.service.ranking.follow_up import as_it_is_now, changed, not_ruled_out
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.proposal import Proposal, proposal
from trainmedic.service.ranking.reranked import Choice, reranked
from trainmedic.service.ranking.retrieve import Hit, retrieve
from trainmedic.service.ranking.similar import shown, similar_threads

CANDIDATES = 40
"""Causes that retrieval hands to ranking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRuns:
    """The run that works, and how the failing one differs from it."""

    works: Side
    diff: RunDiff
    fails: tuple[str, ...]
    """The files of the failing run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One question with everything that an answer to it says, whoever writes the text.

    ``supposed`` is what the rules say of a change that the question only supposes, ``proposal`` the fix of the first
    cause in the user's own files, ``changes`` the difference to the previous answer. ``printed`` are messages of
    frameworks in the evidence, ``similar`` reports of others, ``defects`` those of the installed packages to show
    beside the causes, ``sightings`` how many earlier conversations were about the same failure and the day of the
    last. ``recalled``: all stored turns could be read.
    """

    id: str
    conversation_id: str
    trace_id: str = ""
    request: Ask
    knowledge: Knowledge
    message: Message
    context: Context
    diagnosis: Diagnosis
    language: Literal["en", "zh"]
    supposed: WhatIf | None = None
    proposal: Proposal | None = None
    changes: Difference | None = None
    printed: tuple[MessageMatch, ...] = ()
    similar: tuple[SimilarThread, ...] = ()
    defects: tuple[DefectMatch, ...] = ()
    runs: ComparedRuns | None = None
    sightings: tuple[int, str] | None = None
    recalled: bool = True
    embedded_percent: int = 0
    timings_ms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def earlier(self) -> tuple[Turn, ...]:
        """The earlier turns of the conversation that were read."""
        return self.message.turns

    @property
    def asked(self) -> Asked:
        """What is stored of the question."""
        names = {attachment.name for attachment in self.request.attachments}
        works = self.runs.works.evidence.sources if self.runs is not None else ()
        sources = {source.name: source for source in (*works, *self.context.evidence.sources)}
        return Asked(
            evidence=self.context.evidence,
            sources=tuple(source for name, source in sources.items() if name in names),
            index_id=self.knowledge.index.manifest.id,
            owner=self.request.owner,
            continues=any(turn.answer_id for turn in self.message.turns),
        )

    def reordered(self, choices: Sequence[Choice]) -> Draft:
        """The draft with a model's valid choices first (see `service.ranking.reranked`): as many causes as before, and
        the same verdict."""
        evidence = self.context.evidence
        texts = (evidence.question, *(source.text for source in evidence.sources))
        # The model has seen them without the names of people and machines.
        known = identities_of(texts)
        lines = [line for text in texts for seen in (text, mask_identities(text, known)) for line in seen.splitlines()]
        differential = reranked(self.diagnosis.differential, choices, lines)
        causes = differential.causes[: len(self.diagnosis.causes)]
        return replace(self, diagnosis=replace(self.diagnosis, differential=differential, causes=causes))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages over one body of knowledge. ``read`` reads all that is sent, in this process or in another."""

    knowledge: Knowledge
    read: Read

    def draft(self, request: Ask, turns: Sequence[Turn] = (), *, restated: str = "") -> Draft:
        """``restated`` is the question in other words, searched for beside the user's own."""
        watch = Stopwatch()
        runs = two_runs(request.question, request.attachments)
        attachments = runs.fails if runs is not None else request.attachments
        message = self.message(request.question, attachments, turns)
        if message.relation is Relation.STILL_FAILING and not turns[-1].verdict:
            turns = self._with_outcome(turns, request.top_k)
            message = self.message(request.question, attachments, turns)
        watch.lap("parse")
        candidates, context = self._look_up(message, watch, restated)
        changes = changed(message, context, turns, self.message, self.knowledge, self.read)
        if changes is not None:
            candidates = not_ruled_out(candidates, changes, self.knowledge)
        diagnosis = diagnose(candidates, context, self.knowledge.weights, request.top_k)
        intent, rules, healthy = context.intent, self.knowledge.rules, diagnosis.verdict == "no_fault"
        draft = Draft(
            id=uuid.uuid4().hex,
            conversation_id=request.conversation_id or uuid.uuid4().hex,
            request=request,
            knowledge=self.knowledge,
            message=message,
            context=context,
            diagnosis=diagnosis,
            language=intent.language if request.language == "auto" else request.language,
            supposed=what_if(context.evidence, intent.changes, rules, self.read) if intent.changes else None,
            proposal=self._proposal(diagnosis, context),
            changes=changes,
            printed=explain(context.evidence),
            similar=() if healthy else shown(context.similar),
            defects=() if healthy else self._defects(context, diagnosis),
            runs=self._two_runs(runs.works, context) if runs is not None else None,
        )
        watch.lap("compose")
        return replace(draft, timings_ms=watch.laps)

    def candidates(self, request: Ask) -> tuple[tuple[Candidate, ...], Context]:
        """What ranking works on for one question: the candidates and what they share."""
        attachments = of_failing_run(request.question, request.attachments)
        return self._look_up(self.message(request.question, attachments, ()), Stopwatch())

    def message(self, question: str, attachments: Sequence[Attachment], turns: Sequence[Turn]) -> Message:
        return message_of(question, attachments, turns, self.knowledge.glossary, self.read)

    def check(self, evidence: Evidence, book: FactBook | None = None) -> Report:
        rules = self.knowledge.rules
        return with_patches(check(evidence, rules, book), evidence, rules, self.read)

    def side(self, attachments: Sequence[Attachment]) -> Side:
        """One of two runs to compare."""
        evidence = self.read("", safely_named(attachments))
        return side_of(evidence, self.check(evidence), self.knowledge.defects.of(evidence.versions))

    def hits(self, query: Query, leave_out: Collection[str]) -> tuple[Hit, ...]:
        known = self.knowledge
        return retrieve(
            query, known.index, known.embedder, top_k=CANDIDATES, cases=known.published, leave_out=leave_out
        )

    def _look_up(self, message: Message, watch: Stopwatch, restated: str = "") -> tuple[tuple[Candidate, ...], Context]:
        known = self.knowledge
        evidence = as_it_is_now(message, known, self.read)
        intent = understand(
            message.question,
            evidence,
            known.glossary,
            language=message.language,
            relation=message.relation,
            changes=message.changes,
        )
        book = FactBook(evidence, said_concepts(intent))
        report = self.check(evidence, book)
        watch.lap("rules")
        text = f"{intent.text}\n{restated}" if restated else intent.text
        query = build_query(evidence, report, text, glossary=known.glossary)
        leave_out = impossible_defects(evidence, intent, known)
        hits = self.hits(query, leave_out)
        watch.lap("retrieve")
        foreign = intent.out_of_scope or intent.domain_score < known.weights.field
        similar = similar_threads(query, known.threads, known.embedder) if known.threads and not foreign else ()
        context = context_of(evidence, report, intent, hits, known, leave_out, similar, book)
        return candidates_of(hits, context, known), context

    def _with_outcome(self, turns: Sequence[Turn], top_k: int) -> tuple[Turn, ...]:
        """The turns, the last one with what it is answered; for callers that keep the conversation themselves."""
        *before, last = turns
        candidates, context = self._look_up(self.message(last.question, last.attachments, before), Stopwatch())
        diagnosis = diagnose(candidates, context, self.knowledge.weights, top_k)
        causes = tuple(cause.case.id for cause in diagnosis.causes)
        return (*before, replace(last, verdict=diagnosis.verdict, causes=causes))

    def _proposal(self, diagnosis: Diagnosis, context: Context) -> Proposal | None:
        """The fix of the cause that is named, unless a rule of its own has a patch."""
        cause = diagnosis.lead or diagnosis.likely
        if cause is None or cause.case.kind != "fault":
            return None
        if any(fix.patch and fix.repairs for finding in diagnosis.own(cause) for fix in finding.fixes):
            return None
        return proposal(cause.case, context.evidence, self.knowledge.rules, self.read)

    def _defects(self, context: Context, diagnosis: Diagnosis) -> tuple[DefectMatch, ...]:
        evidence, symptoms = context.evidence, context.symptoms
        beliefs = [diagnosis.differential.belief(cause) for cause in diagnosis.causes]
        concerning = {
            belief.id
            for belief in beliefs
            if belief is not None
            and (belief is beliefs[0] or not symptoms or symptoms & set(belief.weighed.mechanism.predicts))
        }
        known = self.knowledge.defects.of(evidence.versions).all
        return defects_beside(evidence, known, concerning, complains=complaint(context))

    def _two_runs(self, attachments: Sequence[Attachment], context: Context) -> ComparedRuns:
        evidence, works = context.evidence, self.side(attachments)
        fails = side_of(evidence, context.report, self.knowledge.defects.of(evidence.versions))
        return ComparedRuns(
            works=works,
            diff=diff_runs(works, fails, self.knowledge.mechanisms.mechanisms),
            fails=tuple(source.name for source in evidence.sources if source.name is not None),
        )
