"""The advisor with a language model beside it: the same answer, its text written by the model, streamed and verified.

Verdict, causes, findings, questions and patch are the advisor's and never change. Where the model is absent, fails or
has nothing to add, the answer is the advisor's own, with a notice that says which.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType

from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.frameworks.names import is_option
from trainmedic.kb.model.case import Case
from trainmedic.service.advisor import Advisor, Prepared
from trainmedic.service.answer import Answer, Citation, Section, markdown
from trainmedic.service.answering import Draft, Executor, ModelText, Parts, deltas, run_inline
from trainmedic.service.composition import phrases
from trainmedic.service.composition.compose import Citations, Sections, appended, opening, shown_name
from trainmedic.service.llm.generation import Generation
from trainmedic.service.llm.model import ChatModel, ModelError
from trainmedic.service.llm.prompts import Prompt, Source
from trainmedic.service.llm.query_rewrite import rewritten_query
from trainmedic.service.llm.verify import Denial, Grounding, Verification, complete, denials_of, verify
from trainmedic.service.question.request import Ask
from trainmedic.service.what_if.apply import Effect

MAX_FLAGGED = 10
"""Names in one notice; the rest is counted."""


class Assistant:
    """Answers questions, with the model's words where there is a model. Belongs to one event loop."""

    def __init__(self, advisor: Advisor, model: ChatModel | None = None, *, restate: bool = True) -> None:
        self.advisor = advisor
        self.model = model
        self._restate = restate

    async def stream(self, request: Ask, trace_id: str = "", run: Executor = run_inline) -> Parts:
        """The answer's text as it comes, then the whole answer.

        The text streamed is what the model writes, before its sentences are verified; the answer's text replaces it.
        Without a model the text comes at once.
        """
        prepared = await run(lambda: self.advisor.prepare(request, trace_id))
        if self.model is None or request.mode == "deterministic":
            answer = prepared.answer
            if self.model is not None:
                answer = replace(answer, notices=(phrases.AS_ASKED.get(answer.language), *answer.notices[1:]))
            yield Draft(answer=answer, sources=prepared.context.evidence.sources)
            for delta in deltas(answer.sections):
                yield delta
        else:
            started = time.perf_counter()
            if self._restate and prepared.answer.verdict in ("need_input", "not_in_kb"):
                prepared = await self._restated(prepared, self.model, trace_id, run)
            answer = replace(prepared.answer, notices=())  # which ones there are shows when the model is done
            yield Draft(answer=answer, sources=prepared.context.evidence.sources)
            write = self._investigated if request.mode == "investigate" else self._written
            unread = prepared.answer.notices[1:]  # the first is that there is no model
            async with aclosing(write(prepared, self.model, started, run)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        answer = replace(part, notices=(*part.notices, *unread))
                    else:
                        yield part
        await run(lambda: self.advisor.remember(prepared, answer))
        yield answer

    async def _restated(self, prepared: Prepared, model: ChatModel, trace_id: str, run: Executor) -> Prepared:
        """The question looked up once more in the model's words, where that finds a clearer answer."""
        words = await rewritten_query(prepared.context.evidence.question, model)
        if not words:
            return prepared
        try:
            other = await run(lambda: self.advisor.prepare(prepared.request, trace_id, restated=words))
        except TrainmedicError:  # no room for a second look: there is an answer already
            return prepared
        clearer = other.answer.verdict == "answered" or (other.answer.causes and not prepared.answer.causes)
        return other if clearer else prepared

    async def _investigated(self, prepared: Prepared, model: ChatModel, started: float, run: Executor) -> Parts:
        """The steps and the text of an investigation; by the advisor where it fails."""
        investigated = await run(_machinery)
        async with aclosing(investigated(prepared, model, self.advisor, started, run)) as parts:
            async for part in parts:
                yield _timed(part, started) if isinstance(part, Answer) else part

    async def _written(self, prepared: Prepared, model: ChatModel, started: float, run: Executor = run_inline) -> Parts:
        """The text of one answer by the model; by the advisor where the model fails.

        ``started`` is when the model's time began to run (`time.perf_counter`).
        """
        composed = prepared.answer
        language = composed.language
        if not composed.causes:
            # Nothing is known that a text could be grounded in.
            for delta in deltas(composed.sections):
                yield delta
            yield _timed(replace(composed, notices=(phrases.NOTHING_TO_WRITE.get(language),)), started)
            return
        writing = Generation(prepared, model)
        text = ModelText(lambda: opening_of(prepared, writing.prompt.sources))
        try:
            async with aclosing(writing.pieces(started + model.options.timeout_s)) as pieces:
                async for piece in pieces:
                    for delta in text.write(piece):
                        yield delta
            answer, tail = finished(prepared, writing.prompt, writing.draft, await model.name(), cut=writing.cut)
            answer = replace(answer, usage=MappingProxyType(dict(writing.usage)))
            for delta in text.end(tail):
                yield delta
        except ModelError as failure:
            answer = replace(composed, notices=(failed(failure.kind, language),))
        if answer.mode == "deterministic":
            for delta in text.replace(composed, answer.notices[0]):
                yield delta
        yield _timed(answer, started, writing.first)


def _machinery() -> Callable[[Prepared, ChatModel, Advisor, float, Executor], Parts]:
    """The agent's machinery, only for those who ask for it: loading it takes a second and must hold up nobody."""
    from trainmedic.service.agent import investigated

    return investigated


def failed(kind: str, language: str) -> str:
    """The notice for a `ModelError` of this kind."""
    return phrases.MODEL_FAILED.get(language).format(why=phrases.FAILURES[kind].get(language))


def _timed(answer: Answer, started: float, first: float | None = None) -> Answer:
    """The answer with the model's share of the time."""
    spent = {"first_token": first - started} if first is not None else {}
    spent["model"] = time.perf_counter() - started
    timings = {**answer.timings_ms, **{name: round(seconds * 1000, 3) for name, seconds in spent.items()}}
    timings["total"] = round(answer.timings_ms.get("total", 0.0) + timings["model"], 3)
    return replace(answer, timings_ms=MappingProxyType(timings))


def finished(
    prepared: Prepared, prompt: Prompt, draft: str, model: str, *, cut: bool = False, looked_up: Sequence[Case] = ()
) -> tuple[Answer, Sections]:
    """The answer with the model's text, verified; and the program's own sections after that text. Pure.

    ``cut``: the token limit ended the text, so that its last sentence is incomplete. ``looked_up`` are further cases
    that the model has read. If no sentence of the model's could be kept, the answer is the composed one, with notices
    that say so.
    """
    composed, context = prepared.answer, prepared.context
    language = composed.language
    checked = verify(complete(draft) if cut else draft, ground_of(prepared, prompt, looked_up), language)
    if not checked.text:
        return replace(
            composed, notices=(failed("garbage", language), *notices(checked, prompt, language, cut=cut))
        ), ()
    citations = _Citations(prompt.sources, language)
    head = opening(prepared.diagnosis, context, citations, prepared.supposed)
    written = Section(kind="model_text", body=checked.text.rstrip(), markers=tuple(checked.citations))
    sections = [*head, written]
    citations.use(checked.citations)
    tail = appended(prepared.diagnosis, context, citations)
    sections += tail
    answer = replace(
        composed,
        answer=markdown(sections),
        sections=tuple(sections),
        mode="llm",
        model=model,
        citations=citations.all(),
        notices=notices(checked, prompt, language, cut=cut),
    )
    return answer, tail


def opening_of(prepared: Prepared, sources: Sequence[Source]) -> Sections:
    """The sections before a text that a model writes from these sources."""
    citations = _Citations(sources, prepared.answer.language)
    return tuple(opening(prepared.diagnosis, prepared.context, citations, prepared.supposed))


def ground_of(prepared: Prepared, prompt: Prompt, looked_up: Sequence[Case] = ()) -> Grounding:
    """What the model's sentences are held against; ``looked_up`` are cases beside the causes that it has read."""
    evidence = prepared.context.evidence
    return Grounding(
        sources=prompt.sources,
        corpus="\n".join((evidence.question, *(source.text for source in evidence.sources))),
        known=is_option,
        denials=denials(prepared, looked_up),
        protected=(prompt.messages[0].content,),
    )


def denials(prepared: Prepared, looked_up: Sequence[Case] = ()) -> tuple[Denial, ...]:
    """What no sentence may recommend or say: the refutations of the causes listed, and the opposite of a finding.

    Cases that were only looked up refute too.
    """
    language = prepared.answer.language
    causes = [cause.case for cause in prepared.diagnosis.causes]
    return denials_of(causes, prepared.context.report.fired, language, also=looked_up)


class _Citations(Citations):
    """The citations of an answer that a model wrote: a source has the marker that the model knows it by; what else is
    cited gets a marker behind all sources."""

    def __init__(self, sources: Sequence[Source], language: str) -> None:
        super().__init__(language, first=max((source.marker for source in sources), default=0) + 1)
        self._known = {(source.kind, source.id): source for source in sources}
        self._by_marker = {source.marker: source for source in sources}

    def effect(self, effect: Effect) -> int:
        """The marker of a rule that a supposed change concerns."""
        source = self._known.get(("rule", effect.rule_id))
        if source is not None:
            self.use((source.marker,))
        return super().effect(effect)

    def use(self, markers: Sequence[int]) -> None:
        """These sources are cited."""
        for source in (self._by_marker[marker] for marker in markers):
            self.found[(source.kind, source.id)] = Citation(
                marker=source.marker,
                kind=source.kind,
                id=source.id,
                title=source.title,
                url=source.url,
                quote=source.quote,
            )


def notices(checked: Verification, prompt: Prompt, language: str, *, cut: bool = False) -> tuple[str, ...]:
    """What was done to the model's text, and what it was not shown."""
    said = [phrases.CUT_SHORT.get(language)] if cut else []
    if checked.withdrawn:
        said.append(phrases.WITHDRAWN.get(language).format(count=len(checked.withdrawn)))
    if checked.leaked:
        said.append(phrases.LEAKED.get(language).format(count=len(checked.leaked)))
    if checked.flagged:
        said.append(phrases.FLAGGED.get(language).format(names=_listed(checked.flagged, language)))
    if unknown := checked.stats.get("unknown_markers", 0):
        said.append(phrases.UNKNOWN_MARKERS.get(language).format(count=unknown))
    if prompt.left_out:
        said.append(phrases.LEFT_OUT.get(language).format(what=", ".join(map(shown_name, prompt.left_out))))
    return tuple(said)


def _listed(names: Sequence[str], language: str) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:MAX_FLAGGED])
    more = len(names) - MAX_FLAGGED
    return phrases.AND_MORE.get(language).format(names=shown, count=more) if more > 0 else shown
