"""The advisor with a language model beside it: the same answer, its text written by the model, streamed and verified.

Verdict, causes, findings, questions and patch are the advisor's; the model may only reorder uncertain causes, each with
a pasted line that bears it out (`service.ranking.reranked`). If the model is absent, fails or has
nothing to add, the answer is the advisor's own, with a notice that says which.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType

from trainmedic.kb.errors import TrainmedicError
from trainmedic.service import pipeline
from trainmedic.service.advisor import Advisor
from trainmedic.service.agent.agent import investigate
from trainmedic.service.answer.assemble import Written
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import Draft, Executor, ModelText, Parts, after_model, deltas, run_inline
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.chat import ChatModel, Completion, ModelError
from trainmedic.service.llm.generation import generated
from trainmedic.service.llm.prompts import Prompt
from trainmedic.service.llm.query_rewrite import rewritten_query
from trainmedic.service.llm.rerank import choices_of, is_uncertain
from trainmedic.service.llm.verified_text import failure_notice, opening_sections, verified_text

SHORT = (Relation.ACKNOWLEDGEMENT, Relation.SOLVED)
"""Messages that need no model: nothing is asked."""


class Assistant:
    """Answers questions, in the model's words if there is a model. Belongs to one event loop."""

    def __init__(
        self,
        advisor: Advisor,
        model: ChatModel | None = None,
        *,
        restate: bool = True,
        rerank: bool = False,
    ) -> None:
        """``rerank`` lets the model reorder uncertain causes (see `service.llm.rerank`)."""
        self.advisor = advisor
        self.model = model
        self._restate = restate
        self._rerank = rerank

    async def stream(self, request: Ask, trace_id: str = "", run: Executor = run_inline) -> Parts:
        """The text in pieces, then the whole answer.

        The streamed text is the model's before verification; the answer's text replaces it.
        """
        advisor = self.advisor.snapshot()
        draft = await run(lambda: advisor.prepare(request, trace_id))
        short = draft.context.intent.relation in SHORT
        if self.model is None or request.mode == "deterministic" or short:
            answer = await run(lambda: advisor.compose(draft, self._unasked(draft, short=short)))
            yield Draft(answer=answer, sources=draft.context.evidence.sources)
            for delta in deltas(answer.sections):
                yield delta
        else:
            started = time.perf_counter()
            if self._restate and draft.diagnosis.verdict in ("need_input", "not_in_kb"):
                draft = await self._restated(draft, advisor, self.model, trace_id, run)
            if self._rerank and is_uncertain(draft):
                draft = await self._reranked(draft, self.model, run)
            final = draft
            composed = await run(lambda: advisor.compose(final))
            # The final notices depend on the model.
            yield Draft(answer=replace(composed, notices=()), sources=draft.context.evidence.sources)
            write = self._investigated if request.mode == "investigate" else self._written
            async with aclosing(write(draft, composed, advisor, self.model, started, run)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        answer = part
                    else:
                        yield part
        asked = draft.asked
        yield await run(lambda: advisor.memory.remember(asked, answer))

    def _unasked(self, draft: pipeline.Draft, *, short: bool) -> Written | None:
        """Why the model was not asked; None if there is none."""
        if self.model is None:
            return None
        return Written(notices=() if short else (messages("as_asked", draft.language),))

    async def _restated(
        self, draft: pipeline.Draft, advisor: Advisor, model: ChatModel, trace_id: str, run: Executor
    ) -> pipeline.Draft:
        """Prepare again with the rewritten question, and use that if its answer is clearer."""
        words = await rewritten_query(draft.context.evidence.question, model)
        if not words:
            return draft
        try:
            other = await run(lambda: advisor.prepare(draft.request, trace_id, restated=words))
        except TrainmedicError:  # overloaded, but there is an answer already
            return draft
        found, before = other.diagnosis, draft.diagnosis
        return other if found.verdict == "answered" or (found.causes and not before.causes) else draft

    async def _reranked(self, draft: pipeline.Draft, model: ChatModel, run: Executor) -> pipeline.Draft:
        """With the causes first that the model puts first; the same if it puts none or time is short."""
        choices = await choices_of(draft, model)
        if not choices:
            return draft
        try:
            return await run(lambda: draft.reordered(choices))
        except TrainmedicError:  # overloaded, but there is an answer already
            return draft

    async def _investigated(
        self,
        draft: pipeline.Draft,
        composed: Answer,
        advisor: Advisor,
        model: ChatModel,
        started: float,
        run: Executor,
    ) -> Parts:
        """The steps and the text of an investigation; the advisor's text if it fails."""
        async with aclosing(investigate(draft, composed, model, advisor, started, run)) as parts:
            async for part in parts:
                yield _timed(part, started) if isinstance(part, Answer) else part

    async def _written(
        self,
        draft: pipeline.Draft,
        composed: Answer,
        advisor: Advisor,
        model: ChatModel,
        started: float,
        run: Executor = run_inline,
    ) -> Parts:
        """The model's text of one answer; the advisor's text if the model fails."""
        language = draft.language
        if not draft.diagnosis.causes:
            # There are no sources for a text.
            for delta in deltas(composed.sections):
                yield delta
            nothing = Written(notices=(messages("nothing_to_write", language),))
            yield _timed(advisor.compose(draft, nothing), started)
            return
        prompt: Prompt
        first: float | None = None
        text = ModelText(lambda: opening_sections(draft, prompt.sources))
        try:
            async with aclosing(generated(draft, model, started + model.options.timeout_s)) as parts:
                async for part in parts:
                    if isinstance(part, Prompt):
                        prompt = part
                    elif isinstance(part, Completion):
                        completion = part
                    else:
                        first = first or time.perf_counter()
                        for delta in text.write(part):
                            yield delta
            written = verified_text(draft, prompt, completion.text, await model.name(), cut=completion.cut)
            answer = advisor.compose(draft, replace(written, usage=MappingProxyType(dict(completion.usage))))
            for delta in text.end(after_model(answer)):
                yield delta
        except ModelError as failure:
            answer = advisor.compose(draft, Written(notices=(failure_notice(failure.kind, language),)))
        if answer.mode == "deterministic":
            for delta in text.replace(composed, answer.notices[0]):
                yield delta
        yield _timed(answer, started, first)


def _timed(answer: Answer, started: float, first: float | None = None) -> Answer:
    spent = {"first_token": first - started} if first is not None else {}
    spent["model"] = time.perf_counter() - started
    timings = {**answer.timings_ms, **{name: round(seconds * 1000, 3) for name, seconds in spent.items()}}
    timings["total"] = round(answer.timings_ms.get("total", 0.0) + timings["model"], 3)
    return replace(answer, timings_ms=MappingProxyType(timings))
