"""A model that looks things up before it decides: a loop of calls that only read, each a visible step."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from pydantic import ValidationError

from trainmedic.service.answer.schema import StepView
from trainmedic.service.answering import Executor
from trainmedic.service.diagnosis.prompt import data_mark, delimited
from trainmedic.service.diagnosis.tool_forms import TOOL_SCHEMAS, TOOLS, problems
from trainmedic.service.diagnosis.toolbox import Toolbox, ToolResult, messages, plain, shown_arguments
from trainmedic.service.llm.chat import ChatModel, Completion, Message
from trainmedic.service.observers.tracing import fail, tracer

STEPS = 6
"""The most calls of one investigation."""
MAX_RESULT = 4_000
"""Code points of one result that the model is shown."""
SHOWN = 1_200
"""Code points of a result shown in a step."""
CALL_TOKENS = 400
"""Tokens for a turn that calls."""
INVITATION = (
    "Before you fill the form you may look things up with the tools; they only read. Look up only what would decide "
    f"between hypotheses, at most {STEPS} calls, none twice. Cite what they return by its id. If nothing would decide, "
    "call nothing and say so in one word."
)
_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Investigation:
    """The calls of one question. ``conversation`` ends with the results of all calls."""

    model: ChatModel
    toolbox: Toolbox
    run: Executor
    conversation: list[Message | BaseMessage]
    made: set[str] = field(default_factory=set)
    number: int = 0

    async def steps(self, within_s: float) -> AsyncGenerator[StepView, None]:
        """Each call with its result, until the model makes none or has made `STEPS`. Raises `ModelError`."""
        self.conversation.append(Message(role="user", content=INVITATION))
        while self.number < STEPS:
            turn = await self._turn(within_s)
            if not turn.calls:
                return
            calls = turn.calls[: STEPS - self.number]
            self.conversation.append(AIMessage(content=turn.text, tool_calls=list(calls)))
            for call in calls:
                yield await self._step(call)

    async def _turn(self, within_s: float) -> Completion:
        stream = self.model.stream(self.conversation, max_tokens=CALL_TOKENS, within_s=within_s, tools=TOOLS)
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return piece
        raise AssertionError("a stream ends with its completion")

    async def _step(self, call: ToolCall) -> StepView:
        name, arguments = call["name"], call["args"]
        result = await self._result(name, arguments)
        text = result.text[:MAX_RESULT]
        self.number += 1
        told = delimited(data_mark([text]), text)  # it repeats what was pasted
        self.conversation.append(ToolMessage(content=told, name=name, tool_call_id=call["id"] or ""))
        return StepView(
            number=self.number,
            tool=plain(name),
            what=result.summary,
            arguments=shown_arguments(arguments),
            result=text[:SHOWN],
            ok=result.ok,
        )

    async def _result(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        toolbox, schema = self.toolbox, TOOL_SCHEMAS.get(name)
        if schema is None:
            return toolbox.refused(name, f"There is no such tool. There are: {', '.join(TOOL_SCHEMAS)}.")
        try:
            form = schema.model_validate(arguments)
        except ValidationError as error:
            return toolbox.refused(name, f"The arguments do not fit: {problems(error)}")
        key = json.dumps([name, form.model_dump()], sort_keys=True)
        if key in self.made:
            summary = messages("repeated", toolbox.language, tool=name)
            return ToolResult(text="You made this call before; its result is above.", summary=summary, ok=False)
        self.made.add(key)
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
        with tracer.start_as_current_span(
            f"execute_tool {name}", attributes=attributes, record_exception=False
        ) as span:
            try:
                return await self.run(lambda: toolbox.run(name, form))
            except Exception as error:  # a tool that fails must not fail the answer
                fail(span, error)
                _log.warning("the tool %s ended with %s", name, type(error).__name__)
                return toolbox.refused(name, messages("why.look_up", toolbox.language))
