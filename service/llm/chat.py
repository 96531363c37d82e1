"""A language model at an OpenAI-compatible endpoint (mainly vLLM), through LangChain's `ChatOpenAI`.

Every failure is a `ModelError` with a kind; no other exception leaves this module. An instance belongs to one event
loop. Cancelling the reader of a stream closes the connection, and vLLM then stops generating.

A model's reasoning is never part of its text: it is switched off in the chat template (``enable_thinking: false``,
dropped if the endpoint refuses the field), and filtered out if the model reasons anyway.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_ai_message_chunks
from pydantic import BaseModel, SecretStr, ValidationError
from tenacity import AsyncRetrying, retry_if_exception, wait_fixed

from trainmedic.kb.breaker import State
from trainmedic.service.llm.abilities import CHAT, Abilities, Post, abilities_of
from trainmedic.service.llm.chat_client import (
    Chat,
    Completion,
    Message,
    Piece,
    calls_of,
    finish_of,
    has_reasoning,
    messages_of,
    text_of,
    usage_of,
)
from trainmedic.service.llm.endpoint import SILENT, Endpoint, ModelLimits, ModelOptions
from trainmedic.service.llm.errors import RETRIED, ModelError, failures
from trainmedic.service.llm.model_calls import CallRecord, ModelCall, recorded
from trainmedic.service.llm.reasoning_filter import ReasoningFilter, without_reasoning
from trainmedic.service.llm.turns import Turns

__all__ = ["ChatModel", "Completion", "Form", "Message", "ModelError", "ModelLimits", "ModelOptions", "Piece"]

Form = TypeVar("Form", bound=BaseModel)
T = TypeVar("T")
ATTEMPTS = 2
PAUSE_S = 0.2
_NO_THINKING: Mapping[str, Any] = {"extra_body": {"chat_template_kwargs": dict(SILENT)}}


@dataclass(slots=True)
class _Draft:
    """The part of one turn received so far."""

    parts: list[str] = field(default_factory=list)
    calling: AIMessageChunk | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    finish: str | None = None

    @property
    def begun(self) -> bool:
        return self.calling is not None or any(part.strip() for part in self.parts)

    def add(self, piece: Piece) -> None:
        if piece.anew:
            self.parts.clear()
        self.parts.append(piece.text)

    def note(self, chunk: AIMessageChunk) -> None:
        """Take what the chunk carries besides text."""
        self.usage = usage_of(chunk) or self.usage
        self.finish = finish_of(chunk) or self.finish
        if chunk.tool_call_chunks:
            self.calling = add_ai_message_chunks(self.calling, chunk) if self.calling is not None else chunk

    def complete(self) -> Completion:
        """Raises `ModelError` if there is nothing or no end."""
        if not self.begun:
            raise ModelError("garbage", "the model wrote nothing")
        # A connection that drops looks like a short answer, except that it gives no reason to end.
        if self.finish is None:
            raise ModelError("cut", "the stream ended without a reason")
        cut = self.finish == "length"
        calls = calls_of(self.calling, cut=cut) if self.calling is not None else ()
        return Completion(text="".join(self.parts), calls=calls, usage=self.usage, cut=cut)


class ChatModel:
    """One model; ``on_call`` is told of every request that was sent."""

    def __init__(
        self,
        options: ModelOptions,
        *,
        on_call: Callable[[ModelCall], None] = lambda call: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self._on_call = on_call
        self._clock = clock
        self._endpoint = Endpoint(options, clock)
        self._turns = Turns(options, clock)
        self._chat: Chat | None = None
        self._accepts_field: bool | None = None
        """Whether the endpoint accepts parameters for the chat template; None while that is unknown."""
        self.abilities: Abilities | None = None
        """Its abilities; None while unknown."""
        self._looking: asyncio.Task[Abilities] | None = None

    @property
    def state(self) -> State:
        return self._turns.state

    async def aclose(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._endpoint.http.aclose()

    async def warm(self, messages: Sequence[Message]) -> None:
        """Read the model list and generate one token, so that no user waits for imports, for the connection, or for the
        server to process ``messages``, the prefix that all prompts share. Never raises."""
        with suppress(ModelError):
            await self.limits()
            await self.count([message.content for message in messages])
            async with aclosing(self.stream(messages, max_tokens=1)) as pieces:
                async for _ in pieces:
                    pass
            await self.able()

    async def name(self) -> str:
        """The model's name: the one configured, or the first that the endpoint lists. Raises `ModelError`."""
        if self._endpoint.named:
            return await self._endpoint.name()
        async with self._turns.turn():  # whoever is not there is left alone after a while
            return await self._endpoint.name()

    async def limits(self) -> ModelLimits:
        """The most tokens for prompt and answer. Never raises."""
        return await self._endpoint.limits(ask=self.state != "open")

    async def probe(self) -> str | None:
        """The kind of `ModelError` that a call would raise now, or None.

        A model that was lost may come back as another one: what it can do is then looked at again, in the background.
        """
        trouble = await self._endpoint.probe()
        if trouble is not None:
            self.abilities = None
        elif self.abilities is None:
            self._look()
        return trouble

    async def able(self) -> Abilities:
        """The abilities of the endpoint and its model, probed once. Raises `ModelError` if it does not answer."""
        if self.abilities is not None:
            return self.abilities
        return await asyncio.shield(self._look())

    def _look(self) -> asyncio.Task[Abilities]:
        async def look() -> Abilities:
            able = await abilities_of(self._post)
            self.abilities = able
            return able

        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(look())
            self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._looking

    async def ask(self, call: Callable[[Post], Awaitable[T]], within_s: float | None = None) -> T:
        """The reply to a short request (see `service.llm.abilities`), in a slot of its own. Raises `ModelError`."""
        async with self._turns.turn(within_s) as deadline:
            with failures(), recorded(await self._endpoint.name(), self.options.base_url, 1, self._on_call):
                async with self._until(deadline):
                    return await call(self._post)

    async def _post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """One request, in the next variant if the endpoint refuses the first."""
        if path != CHAT:
            return await self._endpoint.post(path, body)
        *others, last = self._variants()
        for variant in others:
            try:
                answer = await self._endpoint.post(path, {**body, **variant["extra_body"]})
            except ModelError as failure:
                if not self._may_drop(variant, failure):
                    raise
            else:
                self._answered(variant)
                return answer
        answer = await self._endpoint.post(path, {**body, **last.get("extra_body", {})})
        self._answered(last)
        return answer

    async def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, counted by the endpoint or estimated. Never raises."""
        return await self._endpoint.count(texts, ask=self.state != "open")

    async def stream(
        self,
        messages: Sequence[Message | BaseMessage],
        *,
        max_tokens: int | None = None,
        within_s: float | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
    ) -> AsyncGenerator[Piece | Completion, None]:
        """The model's text in pieces, then its `Completion`, all within ``within_s`` seconds (at most the configured
        time, the default). ``tools`` are descriptions in the form of the OpenAI API.

        Raises `ModelError`, also in the middle of a text.
        """
        # What `bind_tools` would send; the stream of its wrapper does not close the connection with its reader.
        bound: dict[str, Any] = {"max_tokens": max_tokens or self.options.max_tokens}
        bound |= {"tools": list(tools)} if tools else {}
        bound |= {"tool_choice": tool_choice} if tool_choice else {}
        async with aclosing(self._completed(messages, bound, within_s)) as pieces:
            async for piece in pieces:
                yield piece

    async def structured(
        self,
        messages: Sequence[Message | BaseMessage],
        form: type[Form],
        *,
        max_tokens: int,
        within_s: float | None = None,
        usage: Counter[str] | None = None,
    ) -> Form:
        """One answer in the shape of ``form``, whose schema the endpoint enforces and this validates.

        Adds the tokens used to ``usage``. Raises `ModelError`.
        """
        schema = {"name": form.__name__, "schema": form.model_json_schema(), "strict": True}
        bound: dict[str, Any] = {
            "response_format": {"type": "json_schema", "json_schema": schema},
            "max_tokens": max_tokens,
        }
        async with aclosing(self._completed(messages, bound, within_s)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    completion = piece
        if usage is not None:
            usage.update(completion.usage)
        with suppress(ValidationError):
            return form.model_validate_json(completion.text)  # it may speak of a tag that ends reasoning
        try:
            return form.model_validate_json(without_reasoning(completion.text))
        except ValidationError as error:
            raise ModelError("garbage", f"does not match the schema: {error.error_count()} problems") from None

    async def _completed(
        self, messages: Sequence[Message | BaseMessage], bound: Mapping[str, Any], within_s: float | None
    ) -> AsyncGenerator[Piece | Completion, None]:
        draft = _Draft()
        async with self._turns.turn(within_s) as deadline:
            retrying = AsyncRetrying(
                # Once text was shown a second attempt would write it twice.
                retry=retry_if_exception(lambda e: isinstance(e, ModelError) and e.kind in RETRIED and not draft.begun),
                stop=lambda state: state.attempt_number == ATTEMPTS or deadline - self._clock() < PAUSE_S,
                wait=wait_fixed(PAUSE_S),
                reraise=True,
            )
            try:
                async for attempt in retrying:
                    with attempt:
                        async with aclosing(self._attempt(messages_of(messages), bound, deadline, draft)) as pieces:
                            async for piece in pieces:
                                yield piece
            except ModelError as failure:
                # The client's error for a broken connection is the same as for a refused one.
                if draft.begun and failure.kind == "absent":
                    raise ModelError("cut", failure.detail) from None
                raise
            completion = draft.complete()
        yield completion  # after the slot was given back

    async def _attempt(
        self, messages: Sequence[BaseMessage], bound: Mapping[str, Any], deadline: float, draft: _Draft
    ) -> AsyncGenerator[Piece, None]:
        """One request, in the next variant if the endpoint refuses the first."""
        for variant in self._variants():
            try:
                async with aclosing(self._pieces(messages, bound, variant, deadline, draft)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except ModelError as failure:
                if not self._may_drop(variant, failure):
                    raise

    async def _pieces(
        self,
        messages: Sequence[BaseMessage],
        bound: Mapping[str, Any],
        variant: Mapping[str, Any],
        deadline: float,
        draft: _Draft,
    ) -> AsyncGenerator[Piece, None]:
        """The text, without reasoning unless it is a form. The first token has a limit of its own, the whole text has
        the deadline."""
        reasoning = ReasoningFilter(opened=self._endpoint.opened)
        is_form = "response_format" in bound
        until = min(self._clock() + self.options.first_token_s, deadline)
        with failures():
            async with self._until(until):
                client = await self._client()
            with self._recorded(client, bound["max_tokens"]) as record:
                async with aclosing(client.astream(list(messages), **bound, **variant)) as chunks:  # type: ignore[type-var]
                    while True:
                        # Each wait has its own timeout: the limit changes from first token to deadline on the way.
                        async with self._until(until):
                            chunk = await anext(chunks, None)
                        if chunk is None:
                            break
                        self._answered(variant)
                        record.began()
                        record.heard(chunk)
                        draft.note(chunk)
                        text, apart = text_of(chunk), has_reasoning(chunk)
                        # Reasoning counts as a sign of life: the model works, even if nothing may be shown yet.
                        if text or apart or chunk.tool_call_chunks:
                            until = deadline
                        if apart:
                            reasoning.apart()
                        if is_form:
                            draft.add(Piece(text=text))
                            continue
                        piece = Piece(text=reasoning.push(text), anew=reasoning.orphaned)
                        self._endpoint.opened |= reasoning.orphaned
                        reasoning.orphaned = False
                        if piece.text or piece.anew:
                            draft.add(piece)
                            yield piece
            if not is_form and (rest := reasoning.end(whole=draft.finish not in (None, "length"))):
                draft.add(Piece(text=rest))
                yield Piece(text=rest)

    def _until(self, deadline: float) -> asyncio.Timeout:
        return asyncio.timeout(max(0.0, deadline - self._clock()))

    def _recorded(self, client: Chat, max_tokens: int) -> AbstractContextManager[CallRecord]:
        return recorded(client.model_name, self.options.base_url, max_tokens, self._on_call)

    async def _client(self) -> Chat:
        """LangChain's client. Raises `ModelError` if the model's name is unknown."""
        if self._chat is None:
            options = self.options
            self._chat = Chat(
                model=await self._endpoint.name(),
                base_url=options.base_url,
                api_key=SecretStr(options.api_key or "none"),
                temperature=options.temperature,
                # The client's own retries would ignore the deadline and the breaker.
                max_retries=0,
                stream_usage=True,
                stream_chunk_timeout=None,  # it loses cancellations on Python 3.11; the limits here do its work
                http_async_client=self._endpoint.http,
            )
        return self._chat

    def _variants(self) -> tuple[Mapping[str, Any], ...]:
        """The extra parameters to try, each if the endpoint refuses the one before."""
        if self._accepts_field is None:
            return _NO_THINKING, {}
        return (_NO_THINKING,) if self._accepts_field else ({},)

    def _answered(self, variant: Mapping[str, Any]) -> None:
        if self._accepts_field is None:
            self._accepts_field = bool(variant)

    def _may_drop(self, variant: Mapping[str, Any], failure: ModelError) -> bool:
        return failure.invalid and bool(variant) and self._accepts_field is None
