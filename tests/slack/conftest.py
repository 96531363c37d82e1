"""The fake Slack and a bot connected to it, for all tests of this folder."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.slack.bots import QUICK, Slowly, bot_in
from tests.slack.fake import LocalSlack
from tests.slack.fake.fixtures import own_slack, strict
from trainmedic.service.advisor import Advisor
from trainmedic.ui.channels.slack.bot import SlackBot

__all__ = ["own_slack", "strict"]
Act = Callable[[SlackBot], Awaitable[None]]


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections that are refused are tried again at once."""
    monkeypatch.setattr("trainmedic.ui.channels.slack.calls.PAUSE_S", 0.01)


@pytest.fixture
def bot(
    request: pytest.FixtureRequest, strict: LocalSlack, advisor: Advisor, tmp_path: Path
) -> AbstractAsyncContextManager[SlackBot]:
    """For coroutines: a connected bot, with the settings that the mark ``bot`` names; ``streaming`` ones stream."""
    mark = request.node.get_closest_marker("bot")
    options = dict(mark.kwargs) if mark else {}
    if request.node.get_closest_marker("streaming"):
        options |= {"answerer": request.getfixturevalue("answerer"), "flush_s": QUICK}
    return bot_in(strict, advisor, tmp_path, **options)


@pytest.fixture
def answerer(request: pytest.FixtureRequest, advisor: Advisor) -> Slowly:
    """Waits in the middle of its answer; the mark ``streaming`` says what it says."""
    mark = request.node.get_closest_marker("streaming")
    assert mark is not None
    return Slowly(advisor, *mark.args, **mark.kwargs)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine with its bot in one event loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}

    async def acting() -> None:
        async with given.pop("bot") as bot:
            await pyfuncitem.obj(bot=bot, **given)

    asyncio.run(acting())
    return True


@pytest.fixture
def with_bot(strict: LocalSlack, advisor: Advisor, tmp_path: Path) -> Callable[..., None]:
    """Runs a coroutine with a connected bot; keywords are settings, or ``answerer``."""

    def run(act: Act, **options: Any) -> None:
        async def acting() -> None:
            async with bot_in(strict, advisor, tmp_path, **options) as bot:
                await act(bot)

        asyncio.run(acting())

    return run
