"""Abilities of an endpoint and its model, probed with one short request each.

Only what is honoured counts: many servers accept fields that they ignore.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from trainmedic.service.llm.chat_client import Message
from trainmedic.service.llm.errors import ModelError, failures

Post = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Sends one request below ``/v1``; see `Endpoint.post`."""
LOOKING_S = 10.0
"""The longest look at one ability; a server that reads a few words for longer is too slow to use it."""
CHAT = "chat/completions"
MOST_LABELS = 20
"""Log-probabilities of one token that servers return at most (vLLM's default, and the OpenAI API's)."""
LIKELIEST: dict[str, Any] = {"logprobs": True, "top_logprobs": MOST_LABELS}
ABSENT = -20.0
"""The log-probability of a label that is not among the likeliest tokens."""
SURE = 1e-6
"""The least probability of either answer."""
Way = Literal["decisions", "logprobs", "form"]
"""How a model can say how much it believes: probabilities of answers, those of the first token, or a choice."""
WAYS: tuple[Way, ...] = get_args(Way)
"""The surest first."""
_NUMBER = 7
_SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer", "enum": [_NUMBER]}},
    "required": ["number"],
    "additionalProperties": False,
}
_TOOL = {"type": "function", "function": {"name": "note", "description": "Note a number.", "parameters": _SCHEMA}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """``structured``: a JSON schema is honoured; ``logprobs``: the likeliest tokens come with their log-probabilities;
    ``tools``: a call that is demanded is made; ``decisions``: ``/v1/decisions`` answers with probabilities."""

    structured: bool
    logprobs: bool
    tools: bool
    decisions: bool

    @property
    def ways(self) -> tuple[Way, ...]:
        has = (self.decisions, self.logprobs, self.structured)
        return tuple(way for way, is_there in zip(WAYS, has, strict=True) if is_there)

    @property
    def in_words(self) -> str:
        names = {
            "structured output": self.structured,
            "log-probabilities": self.logprobs,
            "tool calls": self.tools,
            "/v1/decisions": self.decisions,
        }
        can, cannot = ([name for name, has in names.items() if has is wanted] for wanted in (True, False))
        return "; ".join(f"{word} {', '.join(some)}" for word, some in (("has", can), ("lacks", cannot)) if some)


async def abilities_of(post: Post) -> Abilities:
    """Raises `ModelError` if the endpoint does not answer at all."""
    return Abilities(
        structured=await _can(_structured, post),
        logprobs=await _can(_logprobs, post),
        tools=await _can(_tools, post),
        decisions=await _can(_decisions, post),
    )


async def _can(look: Callable[[Post], Awaitable[bool]], post: Post) -> bool:
    try:
        with failures():
            async with asyncio.timeout(LOOKING_S):
                return await look(post)
    except ModelError as failure:
        if failure.kind in ("absent", "overloaded"):
            raise
        return False


async def _structured(post: Post) -> bool:
    """The question suggests another answer than the schema allows."""
    schema = {"name": "Number", "schema": _SCHEMA, "strict": True}
    body = _asking("Say hello.", 24) | {"response_format": {"type": "json_schema", "json_schema": schema}}
    said = _choice(await post(CHAT, body))["message"]["content"]
    return bool(json.loads(said) == {"number": _NUMBER})


async def _logprobs(post: Post) -> bool:
    return len(likeliest(await post(CHAT, _asking("Answer with one letter, A or B.", 1) | LIKELIEST))) > 1


async def _tools(post: Post) -> bool:
    choice = {"type": "function", "function": {"name": "note"}}
    body = _asking(f"Note the number {_NUMBER}.", 48) | {"tools": [_TOOL], "tool_choice": choice}
    (call,) = _choice(await post(CHAT, body))["message"]["tool_calls"]
    return bool(call["function"]["name"] == "note" and isinstance(json.loads(call["function"]["arguments"]), dict))


async def _decisions(post: Post) -> bool:
    return bool(await predicates(post, "It rains.", ["Is it wet outside?"]))


def likeliest(answer: Mapping[str, Any]) -> Mapping[str, float]:
    """The likeliest first tokens of a chat answer, without blanks around them. May raise what malformed JSON raises."""
    found: dict[str, float] = {}
    for item in _choice(answer)["logprobs"]["content"][0]["top_logprobs"]:
        token = str(item["token"]).strip()
        found[token] = max(found.get(token, -math.inf), float(item["logprob"]))
    return found


async def label_logprobs(post: Post, messages: Sequence[Message], labels: Sequence[str]) -> Mapping[str, float]:
    """The log-probability of each label as the first token of the answer."""
    told = [{"role": each.role, "content": each.content} for each in messages]
    found = likeliest(await post(CHAT, {"messages": told, "max_tokens": 1, "temperature": 0.0, **LIKELIEST}))
    return {label: max(ABSENT, found.get(label, ABSENT)) for label in labels}


async def predicates(post: Post, text: str, questions: Sequence[str]) -> tuple[float, ...]:
    """The probability that each question about a text is to be answered with yes, never quite 0 or 1.

    https://docs.vllm.ai/en/latest/serving/openai_compatible_server/
    """
    asked = [{"type": "predicate", "instructions": question} for question in questions]
    answers = (await post("decisions", {"input": text, "questions": asked}))["answers"]
    chances = tuple(min(max(float(answer["probability"]), SURE), 1 - SURE) for answer in answers)
    if len(chances) != len(questions):
        raise ModelError("garbage", f"decisions: {len(chances)} answers to {len(questions)} questions")
    return chances


def _choice(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    choice: Mapping[str, Any] = answer["choices"][0]
    return choice


def _asking(text: str, max_tokens: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": max_tokens, "temperature": 0.0}
