"""LangChain's client for an OpenAI-compatible endpoint, and conversions to and from its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI

from trainmedic.kb.identities import identities_of, masked_values

REASONING = "reasoning_content"
"""The key of the model's reasoning in a message's ``additional_kwargs``, as in LangChain's own clients."""

_OURS = frozenset(("role", "type", "id", "tool_call_id", "name"))
"""Fields of a message that the protocol needs as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of the model's text; the last one may carry token counts and the finish reason (``length``: the limit).

    ``anew``: all text before this piece was reasoning and must be discarded.
    """

    text: str = ""
    usage: Mapping[str, int] | None = None
    finish: str | None = None
    anew: bool = False


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
        return {**payload, "messages": masked_values(messages, known, _OURS)}

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


def messages_of(messages: Sequence[Message]) -> list[BaseMessage]:
    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [kinds[message.role](content=message.content) for message in messages]


def delta_of(chunk: object) -> Delta:
    """A streamed message as a `Delta`; an empty one for any other type."""
    if not isinstance(chunk, AIMessageChunk):
        return Delta()
    counted = chunk.usage_metadata
    usage = (
        {
            "prompt_tokens": counted["input_tokens"],
            "completion_tokens": counted["output_tokens"],
            "cached_tokens": (counted.get("input_token_details") or {}).get("cache_read", 0) or 0,
        }
        if counted
        else None
    )
    finish = chunk.response_metadata.get("finish_reason")
    return Delta(text=text_of(chunk), usage=usage, finish=str(finish) if finish else None)


def has_reasoning(chunk: object) -> bool:
    return isinstance(chunk, AIMessageChunk) and REASONING in chunk.additional_kwargs


def text_of(message: object) -> str:
    """A message's text; empty if its content is not text."""
    content = getattr(message, "content", "")
    return content if isinstance(content, str) else ""
