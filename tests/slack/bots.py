"""A bot of its own for a test: over the shared knowledge, connected to the local Slack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from tests.slack.fake import LocalSlack
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.answering import Answerer, Delta, Draft, Executor, Parts, TemplateAnswerer
from trainmedic.service.configuration import settings_from
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.ui.app import model_probe
from trainmedic.ui.channels.slack.bot import SlackBot
from trainmedic.ui.channels.slack.live import Streams
from trainmedic.ui.context import AppContext

T = TypeVar("T")
QUICK = 0.05
"""Seconds between two appends in tests of streams."""
NEVER = 60.0
"""The same in all others: there no answer takes long enough to be streamed."""
ANSWER = 2
"""Messages of an answer: what leads, and the details."""
COMMAND = (
    "deepspeed --module openrlhf.cli.train_kto --pretrain Qwen/Qwen2-7B-Instruct --micro_train_batch_size 1 "
    "--vanilla_loss --learning_rate 5e-7 --bf16"
)
"""A launch command whose fault the rules find."""
QUESTION = f"the KTO loss is NaN from the first step, why?\n```{COMMAND}```"


async def threads(call: Callable[[], T]) -> T:
    """The advisor's work beside the event loop."""
    return await asyncio.to_thread(call)


def settings_of(slack: LocalSlack, folder: Path, **more: Any) -> Settings:
    """Settings of a bot in this workspace, by Socket Mode."""
    given: dict[str, Any] = {
        "data_dir": folder,
        "slack_bot_token": slack.world.bot_token,
        "slack_app_token": slack.world.app_token,
        **more,
    }
    return settings_from(given)


@asynccontextmanager
async def bot_in(
    slack: LocalSlack,
    advisor: Advisor,
    folder: Path,
    *,
    answerer: Answerer | None = None,
    shutdown_s: float = 5.0,
    flush_s: float = NEVER,
    **more: Any,
) -> AsyncIterator[SlackBot]:
    """The bot, connected; ``more`` are further settings."""
    settings = settings_of(slack, folder, **more)
    if settings.model.base_url:
        import_module("trainmedic.service.llm.chat")  # as a service with a model has at its start
    context = AppContext(
        settings=settings,
        advisor=advisor,
        answerer=answerer or TemplateAnswerer(advisor),
        executor=threads,
        probe_model=model_probe(settings) if settings.model.base_url else None,
    )
    async with SlackBot(context, streams=Streams(flush_s=flush_s), ping_s=1.0, shutdown_s=shutdown_s) as bot:
        await slack.until_connected()
        yield bot


class Slowly:
    """An answerer that answers as the advisor does, but waits: for `start`, for `go` in between, for `end`.

    ``said`` comes before the first wait, ``later`` after it. ``final`` changes the answer.
    """

    def __init__(
        self,
        advisor: Advisor,
        *said: str | StepView | Delta,
        later: tuple[str | StepView | Delta, ...] = (),
        final: Callable[[Answer], Answer] = lambda answer: answer,
    ) -> None:
        self.go = asyncio.Event()
        self.start, self.end = asyncio.Event(), asyncio.Event()
        self.start.set()
        self.end.set()
        self.asked: list[Ask] = []
        self.ended = 0
        self._composed = TemplateAnswerer(advisor)
        self._said, self._later, self._final = said, later, final

    async def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
        """Draft, what is said, the wait, what is said later, the answer."""
        self.asked.append(request)
        await self.start.wait()
        try:
            async with aclosing(self._composed.stream(request, trace_id, run)) as parts:
                async for part in parts:
                    if isinstance(part, Draft):
                        yield part
                        for word in self._said:
                            yield part_of(word)
                        await self.go.wait()
                        for word in self._later:
                            yield part_of(word)
                        await self.end.wait()
                    elif isinstance(part, Answer):
                        yield self._final(part)
        finally:
            self.ended += 1


def part_of(said: str | StepView | Delta) -> Delta | StepView:
    """Bare text is the model's."""
    return Delta("model_text", said) if isinstance(said, str) else said


class Failing:
    """An answerer that raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
        """Nothing but the error."""
        if request.question:
            raise self._error
        yield Delta("lead", "")


async def settled(bot: SlackBot) -> None:
    """Wait until the bot has nothing to do."""
    while bot.handler.tasks.running:
        await asyncio.sleep(0.005)
