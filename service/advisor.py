"""The whole way from a paste to an answer. Every channel (HTTP, chat, Slack, command line) calls this and presents."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import language_of as language_of_text
from trainmedic.kb.mask import mask
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.parse import parse
from trainmedic.kb.store.embedder import Embedder
from trainmedic.kb.store.index import Index
from trainmedic.service.answer import Answer, Language, ReportView, markdown
from trainmedic.service.composition import phrases
from trainmedic.service.composition.compose import NO_MODEL, cause_views, compose
from trainmedic.service.composition.series import series_views
from trainmedic.service.composition.views import (
    finding_view,
    missing_view,
    receipt_view,
    report_view,
    run_view,
    settings_used,
    signal_views,
)
from trainmedic.service.history import Feedback, History, StoredAnswer, Turn
from trainmedic.service.observer import Observer
from trainmedic.service.question import conversation
from trainmedic.service.question.domain import ASKS_IF_NORMAL, field_weight, is_bare, is_vague, length, says_failed
from trainmedic.service.question.negation import denied
from trainmedic.service.question.neighbours import SPOILT_OUTPUT, is_elsewhere
from trainmedic.service.question.query import MAX_QUESTION, Query, build_query
from trainmedic.service.question.query_text import spoken
from trainmedic.service.ranking.diagnose import Diagnosis, diagnose
from trainmedic.service.ranking.features import Context, Scored, symptoms_of
from trainmedic.service.ranking.retrieve import Hit, retrieve
from trainmedic.service.ranking.weights import Weights, shipped
from trainmedic.service.serialization import to_json
from trainmedic.service.what_if.apply import WhatIf, what_if

CANDIDATES = 20
"""Cases that retrieval hands to ranking."""
MAX_NAME = 255
"""Code points of an attachment's name; the rest is cut."""
_HARMLESS = str.maketrans("`<>", "'‹›")
KEPT_CHARACTERS = 1_000_000
"""Code points of one pasted text that a conversation remembers."""
Mode = Literal["auto", "deterministic", "investigate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question with what was pasted. ``language`` auto follows the question.

    ``said`` are the user's earlier messages, where the caller keeps the conversation and not the history.
    """

    question: str
    attachments: tuple[Attachment, ...] = ()
    conversation_id: str | None = None
    language: Literal["auto", "en", "zh"] = "auto"
    top_k: int = 5
    mode: Mode = "auto"
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """Everything that is known, loaded once.

    ``concepts`` maps a case to the glossary concepts of its text, ``titles`` to those of its title alone.
    """

    cases: CaseSet
    rules: RuleSet
    glossary: Glossary
    index: Index
    embedder: Embedder
    weights: Weights = field(default_factory=shipped)
    concepts: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    titles: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def published(self) -> Mapping[str, Case]:
        """Cases that users may see, by id."""
        return {case.id: case for case in self.cases.cases if case.status == "published"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One question worked on as far as no model is needed: ``answer`` is complete by itself.

    ``earlier`` holds the conversation's turns before this one, as far as they were read. ``supposed`` is what the rules
    say of a change that the question only supposes.
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
        """Answer one question without a model. Raises `InvalidRequest` where there is nothing to answer."""
        prepared = self.prepare(request, trace_id)
        self.remember(prepared, prepared.answer)
        return prepared.answer

    def prepare(self, request: Ask, trace_id: str = "", restated: str = "") -> Prepared:
        """The whole answer as the program gives it, with all that it rests on; nothing is remembered yet.

        ``restated`` is the question in other words, searched for beside the user's own. Raises `InvalidRequest` where
        there is nothing to answer.
        """
        if not request.question.strip() and not request.attachments:
            raise InvalidRequest("nothing was asked: send a question or an attachment")
        watch = Stopwatch()
        attachments = named(request.attachments)
        read = conversation.read(request.question, attachments, self._earlier(request), self.knowledge.glossary)
        evidence = read.evidence
        question = spoken(read.question, evidence, self.knowledge.glossary)
        watch.lap("parse")
        report = self._check(evidence)
        watch.lap("rules")
        sought = f"{question}\n{restated}" if restated else question
        query = build_query(evidence, report, sought, glossary=self.knowledge.glossary)
        if sought != read.question and read.question.strip():
            query = replace(query, language=language_of_text(read.question))  # not that of the words added
        if read.language:
            query = replace(query, language=read.language)
        language = language_of(request.language, evidence.question, query)
        supposed = what_if(evidence, read.supposed, self.knowledge.rules) if read.supposed else None
        hits = self._retrieve(query, CANDIDATES)
        watch.lap("retrieve")
        context = self._context(evidence, report, question)
        diagnosis = diagnose(self._candidates(hits, report), context, self.knowledge.weights, request.top_k)
        repeated = same_as(read.turns, diagnosis, evidence)
        sections, citations = compose(diagnosis, context, language, supposed, same=repeated)
        watch.lap("compose")
        answer = Answer(
            id=uuid.uuid4().hex,
            conversation_id=request.conversation_id or uuid.uuid4().hex,
            verdict=diagnosis.verdict,
            language=language,
            mode="deterministic",
            model=None,
            answer=markdown(sections),
            sections=sections,
            causes=cause_views(diagnosis, language),
            findings=tuple(finding_view(finding, language) for finding in report.findings),
            citations=citations,
            missing=tuple(missing_view(item, language) for item in diagnosis.missing),
            signals=signal_views(evidence, language),
            series=series_views(evidence),
            run=run_view(evidence, settings_used(report)),
            receipt=receipt_view(evidence.receipt),
            kb_version=self.knowledge.cases.version,
            ruleset_version=report.ruleset_version,
            notices=(NO_MODEL.get(language), *unread(read.left_out, language)),
            timings_ms=watch.laps,
            trace_id=trace_id,
        )
        return Prepared(
            request=request,
            attachments=attachments,
            earlier=read.turns,
            supposed=supposed,
            context=context,
            diagnosis=diagnosis,
            answer=answer,
        )

    def looked_up(self, request: Ask) -> tuple[tuple[Scored, ...], Context]:
        """What ranking is given for one question: the candidates and what they share."""
        evidence = parse(request.question, named(request.attachments))
        report = self._check(evidence)
        question = spoken(evidence.question, evidence, self.knowledge.glossary)
        query = build_query(evidence, report, question, glossary=self.knowledge.glossary)
        hits = self._retrieve(query, CANDIDATES)
        return self._candidates(hits, report), self._context(evidence, report, question)

    def check(self, attachments: Sequence[Attachment], language: str = "en") -> ReportView:
        """Rules only: no retrieval, no model, nothing stored."""
        evidence = parse("", named(attachments))
        return report_view(evidence, self._check(evidence), "zh" if language == "zh" else "en")

    def search(self, text: str, top_k: int = 10, filters: Mapping[str, str] | None = None) -> tuple[Hit, ...]:
        """The cases nearest to a text, with scores and why."""
        evidence = parse(text)
        query = build_query(evidence, Report(), evidence.question, glossary=self.knowledge.glossary)
        return self._retrieve(query, top_k, filters, explain=True)

    def case(self, case_id: str) -> Case | None:
        """A published case, or None."""
        return self._published.get(case_id)

    def answer(self, answer_id: str) -> StoredAnswer | None:
        """An answer given before with its conversation, as far as a history is kept; or None."""
        return self.history.kept(answer_id) if self.history is not None else None

    def give_feedback(self, feedback: Feedback) -> None:
        """Store what is said about an answer. Raises `NotFound` for an unknown one."""
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

    def _retrieve(
        self, query: Query, top_k: int, filters: Mapping[str, str] | None = None, *, explain: bool = False
    ) -> tuple[Hit, ...]:
        knowledge = self.knowledge
        return retrieve(
            query,
            knowledge.index,
            knowledge.embedder,
            top_k=top_k,
            filters=filters,
            cases=self._published,
            explain=explain,
        )

    def _check(self, evidence: Evidence) -> Report:
        rules = self.knowledge.rules
        return with_patches(check(evidence, rules), evidence, rules, parse)

    def _context(self, evidence: Evidence, report: Report, question: str) -> Context:
        glossary = self.knowledge.glossary
        question = question.strip()[:MAX_QUESTION]  # as much as is searched for
        concepts = set(glossary.ids(question))
        symptoms = symptoms_of(evidence)
        return Context(
            evidence=evidence,
            report=report,
            symptoms=symptoms,
            complaint=bool(symptoms or evidence.tracebacks)
            or any(glossary.concepts[concept].kind == "symptom" for concept in concepts),
            reassurance=ASKS_IF_NORMAL.search(question) is not None,
            failed=says_failed(question),
            vague=is_vague(question, len(concepts)),
            bare=is_bare(question, [glossary.concepts[concept].kind for concept in concepts], evidence),
            length=length(question),
            field=field_weight(evidence, concepts, glossary, question),
            elsewhere=is_elsewhere(question, evidence, frozenset(concepts)),
            spoilt=bool(concepts & SPOILT_OUTPUT),
            concepts=rarity(concepts, self.knowledge.concepts),
            case_concepts=self.knowledge.concepts,
            case_titles=self.knowledge.titles,
            denied=denied(question, glossary),
        )

    def _candidates(self, hits: Sequence[Hit], report: Report) -> tuple[Scored, ...]:
        """The retrieved cases, and every case that a finding names: a fired rule brings its cases with it."""
        best = max((hit.score for hit in hits), default=0.0) or 1.0
        words, meaning = ahead([hit.words for hit in hits]), ahead([hit.meaning for hit in hits])
        scored = {
            hit.case_id: Scored(
                case=self._published[hit.case_id],
                score=hit.score / best,
                lead=float(rank == 0),
                words=hit.words,
                meaning=hit.meaning,
                words_ahead=words[rank],
                meaning_ahead=meaning[rank],
            )
            for rank, hit in enumerate(hits)
            if hit.case_id in self._published
        }
        for finding in report.findings:
            for case_id in finding.cases:
                if case_id in self._published and case_id not in scored:
                    scored[case_id] = Scored(case=self._published[case_id], score=0.0, lead=0.0)
        return tuple(scored.values())

    def _earlier(self, request: Ask) -> tuple[Turn, ...]:
        said = tuple(
            Turn(question=mask(text).text[:KEPT_CHARACTERS], attachments=(), answer_id="", verdict="", causes=())
            for text in request.said
        )
        if self.history is None or request.conversation_id is None:
            return said
        return (*self.history.turns(request.conversation_id), *said)

    def remember(self, prepared: Prepared, answer: Answer) -> None:
        """Store the turn with its final answer, and notify the observers."""
        if self.history is not None:
            self._store(self.history, prepared, answer)
        for observer in self._observers:
            observer.on_answer(answer)

    def _store(self, history: History, prepared: Prepared, answer: Answer) -> None:
        evidence = prepared.context.evidence
        given = {attachment.name for attachment in prepared.attachments}
        kept = [s for s in evidence.sources if s.name is not None and s.name in given]
        turn = Turn(
            question=evidence.question[:KEPT_CHARACTERS],
            attachments=tuple(Attachment(name=s.name or "", content=s.text[:KEPT_CHARACTERS]) for s in kept),
            answer_id=answer.id,
            verdict=answer.verdict,
            causes=tuple(cause.case_id for cause in answer.causes),
        )
        versions = (answer.kb_version, answer.ruleset_version, self.knowledge.index.manifest.id)
        history.add(answer.conversation_id, turn, versions, answer=to_json(answer))


def same_as(turns: Sequence[Turn], diagnosis: Diagnosis, evidence: Evidence) -> bool:
    """Whether the answer before this one had the same verdict and first cause, and this message pastes nothing new."""
    spans = [option.span for option in evidence.run.options]
    spans += [row.span for row in evidence.rows]
    spans += [trace.span for trace in evidence.tracebacks]
    if not turns or not diagnosis.causes or any(span.attachment is None for span in spans):
        return False
    last, first = turns[-1], diagnosis.causes[0].case.id
    return last.verdict == diagnosis.verdict and last.causes[:1] == (first,)


def unread(turns: int, language: str) -> tuple[str, ...]:
    """The notice that so many earlier turns were not read again; none where all were."""
    return (phrases.UNREAD_TURNS.get(language).format(count=turns),) if turns else ()


def named(attachments: Sequence[Attachment]) -> tuple[Attachment, ...]:
    """The attachments under names that are safe to show and store, and all different.

    A name stands in Markdown: line breaks and other unprintable characters become blanks, and what would begin code,
    HTML or a link is replaced. Secrets become asterisks, an empty name ``attachment``; the second ``train.sh`` is
    ``train-2.sh``. All other names stay as they are.
    """
    taken: set[str] = set()
    found = []
    for attachment in attachments:
        plain = "".join(c if c.isprintable() else " " for c in attachment.name[:MAX_NAME]).translate(_HARMLESS)
        name = first = mask(plain.replace("](", "] (").strip()).text or "attachment"
        stem, dot, ending = first.rpartition(".") if "." in first.rpartition("/")[2][1:] else (first, "", "")
        number = 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}{dot}{ending}"
        taken.add(name)
        found.append(attachment if name == attachment.name else replace(attachment, name=name))
    return tuple(found)


def storable(text: str) -> str:
    """Text that any database takes and that holds no secret."""
    return mask(text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")).text


def language_of(wanted: str, question: str, query: Query) -> Language:
    """The language to answer in: the one wanted, else that of the question, else that of what was pasted."""
    if wanted in ("en", "zh"):
        return "zh" if wanted == "zh" else "en"
    return "zh" if query.language == "zh" else "en"


def ahead(values: Sequence[float]) -> tuple[float, ...]:
    """Each value less the greatest of the others (0 where there are none)."""
    first, second = (*sorted(values, reverse=True), 0.0, 0.0)[:2]
    return tuple(value - (second if value == first else first) for value in values) if len(values) > 1 else (0.0,)


def rarity(found: set[str], case_concepts: Mapping[str, frozenset[str]]) -> Mapping[str, float]:
    """Each concept with how much it tells: the fewer cases have it, the more. Concepts of no case tell a little."""
    total = max(1, len(case_concepts))
    counts = {concept: sum(concept in own for own in case_concepts.values()) for concept in found}
    return MappingProxyType(
        {concept: math.log((total + 1) / (count + 0.5)) for concept, count in sorted(counts.items())}
    )


class Stopwatch:
    """Milliseconds per stage of one request."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """End a stage."""
        now = time.perf_counter()
        self._laps[name] = round((now - self._last) * 1000, 3)
        self._last = now

    @property
    def laps(self) -> Mapping[str, float]:
        """All stages and the total."""
        total = round((time.perf_counter() - self._started) * 1000, 3)
        return MappingProxyType({**self._laps, "total": total})
