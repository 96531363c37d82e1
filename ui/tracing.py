"""Sending traces to an OpenTelemetry collector, as the SDK's own variables say."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from opentelemetry import trace

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
log = logging.getLogger("trainmedic")


@asynccontextmanager
async def sending_traces() -> AsyncIterator[None]:
    """Send the spans of this process until the end, and then those that are left, if `ENDPOINT` is set."""
    if not os.environ.get(ENDPOINT):
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:  # the variable is often set for all programs of a cluster
        log.warning("no traces are sent without the extra otel")
        yield
        return
    resource = Resource.create({SERVICE_NAME: "trainmedic", SERVICE_VERSION: version("trainmedic")})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        await asyncio.to_thread(provider.shutdown)
