"""The interface through which every channel asks: a stream of text that ends with the whole answer.

`TemplateAnswerer` implements it without a model, `service.agent.assistant.Assistant` with one; that is a room of its
own because importing the model's client takes longer than everything else at start.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from trainmedic.kb.model.place import Source
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, Section, StepView
from trainmedic.service.dialogue.request import Ask

T = TypeVar("T")


class Executor(Protocol):
    """Runs the advisor's blocking work without blocking the event loop."""

    def __call__(self, call: Callable[[], T]) -> Awaitable[T]:
        """The result of ``call``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The program's whole answer before a model writes, and the masked texts that it read.

    Verdict, causes, findings and patch are final; the text may yet be a model's.
    """

    answer: Answer
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the streamed text, and the kind of its section."""

    kind: str
    text: str


def deltas(sections: Sequence[Section], *, after: bool = False) -> list[Delta]:
    """Sections as they are streamed; ``after``: something was streamed before them."""
    return [
        Delta(section.kind, f"\n\n{section.markdown}" if after or number else section.markdown)
        for number, section in enumerate(sections)
    ]


def after_model(answer: Answer) -> Sequence[Section]:
    """The program's own sections after a model's text."""
    kinds = [section.kind for section in answer.sections]
    return answer.sections[kinds.index("model_text") + 1 :] if "model_text" in kinds else ()


class ModelText:
    """The deltas of an answer that a model writes: ``opening`` gives the sections before its first words."""

    def __init__(self, opening: Callable[[], Sequence[Section]]) -> None:
        self.begun = False
        self._opening = opening

    def write(self, text: str) -> list[Delta]:
        """The model's next words."""
        if self.begun:
            return [Delta("model_text", text)]
        self.begun = True
        return deltas((*self._opening(), Section(kind="model_text", body=text)))

    def end(self, sections: Sequence[Section]) -> list[Delta]:
        """The program's sections after the model's words."""
        if not sections or self.begun:
            return deltas(sections, after=True)
        return deltas((*self._opening(), *sections))

    def replace(self, composed: Answer, reason: str) -> list[Delta]:
        """The composed answer, after the reason why words already streamed do not count."""
        if not self.begun:
            return deltas(composed.sections)
        return [Delta("notice", f"\n\n---\n\n{reason}"), *deltas(composed.sections, after=True)]


StreamPart: TypeAlias = Draft | StepView | Delta | Answer
Parts: TypeAlias = AsyncGenerator[StreamPart, None]
"""One draft; the steps of an investigation and pieces of the text as they come; then the answer."""


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
