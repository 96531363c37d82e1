"""A model's diagnosis of one draft: asked, proved, and asked once more where the evidence objects."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from trainmedic.service.answering import Executor
from trainmedic.service.diagnosis.brief import Brief, brief_of, cost
from trainmedic.service.diagnosis.confidence import Calibration, calibration_of
from trainmedic.service.diagnosis.form import DiagnosisForm
from trainmedic.service.diagnosis.prompt import instructions, prompt_of
from trainmedic.service.diagnosis.proof import Proof, prove
from trainmedic.service.llm.chat import ChatModel, Message, ModelError
from trainmedic.service.pipeline import Draft, Pipeline
from trainmedic.service.ranking.judgement import Judgement

MOST_TOKENS = 12_000
"""Tokens of a prompt, whatever the context holds."""
MARGIN = 300
"""Tokens left free for the chat template and the schema."""
LEAST_S = 4.0
"""Time that must be left to ask once more."""
AGAIN = "The program checked your answer:\n{objections}\nFill the form again. Keep what still holds."


@dataclass(slots=True, kw_only=True)
class _Consultation:
    """One draft before one model, until a point in time (`time.perf_counter`)."""

    draft: Draft
    pipeline: Pipeline
    model: ChatModel
    run: Executor
    brief: Brief
    calibration: Calibration
    max_tokens: int
    until: float
    usage: Counter[str] = field(default_factory=Counter)

    @property
    def left_s(self) -> float:
        return self.until - time.perf_counter()

    async def judgement(self) -> Judgement:
        prompt = prompt_of(self.draft, self.brief)
        form, proof = await self._asked(prompt)
        if proof.objections and self.left_s > LEAST_S:
            objections = "\n".join(f"- {objection}" for objection in proof.objections)
            said = Message(role="assistant", content=form.model_dump_json())
            again = Message(role="user", content=AGAIN.format(objections=objections))
            with suppress(ModelError):  # what was proved of the first answer stands
                _, proof = await self._asked((*prompt, said, again))
        return replace(proof.judgement, usage=MappingProxyType(dict(self.usage)))

    async def _asked(self, prompt: Sequence[Message]) -> tuple[DiagnosisForm, Proof]:
        form = await self.model.structured(
            prompt, DiagnosisForm, max_tokens=self.max_tokens, within_s=self.left_s, usage=self.usage
        )
        return form, await self.run(lambda: prove(form, self.brief, self.draft, self.pipeline, self.calibration))


async def diagnosed(
    draft: Draft, pipeline: Pipeline, model: ChatModel, run: Executor, calibration: Calibration | None = None
) -> Judgement:
    """What the model concludes, proved. Raises `ModelError`, and what reading the changed files raises."""
    until = time.perf_counter() + model.options.timeout_s
    limits = await model.limits()
    room = min(MOST_TOKENS, limits.context_tokens - limits.max_tokens - MARGIN) - cost(instructions())
    consultation = _Consultation(
        draft=draft,
        pipeline=pipeline,
        model=model,
        run=run,
        brief=await run(lambda: brief_of(draft, room)),
        calibration=calibration or calibration_of(await model.name()),
        max_tokens=limits.max_tokens,
        until=until,
    )
    return await consultation.judgement()
