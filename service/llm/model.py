"""A language model at an OpenAI-compatible endpoint (mainly vLLM), through LangChain's `ChatOpenAI`.

Every failure is a `ModelError` with a kind; no other exception leaves this module. An instance belongs to one event
loop. Cancelling the reader of a stream closes the connection, and vLLM then stops generating.

A model's reasoning is never part of its text: it is switched off in the chat template (``enable_thinking: false``,
dropped if the endpoint refuses the field), and filtered out if the model reasons anyway.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import httpx
from langchain_core.callbacks import BaseCallbackHandler
from pydantic import BaseModel, SecretStr, ValidationError
from tenacity import AsyncRetrying, retry_if_exception, wait_fixed

from trainmedic.kb.breaker import Breaker, State
from trainmedic.kb.identities import masked_values
from trainmedic.service.llm.chat_client import Chat, Delta, Message, delta_of, has_reasoning, messages_of, text_of
from trainmedic.service.llm.errors import BREAKS, RETRIED, ModelError, failures
from trainmedic.service.llm.reasoning_filter import ReasoningFilter, without_reasoning
from trainmedic.service.llm.tokens import COUNTING_S, Counter

__all__ = ["ChatModel", "Delta", "Form", "Message", "ModelError", "ModelLimits", "ModelOptions"]

Form = TypeVar("Form", bound=BaseModel)
ATTEMPTS = 2
PAUSE_S = 0.2
ANSWER_SHARE = 4
"""The answer gets at most this fraction of a small context: one token in four."""
SILENT: Mapping[str, Any] = {"enable_thinking": False}
"""Switches reasoning off in the chat templates of Qwen3 and others; the rest ignore it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Where the model is and how to use it. An empty ``name`` means the first model that the endpoint lists."""

    base_url: str
    name: str = ""
    api_key: str = field(default="", repr=False)
    context_tokens: int = 8192
    max_tokens: int = 900
    temperature: float = 0.2
    timeout_s: float = 25.0
    first_token_s: float = 10.0
    concurrency: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """The most tokens for prompt and answer together, and for the answer."""

    context_tokens: int
    max_tokens: int


class ChatModel:
    """One endpoint. ``callbacks`` are LangChain's, for tracing; an agent's tools are reported to them too."""

    def __init__(
        self,
        options: ModelOptions,
        *,
        callbacks: Sequence[BaseCallbackHandler] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self.callbacks = list(callbacks)
        self._clock = clock
        self._breaker = Breaker(clock)
        self._slots = asyncio.Semaphore(options.concurrency)
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(options.timeout_s, connect=min(5.0, options.timeout_s)))
        self._name = options.name
        self._counter = Counter(self._tokenize, clock)
        self._chat: Chat | None = None
        self._served: Mapping[str, Mapping[str, Any]] | None = None
        self._listing = Breaker(clock, failures=1)
        self._template: Literal["unknown", "likely", "accepted", "refused"] = "unknown"
        """Whether the endpoint accepts parameters for the chat template."""
        self.opened = False
        """The template ends a prompt inside a reasoning block, which the model only closes."""

    @property
    def state(self) -> State:
        return self._breaker.state

    async def aclose(self) -> None:
        await self._http.aclose()

    async def warm(self, messages: Sequence[Message]) -> None:
        """Read the model list and generate one token, so that no user waits for imports, for the connection, or for the
        server to process ``messages``, the prefix that all prompts share. Never raises."""
        with suppress(ModelError):
            await self.limits()
            await self.count([message.content for message in messages])
            async with aclosing(self.stream(messages, max_tokens=1)) as deltas:
                async for _ in deltas:
                    pass

    async def name(self) -> str:
        """The model's name: the one configured, or the first that the endpoint lists. Raises `ModelError`."""
        if not self._name:
            names = list(self._served or await self._fetch_models())
            if not names:
                raise ModelError("unknown_model", "the endpoint lists no model")
            self._name = names[0]
        return self._name

    async def limits(self) -> ModelLimits:
        """The configured limits, or the endpoint's own (vLLM's ``max_model_len``) if they are smaller.

        Never raises: falls back to the configured limits if the endpoint does not respond.
        """
        if self._served is None and self.state != "open" and (call := self._listing.admit()):
            try:
                async with asyncio.timeout(COUNTING_S):
                    await self._fetch_models()
                    await self._detect_opened(await self.name())
            except (ModelError, TimeoutError):
                self._listing.failed(call)
            except BaseException:
                self._listing.abandoned(call)
                raise
            else:
                self._listing.succeeded()
        most, served = self.options.context_tokens, self._served or {}
        entry = served.get(self._name, {})
        for model in (entry, served.get(str(entry.get("parent")), {})):  # an adapter has the context of its base
            length = model.get("max_model_len")
            if isinstance(length, int) and length > 0:
                most = min(most, length)
        return ModelLimits(context_tokens=most, max_tokens=min(self.options.max_tokens, max(1, most // ANSWER_SHARE)))

    async def probe(self) -> str | None:
        """The kind of `ModelError` that a call would raise now, or None."""
        try:
            names = await self._fetch_models()
        except ModelError as failure:
            return failure.kind
        # Without a configured name any listed model will do.
        return None if (self.options.name in names if self.options.name else names) else "unknown_model"

    async def runnable(self, **bound: Any) -> Chat:
        """The LangChain runnable, for chains and agents. Raises `ModelError` if the model's name is unknown."""
        if self._chat is None:
            self._chat = await self._new_client()
        if not bound:
            return self._chat
        accepted = self._template in ("likely", "accepted")
        return await self._new_client(**({**_no_thinking(), **bound} if accepted else bound))

    async def _new_client(self, **bound: Any) -> Chat:
        options = self.options
        return Chat(
            model=await self.name(),
            base_url=options.base_url,
            api_key=SecretStr(options.api_key or "none"),
            temperature=options.temperature,
            # The client's own retries would ignore the deadline and the breaker.
            max_retries=0,
            stream_usage=True,
            stream_chunk_timeout=None,  # it loses cancellations on Python 3.11; the limits here do its work
            http_async_client=self._http,
            callbacks=self.callbacks,
            **bound,
        )

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, within_s: float | None = None
    ) -> AsyncGenerator[Delta, None]:
        """The model's text in pieces, all within ``within_s`` seconds (at most the configured time, the default).

        Raises `ModelError`, also in the middle of a text.
        """
        limit = max_tokens or self.options.max_tokens
        async with self._turn(within_s) as deadline:
            written = ended = False
            retrying = AsyncRetrying(
                # Once text was shown a second attempt would write it twice.
                retry=retry_if_exception(lambda e: isinstance(e, ModelError) and e.kind in RETRIED and not written),
                stop=lambda state: state.attempt_number == ATTEMPTS or deadline - self._clock() < PAUSE_S,
                wait=wait_fixed(PAUSE_S),
                reraise=True,
            )
            try:
                async for attempt in retrying:
                    with attempt:
                        async with aclosing(self._attempt(messages, limit, deadline)) as deltas:
                            async for delta in deltas:
                                written = bool(delta.text.strip()) or (written and not delta.anew)
                                ended = ended or delta.finish is not None
                                yield delta
            except ModelError as failure:
                # The client's error for a broken connection is the same as for a refused one.
                if written and failure.kind == "absent":
                    raise ModelError("cut", failure.detail) from None
                raise
            if not written:
                raise ModelError("garbage", "the model wrote nothing")
            if not ended:
                raise ModelError("cut", "the stream ended without a reason")

    async def structured(
        self, messages: Sequence[Message], form: type[Form], *, max_tokens: int, within_s: float | None = None
    ) -> Form:
        """One answer in the shape of ``form``, whose schema the endpoint enforces and this validates. Not retried.

        Raises `ModelError`.
        """
        schema = {"name": form.__name__, "schema": form.model_json_schema(), "strict": True}
        shape = {"response_format": {"type": "json_schema", "json_schema": schema}, "max_tokens": max_tokens}
        async with self._turn(within_s) as deadline:
            answer = None
            for variant in self._variants():
                try:
                    with failures():
                        async with asyncio.timeout(max(0.0, deadline - self._clock())):
                            runnable = (await self.runnable()).bind(**shape, **variant)
                            answer = await runnable.ainvoke(messages_of(messages))
                    self._template_answered(variant)
                    break
                except ModelError as failure:
                    if not (failure.invalid and variant and self._template_undecided):
                        raise
            try:
                return form.model_validate_json(without_reasoning(text_of(answer)))
            except ValidationError as error:
                raise ModelError("garbage", f"does not match the schema: {error.error_count()} problems") from None

    @asynccontextmanager
    async def turn(self, within_s: float | None = None) -> AsyncIterator[float]:
        """A slot for one call through `runnable`, and the seconds that it may take.

        Any exception inside becomes a `ModelError` and is reported to the breaker.
        """
        async with self._turn(within_s) as deadline:
            with failures():
                yield max(0.0, deadline - self._clock())

    async def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, counted by the endpoint (vLLM's ``/tokenize``) or estimated. Never raises."""
        return await self._counter.count(texts, ask=self.state != "open")

    async def _tokenize(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        # vLLM serves /tokenize beside /v1, not below it.
        root = self.options.base_url.rstrip("/").removesuffix("/v1")
        request = {"model": await self.name(), **{key: masked_values(value) for key, value in body.items()}}
        response = await self._http.post(f"{root}/tokenize", json=request, headers=self._headers())
        response.raise_for_status()
        counts: Mapping[str, Any] = response.json()
        return counts

    async def _detect_opened(self, name: str) -> None:
        """Ask a vLLM server whether its template opens a reasoning block, before the first text arrives."""
        entry = (self._served or {}).get(name, {})
        if entry.get("owned_by") == "vllm" and self._template == "unknown":
            # vLLM accepts chat_template_kwargs; whether this template uses them is seen in the first answer.
            self._template = "likely"
            self.opened = await self._counter.ends_inside("think", **SILENT)

    async def _fetch_models(self) -> Mapping[str, Mapping[str, Any]]:
        data = (await self._get("models")).get("data")
        if not isinstance(data, list):
            raise ModelError("garbage", "models: no list")
        models = [model for model in data if isinstance(model, dict) and isinstance(model.get("id"), str)]
        self._served = {model["id"]: model for model in models}
        return self._served

    async def _get(self, path: str) -> Mapping[str, Any]:
        try:
            url = f"{self.options.base_url.rstrip('/')}/{path}"
            response = await self._http.get(url, headers=self._headers(), timeout=5.0)
            response.raise_for_status()
            content = response.json()
        except httpx.TimeoutException:
            raise ModelError("slow", path) from None
        except httpx.HTTPStatusError as error:
            code = error.response.status_code
            kind = "overloaded" if code == 429 else "server_error" if code >= 500 else "refused"
            raise ModelError(kind, f"{path}: {code}") from None
        except ValueError:
            raise ModelError("garbage", f"{path}: no JSON") from None
        except Exception as error:  # httpx raises various exceptions for a malformed address
            raise ModelError("absent", type(error).__name__) from None
        if not isinstance(content, dict):
            raise ModelError("garbage", f"{path}: no object")
        return content

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.options.api_key}"} if self.options.api_key else {}

    @asynccontextmanager
    async def _turn(self, within_s: float | None) -> AsyncIterator[float]:
        """A slot and a deadline for one call, whose result is reported to the breaker."""
        if self._breaker.state == "open":
            raise _breaker_open()  # before waiting for a slot
        # Set before waiting for a slot: a full queue must not stretch the answer past the configured time.
        deadline = self._clock() + min(self.options.timeout_s, self.options.timeout_s if within_s is None else within_s)
        try:
            # Waiting for a slot counts towards the first token: to the user both are a silent page.
            async with asyncio.timeout(max(0.0, min(self.options.first_token_s, deadline - self._clock()))):
                await self._slots.acquire()
        except TimeoutError:
            raise ModelError("busy", f"{self.options.concurrency} answers are being written") from None
        try:
            async with self._guarded():
                yield deadline
        finally:
            self._slots.release()

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[None]:
        call = self._breaker.admit()
        if not call:
            raise _breaker_open()
        try:
            yield
        except ModelError as failure:
            if failure.kind in BREAKS:
                self._breaker.failed(call)
            else:
                # A refusal of one request (too long, bad form) says that the endpoint works.
                self._breaker.succeeded()  # it responded, if only with a refusal
            raise
        except BaseException:
            self._breaker.abandoned(call)
            raise
        else:
            self._breaker.succeeded()

    @property
    def _template_undecided(self) -> bool:
        return self._template in ("unknown", "likely")

    def _variants(self) -> tuple[Mapping[str, Any], ...]:
        """The extra parameters to try, each if the endpoint refuses the one before."""
        if self._template_undecided:
            return _no_thinking(), {}
        return (_no_thinking(),) if self._template == "accepted" else ({},)

    def _template_answered(self, variant: Mapping[str, Any]) -> None:
        if self._template_undecided:
            self._template = "accepted" if variant else "refused"

    async def _attempt(self, messages: Sequence[Message], limit: int, deadline: float) -> AsyncGenerator[Delta, None]:
        """One request, in the next variant if the endpoint refuses the first."""
        for variant in self._variants():
            try:
                async with aclosing(self._pieces(messages, limit, deadline, variant)) as deltas:
                    async for delta in deltas:
                        yield delta
                return
            except ModelError as failure:
                if not (failure.invalid and variant and self._template_undecided):
                    raise

    async def _pieces(
        self, messages: Sequence[Message], limit: int, deadline: float, variant: Mapping[str, Any]
    ) -> AsyncGenerator[Delta, None]:
        """The text without reasoning. The first token has a limit of its own, the whole text has the deadline."""
        reasoning, whole = ReasoningFilter(opened=self.opened), False
        with failures():
            until = min(self._clock() + self.options.first_token_s, deadline)
            async with asyncio.timeout(max(0.0, until - self._clock())):
                model = await self.runnable()
            async with aclosing(model.astream(messages_of(messages), max_tokens=limit, **variant)) as chunks:  # type: ignore[type-var]
                while True:
                    async with asyncio.timeout(max(0.0, until - self._clock())):
                        # Each wait has its own timeout, because the limit changes from first token to deadline on the
                        # way.
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        break
                    self._template_answered(variant)
                    delta, apart = delta_of(chunk), has_reasoning(chunk)
                    # Reasoning counts as a sign of life: the model works, even if nothing may be shown yet.
                    if delta.text or apart:
                        until = deadline
                    if apart:
                        reasoning.apart()
                    shown = reasoning.push(delta.text)
                    self.opened, anew = self.opened or reasoning.orphaned, reasoning.orphaned
                    reasoning.orphaned = False
                    whole = whole or delta.finish not in (None, "length")
                    yield delta if shown == delta.text and not anew else replace(delta, text=shown, anew=anew)
                if rest := reasoning.end(whole=whole):
                    yield Delta(text=rest)


def _no_thinking() -> dict[str, Any]:
    return {"extra_body": {"chat_template_kwargs": dict(SILENT)}}


def _breaker_open() -> ModelError:
    return ModelError("open", "it is temporarily disabled after repeated failures")
