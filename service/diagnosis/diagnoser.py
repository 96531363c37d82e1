"""A model's diagnosis of one draft: asked, proved, and asked once more where the evidence objects."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from langchain_core.messages import BaseMessage

from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import StepView
from trainmedic.service.answering import Executor, Stage
from trainmedic.service.diagnosis.brief import Brief, brief_of, cost
from trainmedic.service.diagnosis.confidence import Calibration
from trainmedic.service.diagnosis.form import DiagnosisForm
from trainmedic.service.diagnosis.investigation import Investigation
from trainmedic.service.diagnosis.prompt import identities_in, instructions, prompt_of
from trainmedic.service.diagnosis.proof import Proof, prove
from trainmedic.service.diagnosis.toolbox import Toolbox
from trainmedic.service.llm.chat import ChatModel, Message, ModelError
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.judgement import Judgement

MOST_TOKENS = 12_000
"""Tokens of a prompt, whatever the context holds."""
MARGIN = 300
"""Tokens left free for the chat template and the schema."""
LOOKED_UP = 0.3
"""The share of the prompt that is left free for what an investigation finds."""
TIMES = 2
"""The time of an investigation as a multiple of the model's own limit."""
WEIGHED = 4
"""Causes that are named while a model weighs them."""
LEAST_S = 4.0
"""Time that must be left to ask once more."""
AGAIN = "The program checked your answer:\n{objections}\nFill the form again. Keep what still holds."
NOW = "Fill the form now."


@dataclass(slots=True, kw_only=True)
class _Consultation:
    """One draft before one model, until a point in time (`time.perf_counter`)."""

    draft: Draft
    advisor: Advisor
    model: ChatModel
    run: Executor
    brief: Brief
    calibration: Calibration
    max_tokens: int
    until: float
    usage: Counter[str] = field(default_factory=Counter)

    @property
    def left_s(self) -> float:
        return max(0.0, self.until - time.perf_counter())

    async def steps(self, prompt: list[Message | BaseMessage]) -> AsyncGenerator[StepView, None]:
        """Steps in which the model looks things up; ``prompt`` and the brief grow by them."""
        known = identities_in(self.draft)
        toolbox = Toolbox(self.advisor, self.draft, known, len(self.brief.facts))
        investigation = Investigation(model=self.model, toolbox=toolbox, run=self.run, conversation=prompt)
        try:
            async with aclosing(investigation.steps(self.left_s / 2)) as steps:
                async for step in steps:
                    yield step
        finally:
            self.brief = replace(self.brief, facts=(*self.brief.facts, *toolbox.facts))
        prompt.append(Message(role="user", content=NOW))

    async def judged(self, prompt: Sequence[Message | BaseMessage]) -> AsyncGenerator[Stage | Judgement, None]:
        """How far each hypothesis is proved, then the whole."""
        form, proof = await self._asked(prompt)
        objected = bool(proof.objections) and self.left_s > LEAST_S
        hypotheses = proof.judgement.hypotheses
        yield Stage(
            titles=tuple(each.title for each in hypotheses),
            supports=tuple(each.support for each in hypotheses),
            again=objected,
        )
        if objected:
            objections = "\n".join(f"- {objection}" for objection in proof.objections)
            said = Message(role="assistant", content=form.model_dump_json())
            again = Message(role="user", content=AGAIN.format(objections=objections))
            with suppress(ModelError):  # what was proved of the first answer stands
                _, proof = await self._asked((*prompt, said, again))
        yield replace(proof.judgement, usage=MappingProxyType(dict(self.usage)))

    async def _asked(self, prompt: Sequence[Message | BaseMessage]) -> tuple[DiagnosisForm, Proof]:
        form = await self.model.structured(
            prompt, DiagnosisForm, max_tokens=self.max_tokens, within_s=self.left_s, usage=self.usage
        )
        return form, await self.run(
            lambda: prove(form, self.brief, self.draft, self.advisor.pipeline, self.calibration)
        )


async def diagnosed(
    draft: Draft,
    advisor: Advisor,
    model: ChatModel,
    run: Executor,
    calibration: Calibration,
    *,
    investigate: bool = False,
) -> AsyncGenerator[Stage | StepView | Judgement, None]:
    """Steps of a diagnosis: what the model weighs and looks up, if it may ``investigate``, then its conclusion, proved.

    ``calibration`` is what was measured of the model. Raises `ModelError`, and what reading the changed files raises.
    """
    until = time.perf_counter() + model.options.timeout_s * (TIMES if investigate else 1)
    limits = await model.limits()
    room = min(MOST_TOKENS, limits.context_tokens - limits.max_tokens - MARGIN) - cost(instructions())
    room = int(room * (1 - LOOKED_UP)) if investigate else room
    consultation = _Consultation(
        draft=draft,
        advisor=advisor,
        model=model,
        run=run,
        brief=await run(lambda: brief_of(draft, room)),
        calibration=calibration,
        max_tokens=limits.max_tokens,
        until=until,
    )
    prompt: list[Message | BaseMessage] = [*prompt_of(draft, consultation.brief)]
    considered = draft.diagnosis.differential.causes[:WEIGHED]
    yield Stage(titles=tuple(cause.case.title.get(draft.language) for cause in considered))
    if investigate:
        async with aclosing(consultation.steps(prompt)) as steps:
            async for step in steps:
                yield step
    async with aclosing(consultation.judged(prompt)) as parts:
        async for part in parts:
            yield part


async def judgement_of(
    draft: Draft, advisor: Advisor, model: ChatModel, run: Executor, calibration: Calibration
) -> Judgement:
    """The model's immediate conclusion, proved. Raises as `diagnosed` does."""
    async with aclosing(diagnosed(draft, advisor, model, run, calibration)) as parts:
        async for part in parts:
            if isinstance(part, Judgement):
                return part
    raise AssertionError("a diagnosis ends with its judgement")
