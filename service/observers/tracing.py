"""Traces of the service. Without the extra ``otel`` and a collector to send them to, spans cost nothing.

Spans hold names, ids, counts and durations: nothing that a user or a model wrote.
"""

from __future__ import annotations

import uuid
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

TRACE_ID: ContextVar[str] = ContextVar("trace_id", default="")
"""The id of the request that is being answered; empty outside of one."""
tracer = trace.get_tracer("trainmedic")


def trace_id_of(span: Span) -> str:
    """The id of the span's trace; without tracing, one of its own."""
    number = span.get_span_context().trace_id
    return trace.format_trace_id(number) if number else uuid.uuid4().hex


def fail(span: Span, error: BaseException) -> None:
    """Mark a span as failed. The error's message is left out: it may quote the input."""
    kind = type(error).__name__
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, kind))
