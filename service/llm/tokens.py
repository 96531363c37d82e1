"""How many tokens a text takes, asked of the endpoint (vLLM's ``/tokenize``) and kept, or estimated. Never raises."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from cachetools import LRUCache

from trainmedic.kb.breaker import Breaker

COUNTING_S = 3.0
"""How long counting tokens may take; an estimate will do."""
COUNTS_KEPT = 2048
BYTES_PER_TOKEN = 3
"""A careful estimate where the endpoint cannot count: Chinese takes about three bytes a token, English four."""

Post = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Asks ``/tokenize``; raises whatever it likes."""


class Counter:
    """The counts of one endpoint. ``post`` asks it."""

    def __init__(self, post: Post, clock: Callable[[], float]) -> None:
        self._post = post
        self._counts: LRUCache[bytes, int] = LRUCache(COUNTS_KEPT)
        self._breaker = Breaker(clock, failures=1)

    async def count(self, texts: Sequence[str], *, ask: bool = True) -> list[int]:
        """Tokens of each text; only kept ones and estimates without ``ask``."""
        keys = [blake2b(text.encode("utf-8", "replace"), digest_size=12).digest() for text in texts]
        counts = {key: self._counts[key] for key in keys if key in self._counts}
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in counts}
        if unknown and ask:
            counted = dict(zip(unknown, await self._asked(list(unknown.values())), strict=False))
            self._counts.update(counted)
            counts |= counted
        return [counts.get(key, estimate(text)) for key, text in zip(keys, texts, strict=True)]

    async def ends_inside(self, tag: str, **template: Any) -> bool:
        """Whether the chat template ends every prompt inside a block that ``tag`` opens, as far as the endpoint says.

        ``template`` is handed to the template. https://docs.vllm.ai/en/latest/serving/openai_compatible_server/
        """
        body = {"messages": [{"role": "user", "content": "?"}], "add_generation_prompt": True}
        try:
            async with asyncio.timeout(COUNTING_S):
                told = await self._post({**body, "return_token_strs": True, "chat_template_kwargs": template})
            text = "".join(told["token_strs"])
        except Exception:  # then nobody knows
            return False
        return text.rfind(f"<{tag}>") > text.rfind(f"</{tag}>")

    async def _asked(self, texts: Sequence[str]) -> Sequence[int]:
        """Counts by the endpoint, all at once; none where it cannot, and then it is not asked again for a while."""
        call = self._breaker.admit()
        if not call:
            return ()
        try:
            async with asyncio.timeout(COUNTING_S):
                found = await asyncio.gather(*(self._one(text) for text in texts))
        except Exception:  # whatever it is, an estimate will do
            self._breaker.failed(call)
            return ()
        except BaseException:
            self._breaker.abandoned(call)
            raise
        self._breaker.succeeded()
        return found

    async def _one(self, text: str) -> int:
        count = (await self._post({"prompt": text, "add_special_tokens": False})).get("count")
        if not isinstance(count, int):
            raise ValueError("no count")
        return count


def estimate(text: str) -> int:
    """Tokens of a text by its bytes."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
