"""How every channel asks: a stream of text that ends with the whole answer. Here without a model.

`service.assistant.Assistant` is the same with one; it is another module because importing the model's client takes
longer than everything else at start.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from trainmedic.kb.model.place import Source
from trainmedic.service.advisor import Advisor, Ask
from trainmedic.service.answer import Answer, StepView

T = TypeVar("T")


class Executor(Protocol):
    """Does the advisor's work where it does not hold up the event loop."""

    def __call__(self, call: Callable[[], T]) -> Awaitable[T]:
        """The result of ``call``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The program's whole answer before a model writes, and the masked texts that it read.

    Verdict, causes, findings and patch are final; the text may yet be a model's.
    """

    answer: Answer
    sources: tuple[Source, ...]


StreamPart: TypeAlias = Draft | StepView | str | Answer
Parts: TypeAlias = AsyncGenerator[StreamPart, None]
"""One draft; the steps of an investigation and pieces of the text as they come; then the answer."""


class Answerer(Protocol):
    """Whatever answers questions."""

    def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
        """The text as it comes, then the whole answer. Raises before the first part, or not at all."""


class TemplateAnswerer:
    """The advisor's own answers."""

    def __init__(self, advisor: Advisor) -> None:
        self._advisor = advisor

    async def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
        """The composed text at once, then its answer."""
        prepared = await run(lambda: self._advisor.prepare(request, trace_id))
        answer = prepared.answer
        yield Draft(answer=answer, sources=prepared.context.evidence.sources)
        yield answer.answer
        await run(lambda: self._advisor.remember(prepared, answer))
        yield answer


async def run_inline(call: Callable[[], T]) -> T:
    """For programs of one question: no other thread."""
    return call()


async def final_answer(parts: Parts) -> Answer:
    """The answer at the end of a stream."""
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, Answer):
                return part
    raise AssertionError("a stream ends with its answer")
