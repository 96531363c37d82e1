"""The advisor with a language model that decides: the program's draft at once, then the model's diagnosis, proved.

Findings are the program's alone. If the model is absent or fails, the answer is the program's own, and a notice says
why.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from trainmedic.kb.errors import TrainmedicError
from trainmedic.service import pipeline
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import Asked
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.answering import Draft, Executor, Parts, Stage, deltas, run_inline
from trainmedic.service.diagnosis.diagnoser import diagnosed
from trainmedic.service.diagnosis.election import election_of, weighed
from trainmedic.service.diagnosis.roles import Wanted, part_of
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.chat import ChatModel, ModelError
from trainmedic.service.ranking.judgement import Judgement

SHORT = (Relation.ACKNOWLEDGEMENT, Relation.SOLVED)
"""Messages that need no model: nothing is asked."""


class Assistant:
    """Answers questions, by the model if there is one. Belongs to one event loop."""

    def __init__(
        self,
        advisor: Advisor,
        model: ChatModel | None = None,
        *,
        calibrations: Path | None = None,
        role: Wanted = "auto",
    ) -> None:
        """``calibrations`` is the folder with what was measured of models here, ``role`` what the model is to do."""
        self._calibrations = calibrations
        self._role = role
        self.advisor = advisor
        self.model = model

    async def stream(self, request: Ask, trace_id: str = "", run: Executor = run_inline) -> Parts:
        """The program's draft at once, then the text, then the whole answer."""
        advisor = self.advisor.snapshot()
        draft = await run(lambda: advisor.prepare(request, trace_id))
        short = draft.context.intent.relation in SHORT
        model = None if request.mode == "deterministic" or short else self.model
        asked = self._unasked(draft, short=short)
        answer = await run(lambda: advisor.compose(draft, asked))
        # The final notices depend on the model.
        shown = answer if model is None else replace(answer, notices=())
        yield Draft(answer=shown, sources=draft.context.evidence.sources, decided=model is None)
        if model is not None:
            async with aclosing(self._diagnosed(draft, advisor, model, run)) as parts:
                async for part in parts:
                    if isinstance(part, Answer):
                        answer = part
                    else:
                        yield part
        for delta in deltas(answer.sections):
            yield delta
        yield await run(lambda: advisor.memory.remember(draft.asked, answer))

    def _unasked(self, draft: pipeline.Draft, *, short: bool) -> Asked | None:
        """Why the model was not asked; None if there is none."""
        if self.model is None:
            return None
        return Asked(notices=() if short else (messages("as_asked", draft.language),))

    async def _diagnosed(self, draft: pipeline.Draft, advisor: Advisor, model: ChatModel, run: Executor) -> Parts:
        """The steps of an investigation, then the answer: the program's own if the model fails."""
        started = time.perf_counter()
        steps: list[StepView] = []
        notices: tuple[str, ...] = ()
        judged, language = draft, draft.language
        try:
            async with aclosing(self._judged(draft, advisor, model, run)) as parts:
                async for part in parts:
                    if isinstance(part, pipeline.Draft):
                        judged = part
                    else:
                        steps += (part,) if isinstance(part, StepView) else ()
                        yield part
        except (ModelError, TrainmedicError) as failure:  # overloaded, for one; but there is an answer already
            kind = failure.kind if isinstance(failure, ModelError) else "busy"
            notices = (failure_notice(kind, language),)
        if judged.elector and _order(judged) != _order(draft):
            notices = (messages("elected", language, model=judged.elector),)
        asked = Asked(notices=notices, steps=tuple(steps))
        answer = await run(lambda: advisor.compose(judged, asked))
        spent = round((time.perf_counter() - started) * 1000, 3)
        timings = {**answer.timings_ms, "model": spent, "total": round(answer.timings_ms.get("total", 0.0) + spent, 3)}
        yield replace(answer, timings_ms=MappingProxyType(timings))

    async def _judged(
        self, draft: pipeline.Draft, advisor: Advisor, model: ChatModel, run: Executor
    ) -> AsyncGenerator[Stage | StepView | pipeline.Draft, None]:
        """The steps of an investigation, then the draft with what the model says of it; raises as `diagnosed` does."""
        calibration, role = await part_of(model, self._calibrations, self._role)
        if role == "elects":
            election = await election_of(draft, model, run, calibration.ways) if calibration.ways else None
            if election is not None:
                yield await run(lambda: weighed(draft, election, advisor.pipeline, calibration))
            return
        if role == "unused":
            return
        look = draft.request.mode == "investigate" and (model.abilities is None or model.abilities.tools)
        async with aclosing(diagnosed(draft, advisor, model, run, calibration, investigate=look)) as parts:
            async for part in parts:
                yield replace(draft, judgement=part) if isinstance(part, Judgement) else part


def _order(draft: pipeline.Draft) -> tuple[str, ...]:
    return tuple(cause.case.id for cause in draft.diagnosis.causes)


def failure_notice(kind: str, language: str) -> str:
    """The notice for a `ModelError` of this kind."""
    return messages("model_failed", language, why=messages(f"failures.{kind}", language))
