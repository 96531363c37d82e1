"""Sending traces to an OpenTelemetry collector. The SDK also reads its own variables, such as OTEL_TRACES_SAMPLER."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from opentelemetry import trace

TRACES = "/v1/traces"


@asynccontextmanager
async def sending_traces(endpoint: str) -> AsyncIterator[None]:
    """Send the spans of this process until the end, and then those that are left.

    Raises `ImportError` without the extra ``otel``.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({SERVICE_NAME: "trainmedic", SERVICE_VERSION: version("trainmedic")})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    url = endpoint.rstrip("/")
    url = url if url.endswith(TRACES) else url + TRACES
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        await asyncio.to_thread(provider.shutdown)
