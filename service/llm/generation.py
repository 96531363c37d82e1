"""One text by the model: its prompt, the words that may be shown, and what they add up to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from trainmedic.service.llm.chat import ChatModel, Completion, ModelError
from trainmedic.service.llm.prompts import Prompt, build, system_text
from trainmedic.service.llm.stream_filter import StreamFilter
from trainmedic.service.pipeline import Draft

RETRY_SHARE = 0.7
"""The share of the context for a second prompt, after the endpoint has refused the first as too long."""


async def generated(prepared: Draft, model: ChatModel, until: float) -> AsyncGenerator[Prompt | str | Completion, None]:
    """The prompt, the words that may be shown, and the whole text, until the time ``until`` (`time.perf_counter`).

    Raises `ModelError`.
    """
    shown = False
    for share in (1.0, RETRY_SHARE):
        try:
            async with asyncio.timeout(until - time.perf_counter()):
                limits = await model.limits()
                context_tokens, max_tokens = int(limits.context_tokens * share), limits.max_tokens
                prompt = await build(prepared, model.count, context_tokens=context_tokens, max_tokens=max_tokens)
        except TimeoutError:
            raise ModelError("slow", "counting") from None
        yield prompt
        words = StreamFilter(system_text(), {source.marker for source in prompt.sources})
        left_s = until - time.perf_counter()
        try:
            async with aclosing(model.stream(prompt.messages, max_tokens=max_tokens, within_s=left_s)) as pieces:
                async for piece in pieces:
                    text = words.end() if isinstance(piece, Completion) else words.push(piece.text)
                    if text:
                        shown = True
                        yield text
                    if isinstance(piece, Completion):
                        yield piece
            return
        except ModelError as failure:
            # The endpoint counts the chat template and special tokens too, so a prompt that fits by our count may not.
            if failure.kind != "too_long" or shown or share == RETRY_SHARE:
                raise
