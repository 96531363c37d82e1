"""The ASGI application over an advisor. Reads no environment and opens no connection by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from importlib.metadata import version as package_version
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from trainmedic.service.access.gate import Gate
from trainmedic.service.access.slots import Worker
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import Answerer, TemplateAnswerer
from trainmedic.service.api.admin import Library, make_admin_router
from trainmedic.service.api.errors import add_handlers
from trainmedic.service.api.metrics import Metrics
from trainmedic.service.api.middleware import add_middleware
from trainmedic.service.api.probes import CachedProbe, Probe, results
from trainmedic.service.api.resources import Readiness, Versions
from trainmedic.service.api.routes import json_response, make_router
from trainmedic.service.settings import Settings

FOR_AGENTS = Path(__file__).with_name("llms.txt")

Background = Callable[[], AbstractAsyncContextManager[None]]
"""Something that runs beside the requests, such as a connection to a chat service."""


def create_app(  # noqa: PLR0913 (one argument for each part that a composition may replace)
    advisor: Advisor,
    settings: Settings,
    probes: Mapping[str, Probe] | None = None,
    answerer: Answerer | None = None,
    *,
    worker: Worker | None = None,
    background: Sequence[Background] = (),
    metrics: Metrics | None = None,
    library: Library | None = None,
    gate: Gate | None = None,
    standing: Probe | None = None,
) -> FastAPI:
    """The API. ``probes`` are checked by ``/readyz``; one that fails or hangs makes it ``degraded``, never unready.
    ``standing`` tells there what the model is used for.

    ``answerer`` answers the questions, by default without a model. ``worker`` runs the advisor's calls. ``background``
    starts in this order with the application and ends in reverse. Answers and feedback are counted if ``metrics`` is
    among the advisor's observers. ``library`` is open to administrators. ``gate`` decides who may do what; by default
    the keys of the settings do.
    """
    answerer = answerer or TemplateAnswerer(advisor)
    metrics = metrics or Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # If one fails to start, those before it are stopped again.
        async with AsyncExitStack() as stack:
            for start in background:
                await stack.enter_async_context(start())
            yield

    app = FastAPI(
        title="trainmedic",
        version=package_version("trainmedic"),
        description="Why is my LLM training run broken, and what do I change?",
        docs_url=None,  # FastAPI's page loads scripts from another site, within the session of our pages
        redoc_url=None,
        lifespan=lifespan,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # its spans hold paths and errors' messages
    )
    add_middleware(app, settings, metrics, gate or Gate(settings))
    add_handlers(app)
    worker = worker or Worker(settings.concurrency, settings.request_timeout_s)
    app.include_router(make_router(advisor, answerer, worker))
    if library is not None:
        app.include_router(make_admin_router(library))
    _add_health(app, advisor, standing, metrics, probes or {})
    return app


def _add_health(
    app: FastAPI, advisor: Advisor, standing: Probe | None, metrics: Metrics, probes: Mapping[str, Probe]
) -> None:
    cached = {name: CachedProbe(probe) for name, probe in probes.items()}

    @app.get("/livez", tags=["health"])
    async def livez() -> dict[str, str]:
        """The process is alive."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["health"], response_model=Readiness)
    async def readyz() -> Response:
        """Knowledge loaded and rules compiled. ``degraded`` if a page failed or something optional is down."""
        knowledge = advisor.knowledge
        problems = (*knowledge.rules.failures, *knowledge.cases.failures)
        failures = list(dict.fromkeys(problem.page for problem in problems))
        down = {name: reason for name, reason in (await results(cached)).items() if reason is not None}
        building = knowledge.index.words_only
        # A model or embedder that is down leaves the template answers, so it never takes the service out of rotation.
        ready = bool(knowledge.rules.rules) and bool(knowledge.published)
        status = "ok" if ready and not failures and not down else "degraded" if ready else "unready"
        readiness = Readiness(
            status=status,
            cases=len(knowledge.case_pages),
            rules=len(knowledge.rules.rules),
            failed_pages=tuple(failures),
            down=down,
            model=await standing() if standing is not None and "model" not in down else None,
            index="building" if building else "ready",
            embedded_percent=advisor.embedded_percent if building else 100,
        )
        return json_response(readiness, 200 if ready else 503)

    def versions() -> Versions:
        knowledge = advisor.knowledge
        return Versions(
            trainmedic=package_version("trainmedic"),
            kb_version=knowledge.cases.version,
            ruleset_version=knowledge.rules.version,
            index=knowledge.index.manifest.id,
        )

    metrics.show_versions(lambda: asdict(versions()))

    @app.get("/version", tags=["health"])
    async def version() -> Versions:
        """Versions of the program, the cases, the rules and the index."""
        return versions()

    @app.get("/llms.txt", include_in_schema=False)
    async def for_agents() -> Response:
        """Describe this service, and how a program asks it, for language models."""
        return PlainTextResponse(FOR_AGENTS.read_text(encoding="utf-8"))

    @app.get("/metrics", tags=["health"], response_class=Response)
    async def prometheus() -> Response:
        """Prometheus metrics."""
        for name, reason in (await results(cached)).items():
            metrics.checks.labels(check=name).set(reason is None)
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)
