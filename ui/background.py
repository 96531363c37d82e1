"""Background tasks of a service, and the conditions of its readiness."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.embedder import OpenAIEmbedder
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.probes import Probe
from trainmedic.service.diagnosis.prompt import instructions
from trainmedic.service.diagnosis.roles import standing
from trainmedic.service.llm.chat import ChatModel, Message
from trainmedic.service.settings import Settings
from trainmedic.service.storage.silence import patience

log = logging.getLogger("trainmedic")


def probes_of(advisor: Advisor, model: ChatModel | None) -> Mapping[str, Probe]:
    """The probes of ``/readyz``: the model, the history, and the embedder's endpoint if it has one."""
    probes: dict[str, Probe] = {"model": model.probe} if model is not None else {}
    history = advisor.memory.history
    if history is not None:

        async def unreachable() -> str | None:
            try:
                await asyncio.to_thread(history.ping)
            except StoreError as error:
                return error.message
            return None

        probes["history"] = unreachable
    embedder = advisor.knowledge.embedder
    if isinstance(embedder, OpenAIEmbedder):

        async def trouble() -> str | None:
            return embedder.trouble

        probes["embedder"] = trouble
    return probes


def standing_of(settings: Settings, model: ChatModel | None) -> Probe | None:
    """Probe by which ``/readyz`` tells the role and the abilities of the model."""
    if model is None:
        return None
    return partial(standing, model, settings.calibrations, settings.model.role)


class Forgetful(Protocol):
    def forget(self, older_than: timedelta) -> int:
        """Delete what is older; returns how much."""
        ...


@asynccontextmanager
async def forgetting(kept: Sequence[tuple[Forgetful, timedelta]], every_s: float = 3600.0) -> AsyncIterator[None]:
    """Delete what is past its time at the start and every ``every_s`` seconds while the service runs."""

    async def forget() -> None:
        while True:
            for store, age in kept:
                try:
                    with patience():
                        await asyncio.to_thread(store.forget, age)
                except (StoreError, SQLAlchemyError) as error:
                    log.warning("old records could not be deleted: %s", type(error).__name__)
            await asyncio.sleep(every_s)

    task = asyncio.create_task(forget(), name="retention")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def serving(model: ChatModel) -> AsyncIterator[None]:
    """Warm up the model while the first requests come in, and close its connections at the end."""
    warming = asyncio.create_task(model.warm((Message(role="system", content=instructions()),)))
    try:
        yield
    finally:
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
        await model.aclose()
