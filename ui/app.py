"""The composition root: builds the advisor and the application from the settings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy.exc import SQLAlchemyError

from trainmedic.kb.errors import StoreError
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.store.embedder import OpenAIEmbedder
from trainmedic.service.access.audit_log import AuditLog
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import Answerer, TemplateAnswerer
from trainmedic.service.observers.webhook import webhook_of
from trainmedic.service.settings import MEBIBYTE, Settings
from trainmedic.service.storage.database import open_database
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory, Observer
from trainmedic.service.storage.silence import patience
from trainmedic.ui.channels.registry import channels_of
from trainmedic.ui.context import AppContext
from trainmedic.ui.loading import load_knowledge
from trainmedic.ui.reload import Reloader, state_of

if TYPE_CHECKING:
    from fastapi import FastAPI
    from mcp.server import MCPServer
    from sqlalchemy.engine import Engine

    from trainmedic.kb.store.embedder import Embedder
    from trainmedic.service.access.gate import Gate
    from trainmedic.service.access.slots import Worker
    from trainmedic.service.api.app import Background
    from trainmedic.service.api.metrics import Metrics
    from trainmedic.service.api.probes import Probe
    from trainmedic.service.llm.chat import ChatModel
    from trainmedic.service.llm.model_calls import ModelCall
    from trainmedic.ui.chat.app import Shell

log = logging.getLogger("trainmedic")


def build_advisor(
    settings: Settings,
    *,
    with_history: bool = True,
    observers: Sequence[Observer] = (),
    at_once: bool = False,
    database: Engine | None = None,
    embedder: Embedder | None = None,
    read: Read = parse,
) -> Advisor:
    """The advisor of the settings, with its history in ``database`` if that is open already, and so its ``embedder``.

    ``at_once``: with an index of words only, if a whole one takes more than some seconds to build. ``read`` is this
    process only for commands on their user's own files; a service reads in bounded processes.
    """
    from trainmedic.service.dialogue.reading import ReadOnce

    knowledge = load_knowledge(settings, embedder, at_once=at_once)
    history = None
    if with_history and settings.history_days > 0:
        history = History(database or database_of(settings))
        with patience():
            history.forget(timedelta(days=settings.history_days))
    return Advisor(knowledge, ReadOnce(read), Memory(history, observers))


def database_of(settings: Settings) -> Engine:
    """The database of the settings. Raises `StoreError` if it cannot be opened."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return open_database(settings.history_url)


