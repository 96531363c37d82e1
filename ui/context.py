"""Dependencies of every channel, assembled by the composition root."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmedic.service.access.gate import Gate
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import Answerer, Executor
from trainmedic.service.settings import Settings
from trainmedic.service.storage.memory import Memory

if TYPE_CHECKING:
    from fastapi import FastAPI


@dataclass(frozen=True, slots=True, kw_only=True)
class AppContext:
    """``answerer`` answers questions, with the model if one is configured.

    ``advisor`` serves everything else that needs the knowledge, ``memory`` what was stored; ``executor`` runs their
    calls in threads. ``probe_model`` says what is wrong with the model's endpoint (None: nothing); None without a
    model. ``gate`` decides who may do what.
    """

    settings: Settings
    advisor: Advisor
    answerer: Answerer
    executor: Executor
    probe_model: Callable[[], Awaitable[str | None]] | None = None
    gate: Gate | None = None

    @property
    def memory(self) -> Memory:
        """Stored conversations, answers and feedback."""
        return self.advisor.memory


def during(app: FastAPI, running: Callable[[], AbstractAsyncContextManager[None]]) -> None:
    """Enter ``running`` when the application has started, and leave it before the rest ends."""
    before = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(whole: FastAPI) -> AsyncIterator[Any]:
        async with before(whole) as state, running():
            yield state

    app.router.lifespan_context = lifespan
