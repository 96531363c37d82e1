"""The loop of an investigation: the model calls tools that only read, and in the end writes.

Each turn takes a slot and a deadline of `ChatModel` and reports to its breaker. If anything fails, the answer is the
advisor's own, with a notice that gives the reason.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from pydantic import ValidationError

from trainmedic.kb.messages import load_messages
from trainmedic.service.advisor import Advisor
from trainmedic.service.agent.budget import TIMES, Budget, InvestigationStopped, reserved_tokens
from trainmedic.service.agent.finish import Said, finish
from trainmedic.service.agent.tool_schemas import TOOL_SCHEMAS, TOOLS, problems
from trainmedic.service.agent.toolbox import Toolbox, ToolResult, plain, shown_arguments
from trainmedic.service.answer.assemble import Written
from trainmedic.service.answer.messages import messages as answer_messages
from trainmedic.service.answer.passages import Sections
from trainmedic.service.answer.schema import Answer, StepView
from trainmedic.service.answering import Executor, ModelText, Parts, after_model, deltas
from trainmedic.service.llm.chat import ChatModel, Completion, Message, ModelError, Piece
from trainmedic.service.llm.prompts import Prompt, build, sources_of
from trainmedic.service.llm.prompts.data_marks import data_mark, without_delimiters
from trainmedic.service.llm.stream_filter import StreamFilter
from trainmedic.service.llm.verified_text import opening_sections
from trainmedic.service.observers.tracing import fail, tracer
from trainmedic.service.pipeline import Draft

messages = load_messages("trainmedic.service.agent")

REMARK = 280
"""Code points at the beginning of a turn that are held back: remarks before a call ("let me look") are no answer."""
_RESULT = 1200
"""Code points of a result shown in a step."""
_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Task:
    """One investigation: its prompt, tools and bounds, and the tokens that it has used so far."""

    prompt: Prompt
    toolbox: Toolbox
    model: ChatModel
    run: Executor
    max_tokens: int
    budget: Budget
    deadline: float
    usage: Counter[str] = field(default_factory=Counter)

    @property
    def left_s(self) -> float:
        return max(0.0, self.deadline - time.perf_counter())


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
    steps: list[StepView] = []
    usage: Counter[str] = Counter()
    opening: Sections = ()
    text = ModelText(lambda: opening)

    try:
        task = await _task(prepared, model, advisor, run, deadline=started + TIMES * model.options.timeout_s)
        usage, opening = task.usage, opening_sections(prepared, tuple(task.toolbox.sources.values()))
        async with aclosing(_turns(task)) as parts:
            async for part in parts:
                if isinstance(part, StepView):
                    steps.append(part)
                    yield part
                elif isinstance(part, Completion):
                    completion = part
                # Without a cause, the text follows the template answer and is renumbered, so it cannot be streamed.
                elif composed.causes:
                    for delta in text.write(part):
                        yield delta
        said = Said(text=completion.text, model=await model.name(), cut=completion.cut)
        written = finish(prepared, task.prompt, task.toolbox, said)
    except InvestigationStopped as stop:
        written = _unfinished(messages(f"why.{stop.why}", language), language)
    except ModelError as failure:
        written = _unfinished(_why(failure, bool(steps), language), language)
    except Exception as error:  # LangChain may raise anything; the user still gets an answer
        _log.warning("an investigation ended with %s", type(error).__name__)
        written = _unfinished(answer_messages("failures.garbage", language), language)
    written = replace(written, steps=tuple(steps), usage=MappingProxyType(dict(usage)))
    answer = advisor.compose(prepared, written)
    if answer.mode == "deterministic":
        for delta in text.replace(composed, answer.notices[0]):
            yield delta
    else:
        for delta in text.end(after_model(answer)) if composed.causes else deltas(answer.sections):
            yield delta
    yield answer


def _unfinished(why: str, language: str) -> Written:
    return Written(notices=(messages("unfinished", language, why=why),))


def _why(failure: ModelError, begun: bool, language: str) -> str:
    # A first request refused as malformed was refused because of its tools.
    if failure.invalid and not begun:
        return messages("why.no_tools", language)
    return answer_messages(f"failures.{failure.kind}", language)


async def _task(prepared: Draft, model: ChatModel, advisor: Advisor, run: Executor, *, deadline: float) -> Task:
    """Build the prompt, with space reserved for the tools and their results, and the toolbox."""
    limits = await model.limits()
    context, max_tokens = limits.context_tokens, limits.max_tokens
    tools = files("trainmedic.service.agent").joinpath("tools.md").read_text(encoding="utf-8").strip()
    # The endpoint counts the descriptions of the tools as part of the prompt.
    tool_tokens = sum(await model.count([tools, str(TOOLS)]))
    reserved = reserved_tokens(context)
    prompt = await build(prepared, model.count, context_tokens=context - tool_tokens - reserved, max_tokens=max_tokens)
    system, user = prompt.messages
    prompt = replace(prompt, messages=(replace(system, content=f"{system.content}\n{tools}"), user))
    toolbox = Toolbox(
        advisor=advisor,
        prepared=prepared,
        mark=data_mark([source.text for source in prepared.context.evidence.sources]),
        sources={source.marker: source for source in prompt.sources},
        first=len(sources_of(prepared)) + 1,
    )
    toolbox.suppose()
    # A prompt that could not be made small enough leaves less than what was reserved.
    budget = Budget(tokens_left=min(reserved, context - max_tokens - prompt.tokens - tool_tokens))
    return Task(
        prompt=prompt, toolbox=toolbox, model=model, run=run, max_tokens=max_tokens, budget=budget, deadline=deadline
    )


async def _turns(task: Task) -> AsyncGenerator[StepView | str | Completion, None]:
    """The steps and the words that may be shown, as they come, and in the end what the model wrote.

    Raises `ModelError` and `InvestigationStopped`.
    """
    conversation: list[Message | BaseMessage] = list(task.prompt.messages)
    separator = ""
    while True:
        words = _TurnText(task.prompt.messages[0].content, task.toolbox.sources)
        stream = task.model.stream(
            conversation,
            max_tokens=task.max_tokens,
            within_s=task.left_s,
            # The tools stay in the request, since vLLM caches the prefix that contains them.
            tools=TOOLS,
            tool_choice="none" if task.budget.exhausted else None,
        )
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    turn = piece
                elif text := words.push(piece):
                    yield separator + text
                    separator = ""
        task.usage.update(turn.usage)
        task.budget.request(turn.calls)
        if text := words.end(dropped=bool(turn.calls)):
            yield separator + text
        separator = "\n\n" if words.released else separator
        if not turn.calls:
            yield turn
            return
        conversation.append(AIMessage(content=turn.text, tool_calls=list(turn.calls)))
        for call in turn.calls:
            try:
                async with asyncio.timeout(task.left_s):
                    step, result = await _step(task, call)
            except TimeoutError:
                raise ModelError("slow", "the investigation") from None
            yield step
            conversation.append(result)


async def _step(task: Task, call: ToolCall) -> tuple[StepView, ToolMessage]:
    """Run one call: what is shown of it, and what the model is told."""
    name, arguments = call["name"], call["args"]
    result, valid = await _result(task, name, arguments)
    size = (await task.model.count([result.text]))[0]
    text = task.budget.fit(result.text, size)
    step = StepView(
        number=task.budget.step(valid=valid),
        tool=plain(name),
        what=result.summary,
        arguments=shown_arguments(arguments),
        result=without_delimiters(task.toolbox.mark, text)[:_RESULT],
        ok=result.ok,
    )
    status = "success" if result.ok else "error"
    return step, ToolMessage(content=text, name=name, tool_call_id=call["id"] or "", status=status)


async def _result(task: Task, name: str, arguments: dict[str, Any]) -> tuple[ToolResult, bool]:
    """The result of a call, and whether the call was valid."""
    toolbox = task.toolbox
    form = TOOL_SCHEMAS.get(name)
    if form is None:
        return toolbox.refused(name, f"There is no such tool. There are: {', '.join(TOOL_SCHEMAS)}."), False
    try:
        valid = form.model_validate(arguments)
    except ValidationError as error:
        return toolbox.refused(name, f"The arguments do not fit: {problems(error)}"), False
    if task.budget.repeated(name, valid.model_dump()):
        summary = messages("repeated", toolbox.language, tool=name)
        return ToolResult(text="You made this call before; its result is above.", summary=summary, ok=False), True
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
    with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes, record_exception=False) as span:
        try:
            return await task.run(lambda: toolbox.run(name, valid)), True
        except Exception as error:  # a tool that fails must not fail the answer
            fail(span, error)
            _log.warning("the tool %s ended with %s", name, type(error).__name__)
            return toolbox.refused(name, messages("why.look_up", toolbox.language)), True


class _TurnText:
    """The text of one turn as it is shown: its beginning is held back until it is longer than a remark."""

    def __init__(self, protected: str, markers: Collection[int]) -> None:
        self.released = False
        self._filter = StreamFilter(protected, markers)
        self._held = ""

    def push(self, piece: Piece) -> str:
        """What may be shown after the piece has arrived."""
        if piece.anew:
            self._held = ""
        self._held += self._filter.push(piece.text)
        return self._show(release=len(self._held) > REMARK)

    def end(self, *, dropped: bool) -> str:
        """The rest, at the end of the turn; if ``dropped``, only of a text of which something was shown."""
        self._held += self._filter.end()
        return self._show(release=not dropped)

    def _show(self, *, release: bool) -> str:
        if not (self.released or release):
            return ""
        shown, self._held = self._held, ""
        self.released = self.released or bool(shown)
        return shown
