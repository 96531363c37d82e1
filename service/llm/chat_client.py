"""LangChain's client for an OpenAI-compatible endpoint, and conversions to and from its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI

from trainmedic.kb.identities import identities_of, masked_values
from trainmedic.service.llm.endpoint import OURS

REASONING = "reasoning_content"
"""The key of the model's reasoning in a message's ``additional_kwargs``, as in LangChain's own clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The next words of a text. ``anew``: all text before them was reasoning and must be discarded."""

    text: str
    anew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """All that the model wrote in one turn, without its reasoning, and the tools that it calls.

    ``cut``: the token limit ended it.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    cut: bool = False


class Chat(ChatOpenAI):
    """Keeps the reasoning that a server sends apart from the text (``reasoning``, formerly ``reasoning_content``).

    `ChatOpenAI` drops it, so that a model which reasons for a minute would look unresponsive.
    https://docs.vllm.ai/en/latest/features/reasoning_outputs/
    """

    def _get_request_payload(self, input_: Any, *, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        """The request, without the names of people and machines: whoever calls the model, this is what it is sent."""
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        messages = payload["messages"]
        known = identities_of(content for message in messages if isinstance(content := message.get("content"), str))
        return {**payload, "messages": masked_values(messages, known, OURS)}

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        converted = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        choices = chunk.get("choices")
        if converted is not None and choices:
            # Some servers send a final chunk with `delta: null`.
            delta = choices[0]["delta"] or {}
            reasoning = delta.get("reasoning") or delta.get(REASONING)
            if isinstance(reasoning, str) and reasoning:
                converted.message.additional_kwargs[REASONING] = reasoning
        return converted


def messages_of(messages: Sequence[Message | BaseMessage]) -> list[BaseMessage]:
    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [
        kinds[message.role](content=message.content) if isinstance(message, Message) else message
        for message in messages
    ]


def usage_of(message: BaseMessage) -> Mapping[str, int] | None:
    """The token counts, which come with the last piece of a stream."""
    counted = message.usage_metadata if isinstance(message, AIMessage) else None
    return counted and {
        "prompt_tokens": counted["input_tokens"],
        "completion_tokens": counted["output_tokens"],
        "cached_tokens": (counted.get("input_token_details") or {}).get("cache_read", 0) or 0,
    }


def finish_of(message: BaseMessage) -> str | None:
    """Why the text ended (``length``: the token limit); None while it goes on."""
    finish = message.response_metadata.get("finish_reason")
    return str(finish) if finish else None


def has_reasoning(message: BaseMessage) -> bool:
    return REASONING in message.additional_kwargs


def text_of(message: BaseMessage) -> str:
    """A message's text; empty if its content is not text."""
    return message.content if isinstance(message.content, str) else ""


def calls_of(message: AIMessage, *, cut: bool) -> tuple[ToolCall, ...]:
    """The calls in a message, the malformed ones without arguments, which is then reported to the model.

    If they were sent back unchanged, an endpoint may refuse the whole conversation. If the turn was ``cut`` by the
    token limit, the last call's arguments are incomplete, even if LangChain could repair them.
    """
    calls = list(message.tool_calls)
    if cut and calls:
        calls[-1] = {**calls[-1], "args": {}}
    broken = (
        ToolCall(name=call.get("name") or "unknown", args={}, id=call.get("id") or f"call-{number}")
        for number, call in enumerate(message.invalid_tool_calls)
    )
    return (*calls, *broken)