def build_gate(settings: Settings, database: Engine) -> Gate:
    """Access by the keys of the settings and of the database."""
    from trainmedic.service.access.counters import DatabaseCounters
    from trainmedic.service.access.gate import Gate
    from trainmedic.service.access.keys import KeyStore, SessionStore
    from trainmedic.service.access.limits import RateLimits
    from trainmedic.service.access.principals import Access

    counters = DatabaseCounters(database) if settings.rate_limit_storage.get_secret_value() == "database" else None
    access = Access(settings, KeyStore(database), SessionStore(database))
    audit_log = AuditLog(database) if settings.journal_days else None
    return Gate(settings, access, RateLimits(settings, counters), audit_log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The context shared by all channels, and the tasks to run beside them."""

    context: AppContext
    model: ChatModel | None
    worker: Worker
    background: tuple[Background, ...]
    reloader: Reloader


def build_service(
    settings: Settings,
    observers: Sequence[Observer] = (),
    on_model_call: Callable[[ModelCall], None] = lambda call: None,
) -> Service:
    """Put advisor, model and webhook together, once for all channels.

    If its index has words only, the reloader makes it whole in the background.
    """
    from trainmedic.service.access.slots import Worker
    from trainmedic.service.dialogue.reading import ReadingPool

    background: list[Background] = []
    if settings.otlp_endpoint:
        from trainmedic.ui.tracing import sending_traces

        background.append(partial(sending_traces, settings.otlp_endpoint))
    webhook = webhook_of(settings)
    if webhook is not None:
        observers = (*observers, webhook)
        background.append(webhook.running)
    reading = ReadingPool(settings.readers, settings.reading_timeout_s, settings.reading_memory_mb * MEBIBYTE)
    reading.preload()
    background.append(reading.running)
    database = database_of(settings)
    background.append(partial(forgetting, [(AuditLog(database), timedelta(days=settings.journal_days))]))
    model = build_model(settings, on_model_call) if settings.model_base_url else None
    if model is not None:
        background.append(partial(serving, model))
    before = state_of(settings)
    advisor = build_advisor(
        settings, observers=observers, at_once=not settings.wait_for_index, database=database, read=reading.read
    )
    reloader = Reloader(settings, advisor, seen=before)
    background.append(reloader.running)
    history = advisor.memory.history
    if history is not None:
        background.append(partial(forgetting, [(history, timedelta(days=settings.history_days))]))
    worker = Worker(settings.concurrency, settings.request_timeout_s)
    context = AppContext(
        settings=settings,
        advisor=advisor,
        answerer=answerer_of(settings, advisor, model),
        executor=worker.run,
        probe_model=model_probe(settings) if settings.model_base_url else None,
        gate=build_gate(settings, database),
    )
    return Service(context=context, model=model, worker=worker, background=tuple(background), reloader=reloader)


def answerer_of(settings: Settings, advisor: Advisor, model: ChatModel | None) -> Answerer:
    """The template, or the model over it."""
    if model is None:
        return TemplateAnswerer(advisor)
    from trainmedic.service.assistant import Assistant

    return Assistant(advisor, model, restate=settings.model_restate, rerank=settings.model_rerank)


def build_app(settings: Settings) -> FastAPI:
    """The web application: the API over one advisor, and on the same port the pages, MCP and the bots."""
    from trainmedic.kb.frameworks.canonical import warm
    from trainmedic.service.api.metrics import Metrics

    metrics = Metrics()
    service = build_service(settings, (metrics,), metrics.on_model_call)
    background: list[Background] = list(service.background)
    channels = channels_of(service.context)
    background += [channel.running for channel in channels]
    # What loads on first use; the first question must not wait for it. Processes that read have their tables loaded.
    known = service.context.advisor.knowledge
    if known.index.vectors.size:
        known.embedder.embed_query("loss is nan")
    if not settings.readers:
        warm()
    app = _application(replace(service, background=tuple(background)), metrics)
    for channel in channels:
        channel.attach(app)
    _add_pages(app, service.context)
    return app


def _application(service: Service, metrics: Metrics) -> FastAPI:
    """The API and MCP. Bots come after it, the pages last."""
    from trainmedic.service.api.app import create_app
    from trainmedic.ui.mcp import http as mcp

    context = service.context
    app = create_app(
        context.advisor,
        context.settings,
        {**probes_of(context.advisor, service.model), "reload": service.reloader.trouble},
        context.answerer,
        worker=service.worker,
        background=service.background,
        metrics=metrics,
        library=service.reloader,
        gate=context.gate,
    )
    mcp.attach(app, context, load_mcp_server)  # it inserts its route before all others
    return app


def _add_pages(app: FastAPI, context: AppContext) -> None:
    """Serve the pages on all paths that are left: call it last."""
    if context.settings.pages and find_spec("gradio") is not None:
        from trainmedic.ui.chat import mount

        make = partial(make_shell, context)
        if context.settings.oidc_issuer:  # what is wrong with its settings is said at the start
            made = make()
            mount.attach(app, lambda: made)
        else:
            mount.attach(app, make)
    elif context.settings.pages:
        log.warning("no pages: the package gradio is missing")


def load_mcp_server(context: AppContext) -> MCPServer[Any]:
    """Import the MCP server and make one. Raises `ImportError` without the extra ``mcp``."""
    from trainmedic.ui.mcp.server import make_server

    return make_server(context)


def make_shell(context: AppContext) -> Shell:
    """What is in front of the pages. Importing it takes a tenth of a second."""
    from trainmedic.ui.chat.app import Shell

    return Shell(context, load_pages)


def load_pages(context: AppContext) -> FastAPI:
    """Import the pages and make them; Gradio takes a second and a half to load."""
    from trainmedic.ui.chat.pages import make_pages

    return make_pages(context)


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
    from trainmedic.service.llm.chat import Message
    from trainmedic.service.llm.prompts import system_text

    warming = asyncio.create_task(model.warm((Message(role="system", content=system_text()),)))
    try:
        yield
    finally:
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
        await model.aclose()


def model_probe(settings: Settings) -> Callable[[], Awaitable[str | None]]:
    """A probe of the model's endpoint with a connection of its own; it returns the problem, or None."""

    async def probe() -> str | None:
        model = build_model(settings)
        try:
            return await model.probe()
        finally:
            await model.aclose()

    return probe


def build_model(settings: Settings, on_call: Callable[[ModelCall], None] = lambda call: None) -> ChatModel:
    """The configured model; no connection is made yet."""
    from trainmedic.service.llm.chat import ChatModel, ModelOptions

    return ChatModel(
        ModelOptions(
            base_url=settings.model_base_url,
            name=settings.model_name,
            api_key=settings.model_api_key.get_secret_value(),
            context_tokens=settings.model_context_tokens,
            max_tokens=settings.model_max_tokens,
            temperature=settings.model_temperature,
            timeout_s=settings.model_timeout_s,
            first_token_s=settings.model_first_token_s,
            concurrency=settings.model_concurrency,
        ),
        on_call=on_call,
    )
