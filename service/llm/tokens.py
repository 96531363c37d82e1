"""Token counts of texts, from the endpoint (vLLM's ``/tokenize``, cached) or estimated. Never raises."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from cachetools import LRUCache

from trainmedic.kb.breaker import Breaker

COUNTING_S = 3.0
"""How long counting tokens may take; an estimate will do."""
CACHED_COUNTS = 2048
BYTES_PER_TOKEN = 3
"""A cautious estimate if the endpoint cannot count: Chinese has about three bytes a token, English four."""

Post = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Posts to ``/tokenize``; may raise anything."""


class Counter:
    """Counts the tokens of texts at one endpoint."""

    def __init__(self, post: Post, clock: Callable[[], float]) -> None:
        self._post = post
        # Cases are in most prompts with the same text, so nearly all counts of a busy service are cached.
        self._counts: LRUCache[bytes, int] = LRUCache(CACHED_COUNTS)
        self._breaker = Breaker(clock, failures=1)

    async def count(self, texts: Sequence[str], *, ask: bool = True) -> list[int]:
        """Tokens of each text; without ``ask`` only from the cache or estimated."""
        keys = [blake2b(text.encode("utf-8", "replace"), digest_size=12).digest() for text in texts]
        counts = {key: self._counts[key] for key in keys if key in self._counts}
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in counts}
        if unknown and ask:
            counted = dict(zip(unknown, await self._counted(list(unknown.values())), strict=False))
            self._counts.update(counted)
            counts |= counted
        return [counts.get(key, estimate(text)) for key, text in zip(keys, texts, strict=True)]

    async def ends_inside(self, tag: str, **template: Any) -> bool:
        """Whether the chat template ends every prompt inside a block that ``tag`` opens; False if that is unknown.

        ``template`` holds parameters of the template. https://docs.vllm.ai/en/latest/serving/openai_compatible_server/
        """
        body = {"messages": [{"role": "user", "content": "?"}], "add_generation_prompt": True}
        try:
            async with asyncio.timeout(COUNTING_S):
                response = await self._post({**body, "return_token_strs": True, "chat_template_kwargs": template})
            text = "".join(response["token_strs"])
        except Exception:
            return False
        # The last tag decides: templates mention both in their instructions.
        return text.rfind(f"<{tag}>") > text.rfind(f"</{tag}>")

    async def _counted(self, texts: Sequence[str]) -> Sequence[int]:
        """Counts by the endpoint, requested in parallel; empty if it fails, after which the breaker pauses requests."""
        call = self._breaker.admit()
        if not call:
            return ()
        try:
            async with asyncio.timeout(COUNTING_S):
                counts = await asyncio.gather(*(self._one(text) for text in texts))
        except Exception:  # an estimate will do
            self._breaker.failed(call)
            return ()
        except BaseException:
            self._breaker.abandoned(call)
            raise
        self._breaker.succeeded()
        return counts

    async def _one(self, text: str) -> int:
        count = (await self._post({"prompt": text, "add_special_tokens": False})).get("count")
        if not isinstance(count, int):
            raise ValueError("no count")
        return count


def estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
