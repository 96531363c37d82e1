"""The fake Slack and a bot connected to it, for all tests of this folder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.slack.bots import bot_in
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
def with_bot(strict: LocalSlack, advisor: Advisor, tmp_path: Path) -> Callable[..., None]:
    """Runs a coroutine with a connected bot; keywords are settings, or ``answerer``."""

    def run(act: Act, **options: Any) -> None:
        async def acting() -> None:
            async with bot_in(strict, advisor, tmp_path, **options) as bot:
                await act(bot)

        asyncio.run(acting())

    return run
