"""The state of one investigation: prompt, toolbox, budget, deadline, and the text so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from importlib.resources import files

from trainmedic.service.advisor import Advisor
from trainmedic.service.agent.budget import Budget, reserved_tokens
from trainmedic.service.agent.tool_schemas import TOOL_SCHEMAS
from trainmedic.service.agent.toolbox import Toolbox
from trainmedic.service.answering import Executor
from trainmedic.service.llm.model import ChatModel
from trainmedic.service.llm.prompts import Prompt, build, sources_of
from trainmedic.service.llm.prompts.data_marks import data_mark
from trainmedic.service.pipeline import Draft


@dataclass(slots=True, kw_only=True)
class Task:
    prompt: Prompt
    toolbox: Toolbox
    model: ChatModel
    run: Executor
    max_tokens: int
    budget: Budget
    deadline: float
    text: str = ""
    cut: bool = False
    usage: dict[str, int] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        return max(0.0, self.deadline - time.perf_counter())


async def start_investigation(
    prepared: Draft, model: ChatModel, advisor: Advisor, run: Executor, *, deadline: float
) -> Task:
    """Build the prompt, with space reserved for the tools and their results, and the toolbox."""
    limits = await model.limits()
    context, max_tokens = limits.context_tokens, limits.max_tokens
    tools = files("trainmedic.service.agent").joinpath("tools.md").read_text(encoding="utf-8").strip()
    schemas = "\n".join(str(form.model_json_schema()) for form in TOOL_SCHEMAS.values())
    # The endpoint counts the schemas of the tools as part of the prompt.
    tool_tokens = sum(await model.count([tools, schemas]))
    reserved = reserved_tokens(context)
    prompt = await build(prepared, model.count, context_tokens=context - tool_tokens - reserved, max_tokens=max_tokens)
    system, user = prompt.messages
    prompt = replace(prompt, messages=(replace(system, content=f"{system.content}\n{tools}"), user))
    # A prompt that could not be made small enough leaves less than what was reserved.
    tokens_left = min(reserved, context - max_tokens - prompt.tokens - tool_tokens)
    toolbox = Toolbox(
        advisor=advisor,
        prepared=prepared,
        mark=data_mark([source.text for source in prepared.context.evidence.sources]),
        sources={source.marker: source for source in prompt.sources},
        first=len(sources_of(prepared)) + 1,
    )
    toolbox.suppose()
    return Task(
        prompt=prompt,
        toolbox=toolbox,
        model=model,
        run=run,
        max_tokens=max_tokens,
        budget=Budget(tokens_left=tokens_left),
        deadline=deadline,
    )
