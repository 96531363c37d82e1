"""The composition root: builds the advisor and the application from the settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from trainmedic.kb import plugins
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.library import Library
from trainmedic.service.access.audit_log import AuditLog
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import Answerer, TemplateAnswerer
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import open_database
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory, Observer
from trainmedic.service.storage.silence import patience
from trainmedic.ui.context import AppContext
from trainmedic.ui.loading import load_knowledge
from trainmedic.ui.releases import WAIT_S, learning, sources_in
from trainmedic.ui.reload import Reloader, state_of

if TYPE_CHECKING:
    from fastapi import FastAPI
    from sqlalchemy.engine import Engine

    from trainmedic.kb.store.embedder import Embedder
    from trainmedic.service.access.gate import Gate
    from trainmedic.service.access.slots import Worker
    from trainmedic.service.api.app import Background
    from trainmedic.service.llm.chat import ChatModel
    from trainmedic.service.llm.model_calls import ModelCall

READING_TIMEOUT_S = 10.0
"""The longest that reading the text of one request takes; its process is killed after it."""
AUDIT_LOG_KEPT = timedelta(days=365)
FIRST_TOKEN = 0.4
"""The part of a model's time in which its first word must come."""
TEXTS = 2
"""Texts that a model writes at once, for each question answered at once: they wait for its endpoint."""
READING_MEMORY = 2 * 1024**3
"""Address space of a process that reads, where the system has such a limit."""


def build_advisor(
    settings: Settings,
    *,
    with_history: bool = True,
    observers: Sequence[Observer] = (),
    at_once: bool = False,
    database: Engine | None = None,
    embedder: Embedder | None = None,
    read: Read = parse,
    source: Library | None = None,
) -> Advisor:
    """The advisor of the settings, with its history in ``database`` if that is open already, and so its ``embedder``.

    ``at_once``: with an index of words only, if a whole one takes more than some seconds to build. ``read`` is this
    process only for commands on their user's own files; a service reads in bounded processes.
    """
    from trainmedic.service.dialogue.reading import ReadOnce

    knowledge = load_knowledge(settings, embedder, at_once=at_once)
    source = source or Library(sources_in(settings.data_dir, settings.sources, settings.sources_mib))
    history = None
    if with_history and settings.history_days > 0:
        history = History(database or database_of(settings))
        with patience():
            history.forget(timedelta(days=settings.history_days))
    return Advisor(knowledge, learning(ReadOnce(read), source.sources), Memory(history, observers), source)


def database_of(settings: Settings) -> Engine:
    """The database of the settings. Raises `StoreError` if it cannot be opened."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return open_database(settings.history_url)


def build_gate(settings: Settings, database: Engine) -> Gate:
    """Access by the keys of the settings and of the database."""
    from trainmedic.service.access.gate import Gate
    from trainmedic.service.access.keys import KeyStore, SessionStore
    from trainmedic.service.access.limits import DatabaseCounters, RateLimits
    from trainmedic.service.access.principals import Access

    counters = DatabaseCounters(database) if settings.rate.limit_storage.get_secret_value() == "database" else None
    access = Access(settings, KeyStore(database), SessionStore(database))
    return Gate(settings, access, RateLimits(settings, counters), AuditLog(database))


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
    """Put advisor and model together, once for all channels.

    If its index has words only, the reloader makes it whole in the background.
    """
    from trainmedic.kb.sources.reader import ReaderOfReleases
    from trainmedic.service.access.slots import Worker
    from trainmedic.service.dialogue.reading import ReadingPool
    from trainmedic.ui.background import forgetting, serving
    from trainmedic.ui.tracing import sending_traces

    background: list[Background] = [sending_traces]
    releases = ReaderOfReleases(settings.data_dir / "sources", "off" if settings.sources == "off" else "installed")
    releases.attach()
    reading = ReadingPool(settings.concurrency, READING_TIMEOUT_S, READING_MEMORY, releases.read)
    reading.preload()
    background.append(reading.running)
    database = database_of(settings)
    background.append(partial(forgetting, [(AuditLog(database), AUDIT_LOG_KEPT)]))
    model = build_model(settings, on_model_call) if settings.model.base_url else None
    if model is not None:
        background.append(partial(serving, model))
    before = state_of(settings)
    source = Library(sources_in(settings.data_dir, settings.sources, settings.sources_mib, WAIT_S))
    source.derived.attach()
    background.append(source.running)
    advisor = build_advisor(
        settings, observers=observers, at_once=True, database=database, read=reading.read, source=source
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
        probe_model=model_probe(settings) if settings.model.base_url else None,
        gate=build_gate(settings, database),
    )
    return Service(context=context, model=model, worker=worker, background=tuple(background), reloader=reloader)


def answerer_of(settings: Settings, advisor: Advisor, model: ChatModel | None) -> Answerer:
    """The template, or the model over it."""
    if model is None:
        return TemplateAnswerer(advisor)
    from trainmedic.service.diagnosis.assistant import Assistant

    return Assistant(advisor, model, calibrations=settings.calibrations, role=settings.model.role)


def build_app(settings: Settings) -> FastAPI:
    """The web application: the API over one advisor, and on the same port the channels that are installed."""
    from trainmedic.service.api.app import create_app
    from trainmedic.service.api.metrics import Metrics
    from trainmedic.ui.background import probes_of, standing_of

    metrics = Metrics()
    service = build_service(settings, (metrics,), metrics.on_model_call)
    context = service.context
    # What loads on first use; the first question must not wait for it.
    known = context.advisor.knowledge
    if known.index.vectors.size:
        known.embedder.embed_query("loss is nan")
    app = create_app(
        context.advisor,
        settings,
        {**probes_of(context.advisor, service.model), "reload": service.reloader.trouble},
        context.answerer,
        worker=service.worker,
        background=service.background,
        metrics=metrics,
        library=service.reloader,
        gate=context.gate,
        standing=standing_of(settings, service.model),
    )
    for name in plugins.registered(plugins.CHANNELS):
        plugins.load(plugins.CHANNELS, name)(app, context)
    return app


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

    given = settings.model
    return ChatModel(
        ModelOptions(
            base_url=given.base_url,
            name=given.name,
            api_key=given.api_key.get_secret_value(),
            context_tokens=given.context_tokens,
            max_tokens=given.max_tokens,
            timeout_s=given.timeout_s,
            first_token_s=FIRST_TOKEN * given.timeout_s,
            concurrency=TEXTS * settings.concurrency,
        ),
        on_call=on_call,
    )
