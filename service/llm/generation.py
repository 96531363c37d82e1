"""Generation of one text by the model: the prompt, the streamed pieces, and the draft that they add up to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import MappingProxyType

from trainmedic.service.llm.model import ChatModel, ModelError
from trainmedic.service.llm.prompts import Prompt, build, system_text
from trainmedic.service.llm.stream_filter import StreamFilter
from trainmedic.service.pipeline import Draft

RETRY_SHARE = 0.7
"""The share of the context for a second prompt, after the endpoint has refused the first as too long."""


class Generation:
    """One text; its attributes are complete when `pieces` has ended.

    ``first`` is the time of the first piece (`time.perf_counter`); ``cut``: the token limit ended the text.
    """

    def __init__(self, prepared: Draft, model: ChatModel) -> None:
        self._prepared = prepared
        self._model = model
        self._parts: list[str] = []
        self.prompt = Prompt(messages=(), sources=())
        self.usage: Mapping[str, int] = MappingProxyType({})
        self.first: float | None = None
        self.cut = False

    @property
    def draft(self) -> str:
        return "".join(self._parts)

    async def pieces(self, until: float) -> AsyncGenerator[str, None]:
        """The text that may be shown, until the time ``until`` (`time.perf_counter`). Raises `ModelError`."""
        for share in (1.0, RETRY_SHARE):
            try:
                async with asyncio.timeout(until - time.perf_counter()):
                    limits = await self._model.limits()
                    self.prompt = await build(
                        self._prepared,
                        self._model.count,
                        context_tokens=int(limits.context_tokens * share),
                        max_tokens=limits.max_tokens,
                    )
            except TimeoutError:
                raise ModelError("slow", "counting") from None
            try:
                async with aclosing(self._filtered(limits.max_tokens, until)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except ModelError as failure:
                # The endpoint counts the chat template and special tokens too, so a prompt that fits by our count may
                # not.
                if failure.kind != "too_long" or self._parts or share == RETRY_SHARE:
                    raise

    async def _filtered(self, max_tokens: int, until: float) -> AsyncGenerator[str, None]:
        stream_filter = StreamFilter(system_text(), {source.marker for source in self.prompt.sources})
        left_s = until - time.perf_counter()
        async with aclosing(self._model.stream(self.prompt.messages, max_tokens=max_tokens, within_s=left_s)) as deltas:
            async for delta in deltas:
                self.usage = delta.usage or self.usage
                self.cut = self.cut or delta.finish == "length"
                # The text so far was reasoning: the model closed a block that its template had opened.
                if delta.anew:
                    self._parts.clear()
                if not delta.text:
                    continue
                if self.first is None:
                    self.first = time.perf_counter()
                self._parts.append(delta.text)
                if shown := stream_filter.push(delta.text):
                    yield shown
        if rest := stream_filter.end():
            yield rest
