"""Spans and figures of the calls of a model. They hold names, counts and durations, never what was written.

The names are those of OpenTelemetry's conventions for generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from langchain_core.messages import BaseMessage
from opentelemetry.trace import Span, SpanKind

from trainmedic.service.llm.chat_client import finish_of, usage_of
from trainmedic.service.observers.tracing import fail, tracer

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call of a model. ``first_token_s`` is None if nothing was streamed."""

    outcome: Literal["ok", "failed", "cancelled"]
    duration_s: float
    first_token_s: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0


class CallRecord:
    """A call that is under way."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.started = time.perf_counter()
        self.first_token_s: float | None = None
        self.tokens = (0, 0)

    def began(self) -> None:
        """A piece of the stream has arrived."""
        if self.first_token_s is None:
            self.first_token_s = time.perf_counter() - self.started
            self.span.set_attribute("gen_ai.response.time_to_first_chunk", self.first_token_s)

    def heard(self, message: BaseMessage) -> None:
        """Note the counts and the end in the message, or in a piece of it."""
        if usage := usage_of(message):
            self.tokens = usage["prompt_tokens"], usage["completion_tokens"]
            self.span.set_attribute("gen_ai.usage.input_tokens", self.tokens[0])
            self.span.set_attribute("gen_ai.usage.output_tokens", self.tokens[1])
        if finish := finish_of(message):
            self.span.set_attribute("gen_ai.response.finish_reasons", [finish])


@contextmanager
def recorded(model: str, base_url: str, max_tokens: int, on_call: Callable[[ModelCall], None]) -> Iterator[CallRecord]:
    """A span around one call, which is reported to ``on_call`` when it ends."""
    address = urlsplit(base_url)
    attributes: dict[str, str | int] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",  # what answers behind the compatible endpoint is not known
        "gen_ai.request.model": model,
        "gen_ai.request.max_tokens": max_tokens,
        "server.address": address.hostname or "",
    }
    if port := address.port or PORTS.get(address.scheme):
        attributes["server.port"] = port
    record = CallRecord(tracer.start_span(f"chat {model}", kind=SpanKind.CLIENT, attributes=attributes))
    outcome: Literal["ok", "failed", "cancelled"] = "ok"
    try:
        yield record
    except (asyncio.CancelledError, GeneratorExit):
        outcome = "cancelled"
        raise
    except BaseException as error:
        outcome = "failed"
        fail(record.span, error)
        raise
    finally:
        record.span.end()
        on_call(
            ModelCall(
                outcome=outcome,
                duration_s=time.perf_counter() - record.started,
                first_token_s=record.first_token_s,
                input_tokens=record.tokens[0],
                output_tokens=record.tokens[1],
            )
        )
