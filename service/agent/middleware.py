"""Stands around every call of the model and of a tool: limits, slots, the breaker, steps, and what is told of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from trainmedic.kb.messages import load_messages
from trainmedic.service.agent.task import Task
from trainmedic.service.agent.tool_schemas import TOOL_SCHEMAS, problems
from trainmedic.service.agent.toolbox import ToolResult, arguments_of, plain
from trainmedic.service.answer import StepView
from trainmedic.service.llm.chat_client import REASONING, text_of
from trainmedic.service.llm.model import ModelError
from trainmedic.service.llm.reasoning_filter import ReasoningFilter

messages = load_messages("trainmedic.service.agent")

_log = logging.getLogger(__name__)
_RESULT = 1200
"""Code points of a result that a step shows."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The model has ended a turn: with calls of tools, or with its text; ``whole``: by itself, not by the limit."""

    calls: bool
    whole: bool


class FirstTokenHandler(AsyncCallbackHandler):
    """Gives a call of the model its whole time as soon as its first token has come."""

    def __init__(self) -> None:
        self._limit: asyncio.Timeout | None = None
        self._until = 0.0

    def wait(self, limit: asyncio.Timeout, until: float) -> None:
        """``limit`` is put off to ``until`` (the loop's time) with the next token."""
        self._limit, self._until = limit, until

    async def on_llm_new_token(self, token: object, **kwargs: Any) -> None:
        """Something has come."""
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._until)
        self._limit = None


class InvestigationMiddleware(AgentMiddleware[Any, Any, Any]):
    """Stands around every call of the model and of a tool."""

    def __init__(self, task: Task, heard: FirstTokenHandler) -> None:
        super().__init__()
        self._task = task
        self._heard = heard
        self._one = asyncio.Lock()

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """One turn of the model, within its limits; afterwards its calls are looked at."""
        task, options = self._task, self._task.model.options
        if task.budget.last:
            request = request.override(tool_choice="none")
        async with task.model.turn(task.left_s) as seconds:
            now = asyncio.get_running_loop().time()
            async with asyncio.timeout(min(options.first_token_s, seconds)) as limit:
                self._heard.wait(limit, now + seconds)
                response = await handler(request)
            message = response.result[-1]
            finish = message.response_metadata.get("finish_reason")
            if not isinstance(message, AIMessage) or finish is None:
                raise ModelError("cut", "the stream ended without a reason")
            whole = finish != "length"
            said = self._said(message, whole=whole)
            if not (message.tool_calls or message.invalid_tool_calls or said.strip()):
                raise ModelError("garbage", "the model wrote nothing")
        self._count(message)
        message = _readable(message, f"turn-{task.budget.turns}", cut=not whole)
        task.budget.turns += 1
        task.budget.want(message.tool_calls)
        task.text, task.cut = said, not whole
        request.runtime.stream_writer(TurnEnd(calls=bool(message.tool_calls), whole=whole))
        return replace(response, result=[*response.result[:-1], message])

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage:
        """One step; one after the other, in the order of the calls."""
        async with self._one:
            task, call = self._task, request.tool_call
            name, arguments = call["name"], call["args"]
            found, readable = await self._found(name, arguments, request, handler)
            size = (await task.model.count([found.text]))[0]
            text = task.budget.fit(found.text, size)
            number = task.budget.step(readable=readable)
            view = StepView(
                number=number,
                tool=plain(name),
                what=found.what,
                arguments=arguments_of(arguments),
                result=self._unmarked(text)[:_RESULT],
                ok=found.ok,
            )
            request.runtime.stream_writer(view)
            return ToolMessage(
                content=text, name=name, tool_call_id=call["id"] or "", status="success" if found.ok else "error"
            )

    async def _found(
        self,
        name: str,
        arguments: dict[str, Any],
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> tuple[ToolResult, bool]:
        """What comes of a call, and whether it could be read at all."""
        toolbox, language = self._task.toolbox, self._task.toolbox.language
        form = TOOL_SCHEMAS.get(name)
        if form is None:
            return toolbox.refused(name, f"There is no such tool. There are: {', '.join(TOOL_SCHEMAS)}."), False
        try:
            valid: BaseModel = form.model_validate(arguments)
        except ValidationError as error:
            return toolbox.refused(name, f"The arguments do not fit: {problems(error)}"), False
        if self._task.budget.repeated(name, valid.model_dump()):
            what = messages("repeated", language, tool=name)
            return ToolResult(text="You asked this before; the result stands above.", what=what, ok=False), True
        try:
            message = await handler(request)
        except Exception as error:  # a look-up that fails must not fail the answer
            _log.warning("the tool %s ended with %s", name, type(error).__name__)
            return toolbox.refused(name, messages("why.look_up", language)), True
        found = getattr(message, "artifact", None)
        return (found, True) if isinstance(found, ToolResult) else (toolbox.refused(name, str(message.content)), False)  # type: ignore[union-attr]

    def _said(self, message: AIMessage, *, whole: bool) -> str:
        """The turn's text without what was thought aloud; how the model has_reasoning is learned for its next text."""
        model = self._task.model
        thoughts = ReasoningFilter(opened=model.opened)
        if REASONING in message.additional_kwargs:
            thoughts.apart()
        said = thoughts.push(text_of(message))
        model.opened = model.opened or thoughts.orphaned
        return said + thoughts.end(whole=whole)

    def _count(self, message: AIMessage) -> None:
        counted = message.usage_metadata
        if counted is None:
            return
        usage = self._task.usage
        cached = (counted.get("input_token_details") or {}).get("cache_read", 0) or 0
        for name, value in (
            ("prompt_tokens", counted["input_tokens"]),
            ("completion_tokens", counted["output_tokens"]),
            ("cached_tokens", cached),
        ):
            usage[name] = usage.get(name, 0) + value

    def _unmarked(self, text: str) -> str:
        mark = self._task.toolbox.mark
        return text.replace(f"<data-{mark}>", "").replace(f"</data-{mark}>", "")


def _readable(message: AIMessage, id: str, *, cut: bool) -> AIMessage:
    """The message with calls whose arguments are no JSON as calls without any: it is said to the model, and counted.

    Sent back as they came, an endpoint may refuse the whole conversation. ``id`` is the message's own: the graph takes
    two messages of one id for the same, and endpoints are free in what they send. In a turn that was ``cut`` by the
    limit of tokens the last call's arguments are not what the model meant, even where LangChain could mend them.
    """
    broken = [
        {
            "name": call.get("name") or "unknown",
            "args": {},
            "id": call.get("id") or f"call-{number}",
            "type": "tool_call",
        }
        for number, call in enumerate(message.invalid_tool_calls)
    ]
    calls = list(message.tool_calls)
    if cut and calls:
        calls[-1] = {**calls[-1], "args": {}}
    kept = {key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"}
    return message.model_copy(
        update={
            "tool_calls": [*calls, *broken],
            "invalid_tool_calls": [],
            "additional_kwargs": kept,
            "id": id,
        }
    )
