"""What a model's texts are worth over a set of questions.

Whether their citations hold, what had to be taken out or pointed out, how the model failed, and how long it took.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from statistics import median

from trainmedic.service.advisor import Advisor, PreparedAnswer
from trainmedic.service.answer import Answer
from trainmedic.service.answering import T, final_answer
from trainmedic.service.assistant import Assistant
from trainmedic.service.evaluation.causes import Evaluation, Item, Outcome, Share, evaluated, given, request_of
from trainmedic.service.llm.model import ChatModel, Delta, Form, Message, ModelError, ModelLimits
from trainmedic.service.llm.prompts import build
from trainmedic.service.llm.verified_answer import grounding_of
from trainmedic.service.llm.verify import verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One answer with the model beside it. ``stats`` are `service.llm.verify.Verified`'s, empty where it wrote
    nothing to
    verify; ``failure`` is the kind of `ModelError`, or empty. Times in milliseconds."""

    answer: Answer
    stats: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFigures:
    """The figures over the model's texts.

    ``citation_precision``: markers of the model whose source bears the sentence out. ``unsupported``: sentences that no
    source bears out. ``withdrawn`` and ``flagged`` count sentences taken out and names that stand nowhere. ``failures``
    by kind; ``unasked`` where the model had nothing to write about. Times are medians in milliseconds, None over none.
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


class _Overheard(ChatModel):
    """Another model, with what it writes for one question kept."""

    def __init__(self, inner: ChatModel) -> None:
        super().__init__(inner.options)
        self._inner = inner
        self.draft: list[str] = []
        self.failure = ""

    async def name(self) -> str:
        return await self._inner.name()

    async def limits(self) -> ModelLimits:
        return await self._inner.limits()

    async def count(self, texts: Sequence[str]) -> list[int]:
        return await self._inner.count(texts)

    async def structured(
        self, messages: Sequence[Message], form: type[Form], *, max_tokens: int, within_s: float | None = None
    ) -> Form:
        return await self._inner.structured(messages, form, max_tokens=max_tokens, within_s=within_s)

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, within_s: float | None = None
    ) -> AsyncGenerator[Delta, None]:
        try:
            async with aclosing(self._inner.stream(messages, max_tokens=max_tokens, within_s=within_s)) as deltas:
                async for delta in deltas:
                    if delta.anew:
                        self.draft.clear()
                    self.draft.append(delta.text)
                    yield delta
        except ModelError as failure:
            self.failure = failure.kind
            raise


async def written(item: Item, advisor: Advisor, model: ChatModel, *, restate: bool = True) -> Written:
    """One question answered as the service answers it."""
    overheard = _Overheard(model)
    seen: list[PreparedAnswer] = []

    async def run(call: Callable[[], T]) -> T:
        result = await asyncio.to_thread(call)
        seen.extend([result] if isinstance(result, PreparedAnswer) else [])
        return result

    try:
        answer = await final_answer(Assistant(advisor, overheard, restate=restate).stream(request_of(item), "", run))
        if overheard.failure or not overheard.draft:
            return Written(answer=answer, failure=overheard.failure)
        limits = await model.limits()
        prepared = next(each for each in seen if each.answer.id == answer.id)
        prompt = await build(prepared, model.count, context_tokens=limits.context_tokens, max_tokens=limits.max_tokens)
        checked = verify("".join(overheard.draft), grounding_of(prepared, prompt), answer.language)
        return Written(answer=answer, stats=checked.stats)
    finally:
        await overheard.aclose()


async def evaluate_texts(
    items: Sequence[Item], advisor: Advisor, model: ChatModel, *, parallel: int = 1, restate: bool = True
) -> tuple[Evaluation, TextFigures]:
    """Ask every item, ``parallel`` at once, and count: the usual figures, and those of the texts."""
    slots = asyncio.Semaphore(parallel)

    async def one(item: Item) -> tuple[Outcome, Written]:
        async with slots:
            found = await written(item, advisor, model, restate=restate)
            return given(item, found.answer), found

    done = await asyncio.gather(*(one(item) for item in items))
    return evaluated(tuple(outcome for outcome, _ in done)), text_figures([each for _, each in done])


def text_figures(texts: Sequence[Written]) -> TextFigures:
    """The figures over what the model wrote."""
    total: Counter[str] = Counter()
    for each in texts:
        total.update(each.stats)
    verified = [each for each in texts if each.stats]
    first = [each.answer.timings_ms["first_token"] for each in verified if "first_token" in each.answer.timings_ms]
    whole_ms = [each.answer.timings_ms["total"] for each in verified if "total" in each.answer.timings_ms]
    return TextFigures(
        texts=len(verified),
        citation_precision=Share(right=total["kept"], total=total["markers"]),
        unsupported=Share(right=total["inferred"], total=total["sentences"]),
        unknown_markers=total["unknown_markers"],
        withdrawn=total["withdrawn"],
        flagged=total["flagged"],
        failures=dict(sorted(Counter(each.failure for each in texts if each.failure).items())),
        unasked=sum(not each.stats and not each.failure for each in texts),
        first_token_ms=median(first) if first else None,
        total_ms=median(whole_ms) if whole_ms else None,
    )


def text_table(figures: TextFigures) -> str:
    """The figures as text."""
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
