"""LangChain's client of an OpenAI-compatible endpoint: what goes in as its messages, and what its pieces say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI

THOUGHT = "reasoning_content"
"""Where a piece that a model thought aloud stands among a message's further values, as LangChain's own clients do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of what the model writes; the last one may carry token counts and why it ended (``length``: the limit).

    ``anew``: all text before this piece was the model thinking aloud and is to be forgotten.
    """

    text: str = ""
    usage: Mapping[str, int] | None = None
    finish: str | None = None
    anew: bool = False


class Chat(ChatOpenAI):
    """Also keeps what a server tells apart as thought (``reasoning``, once ``reasoning_content``).

    That client drops it, and a model that thinks for a minute would look like one that is silent.
    https://docs.vllm.ai/en/latest/features/reasoning_outputs/
    """

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        choices = chunk.get("choices")
        if made is not None and choices:
            said = choices[0]["delta"] or {}
            thought = said.get("reasoning") or said.get(THOUGHT)
            if isinstance(thought, str) and thought:
                made.message.additional_kwargs[THOUGHT] = thought
        return made


def messages_of(messages: Sequence[Message]) -> list[BaseMessage]:
    """The messages as LangChain has them."""
    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [kinds[message.role](content=message.content) for message in messages]


def delta_of(chunk: object) -> Delta:
    """What a piece says; nothing for a piece of another kind."""
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


def thinks(chunk: object) -> bool:
    """Whether a piece holds thought that the server told apart."""
    return isinstance(chunk, AIMessageChunk) and THOUGHT in chunk.additional_kwargs


def text_of(message: object) -> str:
    """A message's text; empty where it is none."""
    content = getattr(message, "content", "")
    return content if isinstance(content, str) else ""
