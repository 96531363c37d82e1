"""Quality of a model's texts over a question set: citations, withdrawn and flagged sentences, failures, latency."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from trainmedic.service.advisor import Advisor
from trainmedic.service.agent.assistant import Assistant
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import T, final_answer
from trainmedic.service.llm.chat import ChatModel, Completion, ModelError, ModelLimits, Piece
from trainmedic.service.llm.prompts import build
from trainmedic.service.llm.verified_text import grounding_of
from trainmedic.service.llm.verify import verify
from trainmedic.service.pipeline import Draft
from trainmedic.ui.evaluation.causes import Evaluation, Item, Outcome, Share, evaluated, outcome_of, request_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """``stats`` come from `service.llm.verify`, empty if there was no text to verify; ``failure`` is the kind of
    `ModelError`, or empty."""

    answer: Answer
    stats: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFigures:
    """``citation_precision``: the model's markers whose source supports the sentence. ``unsupported``: sentences
    without one. ``withdrawn`` counts removed sentences, ``flagged`` names that appear in no source. ``failures`` by
    kind; ``unasked``: answers about which the model had nothing to write. Times are medians in milliseconds.
    """

    texts: int
    citation_precision: Share
    unsupported: Share
    unknown_markers: int
    withdrawn: int
    flagged: int
    failures: Mapping[str, int]
    unasked: int
    first_token_ms: float | None
    total_ms: float | None


class _Recorder(ChatModel):
    """A model that records what the inner one writes for one question."""

    def __init__(self, inner: ChatModel) -> None:
        super().__init__(inner.options)
        self._inner = inner
        self.draft = ""
        self.failure = ""

    async def name(self) -> str:
        return await self._inner.name()

    async def limits(self) -> ModelLimits:
        return await self._inner.limits()

    async def count(self, texts: Sequence[str]) -> list[int]:
        return await self._inner.count(texts)

    async def structured(self, *args: Any, **how: Any) -> Any:
        return await self._inner.structured(*args, **how)

    async def stream(self, *args: Any, **how: Any) -> AsyncGenerator[Piece | Completion, None]:
        try:
            async with aclosing(self._inner.stream(*args, **how)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Completion):
                        self.draft = piece.text
                    yield piece
        except ModelError as failure:
            self.failure = failure.kind
            raise


async def answer_of(item: Item, advisor: Advisor, model: ChatModel, *, restate: bool = True) -> ModelAnswer:
    recorder = _Recorder(model)
    seen: list[Draft] = []

    async def run(call: Callable[[], T]) -> T:
        result = await asyncio.to_thread(call)
        seen.extend([result] if isinstance(result, Draft) else [])
        return result

    try:
        answer = await final_answer(Assistant(advisor, recorder, restate=restate).stream(request_of(item), "", run))
        if recorder.failure or not recorder.draft:
            return ModelAnswer(answer=answer, failure=recorder.failure)
        limits = await model.limits()
        prepared = next(candidate for candidate in seen if candidate.id == answer.id)
        prompt = await build(prepared, model.count, context_tokens=limits.context_tokens, max_tokens=limits.max_tokens)
        checked = verify(recorder.draft, grounding_of(prepared, prompt), answer.language)
        return ModelAnswer(answer=answer, stats=checked.stats)
    finally:
        await recorder.aclose()


async def evaluate_texts(
    items: Sequence[Item], advisor: Advisor, model: ChatModel, *, parallel: int = 1, restate: bool = True
) -> tuple[Evaluation, TextFigures]:
    """Ask every item, ``parallel`` at once: the usual figures, and those of the texts."""
    slots = asyncio.Semaphore(parallel)

    async def one(item: Item) -> tuple[Outcome, ModelAnswer]:
        async with slots:
            text = await answer_of(item, advisor, model, restate=restate)
            return outcome_of(item, text.answer), text

    done = await asyncio.gather(*(one(item) for item in items))
    return evaluated(tuple(outcome for outcome, _ in done)), text_figures([text for _, text in done])


def text_figures(texts: Sequence[ModelAnswer]) -> TextFigures:
    total: Counter[str] = Counter()
    for text in texts:
        total.update(text.stats)
    verified = [text for text in texts if text.stats]
    timings = [text.answer.timings_ms for text in verified]
    first = [timing["first_token"] for timing in timings if "first_token" in timing]
    whole_ms = [timing["total"] for timing in timings if "total" in timing]
    return TextFigures(
        texts=len(verified),
        citation_precision=Share(right=total["kept"], total=total["markers"]),
        unsupported=Share(right=total["inferred"], total=total["sentences"]),
        unknown_markers=total["unknown_markers"],
        withdrawn=total["withdrawn"],
        flagged=total["flagged"],
        failures=dict(sorted(Counter(text.failure for text in texts if text.failure).items())),
        unasked=sum(not text.stats and not text.failure for text in texts),
        first_token_ms=median(first) if first else None,
        total_ms=median(whole_ms) if whole_ms else None,
    )


def text_table(figures: TextFigures) -> str:
    failures = ", ".join(f"{kind} {count}" for kind, count in figures.failures.items()) or "none"
    rows = {
        "texts": f"{figures.texts} (nothing to write about: {figures.unasked})",
        "citation precision": str(figures.citation_precision),
        "unsupported sentences": str(figures.unsupported),
        "markers of no source": str(figures.unknown_markers),
        "sentences withdrawn": str(figures.withdrawn),
        "names flagged": str(figures.flagged),
        "failures": failures,
        "first token, median": _milliseconds(figures.first_token_ms),
        "whole answer, median": _milliseconds(figures.total_ms),
    }
    width = max(len(name) for name in rows)
    return "\n".join(f"{name:{width}}  {value}" for name, value in rows.items()) + "\n"


def _milliseconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} ms"
