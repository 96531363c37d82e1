"""The interface through which every channel asks: a stream of text that ends with the whole answer.

`TemplateAnswerer` implements it without a model, `service.diagnosis.assistant.Assistant` with one; importing a model's
client takes longer than everything else at start.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from trainmedic.kb.model.place import Source
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, CauseSupport, Section, StepView, texts
from trainmedic.service.dialogue.request import Ask

T = TypeVar("T")


class Executor(Protocol):
    """Runs the advisor's blocking work without blocking the event loop."""

    def __call__(self, call: Callable[[], T]) -> Awaitable[T]:
        """The result of ``call``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The program's whole answer, and the masked texts that it read.

    Its findings are final; verdict and causes too if ``decided``: no model will be asked.
    """

    answer: Answer
    sources: tuple[Source, ...]
    decided: bool = True


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the streamed text, and the kind of its section."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a model's diagnosis stands: the titles of what it weighs, or of its hypotheses with how far each is proved
    (``supports``), and whether it is asked once more because the evidence objects."""

    titles: tuple[str, ...]
    supports: tuple[CauseSupport, ...] = ()
    again: bool = False


def deltas(sections: Sequence[Section]) -> list[Delta]:
    """Sections as they are streamed."""
    return [
        Delta(section.kind, f"\n\n{text}" if number else text)
        for number, (section, text) in enumerate(zip(sections, texts(sections), strict=True))
    ]


StreamPart: TypeAlias = Draft | StepView | Stage | Delta | Answer
Parts: TypeAlias = AsyncGenerator[StreamPart, None]
"""One draft; the stages of a diagnosis, what it looks up and pieces of the text as they come; then the answer."""


class Answerer(Protocol):
    def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
        """The text in pieces, then the whole answer. Raises before the first part, or not at all."""


class TemplateAnswerer:
    def __init__(self, advisor: Advisor) -> None:
        self._advisor = advisor

    async def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
        """The template text, then its answer."""
        advisor = self._advisor.snapshot()
        prepared = await run(lambda: advisor.prepare(request, trace_id))
        answer = await run(lambda: advisor.compose(prepared))
        yield Draft(answer=answer, sources=prepared.context.evidence.sources)
        for delta in deltas(answer.sections):
            yield delta
        yield await run(lambda: advisor.memory.remember(prepared.asked, answer))


async def run_inline(call: Callable[[], T]) -> T:
    """Run the call inline, for the command line."""
    return call()


async def final_answer(parts: Parts) -> Answer:
    """The answer at the end of a stream."""
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, Answer):
                return part
    raise AssertionError("a stream ends with its answer")
