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
from trainmedic.service.advisor import Advisor, PreparedAnswer
from trainmedic.service.agent import investigate
from trainmedic.service.answer import Answer
from trainmedic.service.answering import Draft, Executor, ModelText, Parts, deltas, run_inline
from trainmedic.service.composition.messages import messages
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.chat import ChatModel, Completion, ModelError
from trainmedic.service.llm.generation import generated
from trainmedic.service.llm.prompts import Prompt
from trainmedic.service.llm.query_rewrite import rewritten_query
from trainmedic.service.llm.rerank import choices_of, is_uncertain
from trainmedic.service.llm.verified_answer import failure_notice, opening_sections, verified_answer

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
        prepared = await run(lambda: advisor.prepare(request, trace_id))
        relation = prepared.context.intent.relation
        if self.model is None or request.mode == "deterministic" or relation in SHORT:
            answer = prepared.answer
            if self.model is not None:
                reason = () if relation in SHORT else (messages("as_asked", answer.language),)
                answer = replace(answer, notices=(*reason, *answer.notices[1:]))
            yield Draft(answer=answer, sources=prepared.context.evidence.sources)
            for delta in deltas(answer.sections):
                yield delta
        else:
            started = time.perf_counter()
            if self._restate and prepared.answer.verdict in ("need_input", "not_in_kb"):
                prepared = await self._restated(prepared, advisor, self.model, trace_id, run)
            if self._rerank and is_uncertain(prepared):
                prepared = await self._reranked(prepared, advisor, self.model, run)
            answer = replace(prepared.answer, notices=())  # the final ones depend on the model
            yield Draft(answer=answer, sources=prepared.context.evidence.sources)
            write = self._investigated if request.mode == "investigate" else self._written
            unread = prepared.answer.notices[1:]  # the first is that there is no model
            async with aclosing(write(prepared, advisor, self.model, started, run)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        answer = replace(part, notices=(*part.notices, *unread))
                    else:
                        yield part
        yield await run(lambda: advisor.memory.remember(prepared.asked, answer))

    async def _restated(
        self, prepared: PreparedAnswer, advisor: Advisor, model: ChatModel, trace_id: str, run: Executor
    ) -> PreparedAnswer:
        """Prepare again with the rewritten question, and use that if its answer is clearer."""
        words = await rewritten_query(prepared.context.evidence.question, model)
        if not words:
            return prepared
        try:
            other = await run(lambda: advisor.prepare(prepared.request, trace_id, restated=words))
        except TrainmedicError:  # overloaded, but there is an answer already
            return prepared
        clearer = other.answer.verdict == "answered" or (other.answer.causes and not prepared.answer.causes)
        return other if clearer else prepared

    async def _reranked(
        self, prepared: PreparedAnswer, advisor: Advisor, model: ChatModel, run: Executor
    ) -> PreparedAnswer:
        """The answer with the causes first that the model puts first; the same if it puts none or time is short."""
        choices = await choices_of(prepared, model)
        if not choices:
            return prepared
        try:
            return await run(lambda: advisor.reordered(prepared, choices))
        except TrainmedicError:  # overloaded, but there is an answer already
            return prepared

    async def _investigated(
        self, prepared: PreparedAnswer, advisor: Advisor, model: ChatModel, started: float, run: Executor
    ) -> Parts:
        """The steps and the text of an investigation; the advisor's text if it fails."""
        async with aclosing(investigate(prepared, model, advisor, started, run)) as parts:
            async for part in parts:
                yield _timed(part, started) if isinstance(part, Answer) else part

    async def _written(
        self, prepared: PreparedAnswer, _: Advisor, model: ChatModel, started: float, run: Executor = run_inline
    ) -> Parts:
        """The model's text of one answer; the advisor's text if the model fails."""
        composed = prepared.answer
        language = composed.language
        if not composed.causes:
            # There are no sources for a text.
            for delta in deltas(composed.sections):
                yield delta
            yield _timed(replace(composed, notices=(messages("nothing_to_write", language),)), started)
            return
        prompt: Prompt
        first: float | None = None
        text = ModelText(lambda: opening_sections(prepared, prompt.sources))
        try:
            async with aclosing(generated(prepared, model, started + model.options.timeout_s)) as parts:
                async for part in parts:
                    if isinstance(part, Prompt):
                        prompt = part
                    elif isinstance(part, Completion):
                        completion = part
                    else:
                        first = first or time.perf_counter()
                        for delta in text.write(part):
                            yield delta
            answer, tail = verified_answer(prepared, prompt, completion.text, await model.name(), cut=completion.cut)
            answer = replace(answer, usage=MappingProxyType(dict(completion.usage)))
            for delta in text.end(tail):
                yield delta
        except ModelError as failure:
            answer = replace(composed, notices=(failure_notice(failure.kind, language),))
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
