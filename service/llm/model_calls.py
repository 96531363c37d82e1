"""Spans and figures of the calls of a model and of an agent's tools, as a callback of LangChain.

The names are those of OpenTelemetry's conventions for generative AI:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind

from trainmedic.service.observers.tracing import fail, tracer

AGENT = "trainmedic"
PORTS = {"http": 80, "https": 443}
CANCELLED = (asyncio.CancelledError, GeneratorExit)
Outcome = Literal["ok", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call of a model. ``first_token_s`` is None if nothing was streamed."""

    outcome: Outcome
    duration_s: float
    first_token_s: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True, kw_only=True)
class _Run:
    """A run of LangChain: a model call, a tool call, or a chain, of which only the outermost has a span."""

    parent: UUID | None
    span: Span | None
    started: float
    asks_model: bool = False
    first_token: float | None = None


class ModelCalls(BaseCallbackHandler):
    """Reports every call to ``on_call`` when it ends. Belongs to one event loop."""

    run_inline = True  # in the caller's context, where the span of the request is the current one

    def __init__(self, base_url: str, on_call: Callable[[ModelCall], None] = lambda call: None) -> None:
        address = urlsplit(base_url)
        self._server: dict[str, str | int] = {"server.address": address.hostname or ""}
        if port := address.port or PORTS.get(address.scheme):
            self._server["server.port"] = port
        self._on_call = on_call
        self._runs: dict[UUID, _Run] = {}

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        asked: Mapping[str, Any] = kwargs.get("invocation_params") or {}
        model = str(asked.get("model") or "")
        attributes: dict[str, str | int | float | bool] = {
            "gen_ai.operation.name": "chat",
            # What answers behind the compatible endpoint is not known.
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": model,
            "gen_ai.output.type": "json" if asked.get("response_format") else "text",
            "gen_ai.request.stream": bool(asked.get("stream")),
            **self._server,
        }
        for name in ("max_tokens", "temperature"):
            value = asked.get(name, asked.get("max_completion_tokens") if name == "max_tokens" else None)
            if isinstance(value, int | float):
                attributes[f"gen_ai.request.{name}"] = value
        self._start(run_id, parent_run_id, f"chat {model}", SpanKind.CLIENT, attributes)
        self._runs[run_id].asks_model = True

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._runs.get(run_id)
        if run is not None and run.first_token is None:
            run.first_token = time.perf_counter()

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._runs.get(run_id)
        if run is None or run.span is None:
            return
        generation = response.generations[0][0] if response.generations and response.generations[0] else None
        message = generation.message if isinstance(generation, ChatGeneration) else None
        tokens = (0, 0)
        if isinstance(message, AIMessage):
            details = message.response_metadata
            if (usage := message.usage_metadata) is not None:
                tokens = usage["input_tokens"], usage["output_tokens"]
                run.span.set_attribute("gen_ai.usage.input_tokens", tokens[0])
                run.span.set_attribute("gen_ai.usage.output_tokens", tokens[1])
            if finish := details.get("finish_reason"):
                run.span.set_attribute("gen_ai.response.finish_reasons", [str(finish)])
            if name := details.get("model_name"):
                run.span.set_attribute("gen_ai.response.model", str(name))
        self._end(run_id, None, tokens)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id, error)

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        name = str(kwargs.get("name") or (serialized or {}).get("name") or "")
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
        self._start(run_id, parent_run_id, f"execute_tool {name}", SpanKind.INTERNAL, attributes)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id, error)

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        if parent_run_id is not None:
            self._runs[run_id] = _Run(parent=parent_run_id, span=None, started=time.perf_counter())
            return
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENT}
        self._start(run_id, None, f"invoke_agent {AGENT}", SpanKind.INTERNAL, attributes)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._end(run_id, error)

    def _start(
        self,
        run_id: UUID,
        parent: UUID | None,
        name: str,
        kind: SpanKind,
        attributes: Mapping[str, str | int | float | bool],
    ) -> None:
        above = self._span_above(parent)
        within = trace.set_span_in_context(above) if above is not None else context.get_current()
        span = tracer.start_span(name.strip(), within, kind, dict(attributes))
        self._runs[run_id] = _Run(parent=parent, span=span, started=time.perf_counter())

    def _span_above(self, parent: UUID | None) -> Span | None:
        while parent is not None and (run := self._runs.get(parent)) is not None:
            if run.span is not None:
                return run.span
            parent = run.parent
        return None

    def _end(self, run_id: UUID, error: BaseException | None, tokens: tuple[int, int] = (0, 0)) -> None:
        run = self._runs.pop(run_id, None)
        if run is None or run.span is None:
            return
        now = time.perf_counter()
        first = run.first_token - run.started if run.first_token is not None else None
        if first is not None:
            run.span.set_attribute("gen_ai.response.time_to_first_chunk", first)
        cancelled = isinstance(error, CANCELLED)
        if error is not None and not cancelled:
            fail(run.span, error)
        run.span.end()
        if run.asks_model:
            self._on_call(
                ModelCall(
                    outcome="cancelled" if cancelled else "failed" if error is not None else "ok",
                    duration_s=now - run.started,
                    first_token_s=first,
                    input_tokens=tokens[0],
                    output_tokens=tokens[1],
                )
            )
