"""The agent's middleware: limits, slots and the breaker around model calls, budget and steps around tool calls."""

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
from trainmedic.service.agent.toolbox import ToolResult, plain, shown_arguments
from trainmedic.service.answer.schema import StepView
from trainmedic.service.llm.chat_client import REASONING, text_of
from trainmedic.service.llm.model import ModelError
from trainmedic.service.llm.prompts.data_marks import without_delimiters
from trainmedic.service.llm.reasoning_filter import ReasoningFilter

messages = load_messages("trainmedic.service.agent")

_log = logging.getLogger(__name__)
_RESULT = 1200
"""Code points of a result shown in a step."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The model has ended a turn, with tool calls or its text; ``whole``: by itself, not by the token limit."""

    calls: bool
    whole: bool


class FirstTokenHandler(AsyncCallbackHandler):
    """Extends the deadline of a model call when its first token arrives."""

    def __init__(self) -> None:
        self._limit: asyncio.Timeout | None = None
        self._until = 0.0

    def wait(self, limit: asyncio.Timeout, until: float) -> None:
        """Reschedule ``limit`` to ``until`` (the loop's time) at the next token."""
        self._limit, self._until = limit, until

    async def on_llm_new_token(self, token: object, **kwargs: Any) -> None:
        if self._limit is not None and not self._limit.expired():
            # From here on the deadline of the turn applies instead of that of the first token.
            self._limit.reschedule(self._until)
        self._limit = None


class InvestigationMiddleware(AgentMiddleware[Any, Any, Any]):
    def __init__(self, task: Task, first_token: FirstTokenHandler) -> None:
        super().__init__()
        self._task = task
        self._first_token = first_token
        self._lock = asyncio.Lock()

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """One turn of the model, within its limits."""
        task, options = self._task, self._task.model.options
        # The tools stay in the request, since vLLM caches the prefix that contains them.
        if task.budget.exhausted:
            request = request.override(tool_choice="none")
        async with task.model.turn(task.left_s) as seconds:
            now = asyncio.get_running_loop().time()
            async with asyncio.timeout(min(options.first_token_s, seconds)) as limit:
                self._first_token.wait(limit, now + seconds)
                response = await handler(request)
            message = response.result[-1]
            finish = message.response_metadata.get("finish_reason")
            # A connection that drops looks like a short answer, except that it gives no reason to end.
            if not isinstance(message, AIMessage) or finish is None:
                raise ModelError("cut", "the stream ended without a reason")
            whole = finish != "length"
            text = self._text(message, whole=whole)
            if not (message.tool_calls or message.invalid_tool_calls or text.strip()):
                raise ModelError("garbage", "the model wrote nothing")
        self._count(message)
        message = _with_valid_calls(message, f"turn-{task.budget.turns}", cut=not whole)
        task.budget.turns += 1
        task.budget.request(message.tool_calls)
        task.text, task.cut = text, not whole
        request.runtime.stream_writer(TurnEnd(calls=bool(message.tool_calls), whole=whole))
        return replace(response, result=[*response.result[:-1], message])

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage:
        """One step. Calls of one turn run one after the other, in their order."""
        async with self._lock:
            task, call = self._task, request.tool_call
            name, arguments = call["name"], call["args"]
            result, valid = await self._run(name, arguments, request, handler)
            size = (await task.model.count([result.text]))[0]
            text = task.budget.fit(result.text, size)
            number = task.budget.step(valid=valid)
            view = StepView(
                number=number,
                tool=plain(name),
                what=result.summary,
                arguments=shown_arguments(arguments),
                result=without_delimiters(task.toolbox.mark, text)[:_RESULT],
                ok=result.ok,
            )
            request.runtime.stream_writer(view)
            return ToolMessage(
                content=text, name=name, tool_call_id=call["id"] or "", status="success" if result.ok else "error"
            )

    async def _run(
        self,
        name: str,
        arguments: dict[str, Any],
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> tuple[ToolResult, bool]:
        """The result of a call, and whether the call was valid."""
        toolbox, language = self._task.toolbox, self._task.toolbox.language
        form = TOOL_SCHEMAS.get(name)
        if form is None:
            return toolbox.refused(name, f"There is no such tool. There are: {', '.join(TOOL_SCHEMAS)}."), False
        try:
            parsed: BaseModel = form.model_validate(arguments)
        except ValidationError as error:
            return toolbox.refused(name, f"The arguments do not fit: {problems(error)}"), False
        if self._task.budget.repeated(name, parsed.model_dump()):
            summary = messages("repeated", language, tool=name)
            return ToolResult(text="You made this call before; its result is above.", summary=summary, ok=False), True
        try:
            message = await handler(request)
        except Exception as error:  # a tool that fails must not fail the answer
            _log.warning("the tool %s ended with %s", name, type(error).__name__)
            return toolbox.refused(name, messages("why.look_up", language)), True
        assert isinstance(message, ToolMessage)
        if isinstance(message.artifact, ToolResult):
            return message.artifact, True
        return toolbox.refused(name, str(message.content)), False

    def _text(self, message: AIMessage, *, whole: bool) -> str:
        """The turn's text without reasoning; records whether the template opens a reasoning block."""
        model = self._task.model
        reasoning = ReasoningFilter(opened=model.opened)
        if REASONING in message.additional_kwargs:
            reasoning.apart()
        text = reasoning.push(text_of(message))
        model.opened = model.opened or reasoning.orphaned
        return text + reasoning.end(whole=whole)

    def _count(self, message: AIMessage) -> None:
        tokens = message.usage_metadata
        if tokens is None:
            return
        usage = self._task.usage
        cached = (tokens.get("input_token_details") or {}).get("cache_read", 0) or 0
        for name, value in (
            ("prompt_tokens", tokens["input_tokens"]),
            ("completion_tokens", tokens["output_tokens"]),
            ("cached_tokens", cached),
        ):
            usage[name] = usage.get(name, 0) + value


def _with_valid_calls(message: AIMessage, id: str, *, cut: bool) -> AIMessage:
    """The message with malformed calls turned into calls without arguments, which are then reported to the model.

    If they were sent back unchanged, an endpoint may refuse the whole conversation. ``id`` replaces the endpoint's own,
    because LangGraph merges messages of the same id. In a turn that was ``cut`` by the token limit, the last call's
    arguments are incomplete, even if LangChain could repair them.
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
    # The raw calls too: LangChain would send them again beside the repaired ones.
    other = {key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"}
    return message.model_copy(
        update={
            "tool_calls": [*calls, *broken],
            "invalid_tool_calls": [],
            "additional_kwargs": other,
            "id": id,
        }
    )
