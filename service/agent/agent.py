"""LangChain's agent with read-only tools; `InvestigationMiddleware` enforces the limits of every call.

Each model call takes a slot and a deadline of `ChatModel` and reports to its breaker. If anything fails, the answer is
the advisor's own, with a notice that gives the reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import GraphRecursionError
from pydantic import BaseModel

from trainmedic.kb.messages import load_messages
from trainmedic.service.advisor import Advisor
from trainmedic.service.agent.budget import STEPS, TIMES, InvestigationStopped
from trainmedic.service.agent.finish import ModelText as Said
from trainmedic.service.agent.finish import finish
from trainmedic.service.agent.middleware import FirstTokenHandler, InvestigationMiddleware, TurnEnd
from trainmedic.service.agent.streaming import StreamedText
from trainmedic.service.agent.task import Task, start_investigation
from trainmedic.service.agent.tool_schemas import TOOL_SCHEMAS
from trainmedic.service.agent.toolbox import ToolResult
from trainmedic.service.answer.assemble import Written
from trainmedic.service.answer.messages import messages as answer_messages
from trainmedic.service.answer.passages import Sections
from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.answering import Executor, ModelText, Parts, after_model, deltas
from trainmedic.service.llm.chat_client import has_reasoning, text_of
from trainmedic.service.llm.model import ChatModel, ModelError
from trainmedic.service.llm.verified_text import opening_sections
from trainmedic.service.pipeline import Draft

messages = load_messages("trainmedic.service.agent")

_log = logging.getLogger(__name__)
_RECURSION_LIMIT = 6 * STEPS + 12
"""LangGraph's own limit, which our budget never reaches."""


async def investigate(
    prepared: Draft, composed: Answer, model: ChatModel, advisor: Advisor, started: float, run: Executor
) -> Parts:
    """The steps and the text as they arrive, then the answer. Raises nothing.

    ``started`` is the time from which the deadline counts (`time.perf_counter`): `TIMES` times the model's own limit.
    """
    # ``composed`` is ready before the model is asked: whatever fails below, its text is returned.
    language = prepared.language
    if not (composed.causes or prepared.context.report.fired or prepared.context.evidence.run.options):
        for delta in deltas(composed.sections):  # an investigation has nothing to start from
            yield delta
        yield advisor.compose(prepared, Written(notices=(answer_messages("nothing_to_write", language),)))
        return
    # Without a cause, the model's text follows the template answer and is renumbered, so it cannot be streamed.
    streamed = StreamedText(quiet=not composed.causes)
    steps: list[StepView] = []
    usage: dict[str, int] = {}
    opening: Sections = ()
    text = ModelText(lambda: opening)

    def unfinished(why: str) -> Written:
        return Written(notices=(messages("unfinished", language, why=why),))

    def ending(written: Written) -> Answer:
        done = replace(written, steps=tuple(steps), usage=MappingProxyType(dict(usage)))
        return advisor.compose(prepared, done)

    try:
        task = await start_investigation(
            prepared, model, advisor, run, deadline=started + TIMES * model.options.timeout_s
        )
        usage, opening = task.usage, opening_sections(prepared, tuple(task.toolbox.sources.values()))
        async with aclosing(_parts(task, streamed)) as parts:
            async for part in parts:
                if isinstance(part, StepView):
                    steps.append(part)
                    yield part
                else:
                    for delta in text.write(part):
                        yield delta
        said = Said(text=task.text, model=await model.name(), cut=task.cut)
        written = finish(prepared, task.prompt, task.toolbox, said)
        answer = ending(written)
        for delta in text.end(after_model(answer)) if composed.causes else deltas(answer.sections):
            yield delta
    except InvestigationStopped as stop:
        answer = ending(unfinished(messages(f"why.{stop.why}", language)))
    except ModelError as failure:
        answer = ending(unfinished(_why(failure, bool(steps), language)))
    except GraphRecursionError:
        answer = ending(unfinished(messages("why.steps", language)))
    except Exception as error:  # LangChain may raise anything; the user still gets an answer
        _log.warning("an investigation ended with %s", type(error).__name__)
        answer = ending(unfinished(answer_messages("failures.garbage", language)))
    if answer.mode == "deterministic":
        for delta in text.replace(composed, answer.notices[0]):
            yield delta
    yield answer


def _why(failure: ModelError, begun: bool, language: str) -> str:
    # A first request refused as malformed was refused because of its tools.
    if failure.invalid and not begun:
        return messages("why.no_tools", language)
    return answer_messages(f"failures.{failure.kind}", language)


async def _parts(task: Task, streamed: StreamedText) -> AsyncGenerator[StepView | str, None]:
    """The steps and the text as they arrive. Raises `ModelError`, `InvestigationStopped`, and anything of LangGraph."""
    system, user = task.prompt.messages
    first_token = FirstTokenHandler()
    agent: Any = create_agent(
        await task.model.runnable(max_tokens=task.max_tokens),
        tools=_tools(task),
        system_prompt=SystemMessage(content=system.content),
        middleware=[InvestigationMiddleware(task, first_token)],
    )
    streamed.begin(system.content, task.toolbox.sources, opened=task.model.opened)
    stream = agent.astream(
        {"messages": [HumanMessage(content=user.content)]},
        {"callbacks": [first_token, *task.model.callbacks], "recursion_limit": _RECURSION_LIMIT},
        stream_mode=["messages", "custom"],
    )
    async with aclosing(stream) as parts:
        while True:
            try:
                # The deadline of the whole investigation; those of single turns are in the middleware.
                async with asyncio.timeout(task.left_s):
                    event = await anext(parts, None)
            except TimeoutError:
                raise ModelError("slow", "the investigation") from None
            if event is None:
                break
            mode, part = event
            # Custom events are written by the middleware; messages are the raw tokens of the model.
            if mode == "custom" and isinstance(part, StepView):
                yield part
            elif isinstance(part, TurnEnd):
                if text := streamed.end(dropped=part.calls, whole=part.whole):
                    yield text
                streamed.begin(system.content, task.toolbox.sources, opened=task.model.opened)
            elif (
                mode == "messages"
                and isinstance(part[0], AIMessageChunk)
                and (text := streamed.push(text_of(part[0]), apart=has_reasoning(part[0])))
            ):
                yield text


def _tools(task: Task) -> list[BaseTool]:
    toolbox = task.toolbox
    methods: dict[str, Callable[[Any], ToolResult]] = {
        "search_cases": toolbox.search_cases,
        "get_case": toolbox.get_case,
        "check_changed": toolbox.check_changed,
        "look_up_option": toolbox.look_up_option,
        "read_log": toolbox.read_log,
    }

    def tool(name: str, form: type[BaseModel]) -> BaseTool:
        async def call(**arguments: Any) -> tuple[str, ToolResult]:
            # The middleware has validated them already; this turns them into the tool's own type.
            valid = form.model_validate(arguments)
            result = await task.run(lambda: methods[name](valid))
            return result.text, result

        return StructuredTool.from_function(
            coroutine=call,
            name=name,
            description=(form.__doc__ or "").strip(),
            args_schema=form,
            response_format="content_and_artifact",
        )

    return [tool(name, form) for name, form in TOOL_SCHEMAS.items()]
