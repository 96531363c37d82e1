"""The language model behind an OpenAI-compatible endpoint (vLLM first), by LangChain's `ChatOpenAI`.

Whatever goes wrong is one `ModelError` with a kind; nothing else leaves this module. One instance belongs to one
event loop. Cancelling whoever reads a stream closes the connection, by which vLLM stops the generation.

What a model thinks aloud is never text here: templates that can are asked for none (``enable_thinking: false``; an
endpoint that refuses the field is asked without it), and what comes all the same is left out.
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

from trainmedic.kb.breaker import Breaker, State
from trainmedic.service.llm.chat_client import Chat, Delta, Message, delta_of, messages_of, text_of, thinks
from trainmedic.service.llm.errors import BREAKS, TRIED_AGAIN, ModelError, failures
from trainmedic.service.llm.reasoning_filter import ReasoningFilter, without
from trainmedic.service.llm.tokens import COUNTING_S, Counter

__all__ = ["ChatModel", "Delta", "Form", "Message", "ModelError", "ModelLimits", "ModelOptions"]

Form = TypeVar("Form", bound=BaseModel)
PAUSE_S = 0.2
ANSWER_SHARE = 4
"""The answer gets no more than one in so many tokens of a small context."""
SILENT: Mapping[str, Any] = {"enable_thinking": False}
"""What chat templates of models that can think are told (Qwen3 and others; the rest ignore it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Where the model is and how it is used. Times in seconds, sizes in tokens.

    ``name`` empty: the first model that the endpoint lists.
    """

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
    """How many tokens prompt and answer take together at most, and how many of them are the answer's."""

    context_tokens: int
    max_tokens: int


class ChatModel:
    """One endpoint. ``callbacks`` are LangChain's, so that tracing sees every call."""

    def __init__(
        self,
        options: ModelOptions,
        *,
        callbacks: Sequence[BaseCallbackHandler] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.options = options
        self._callbacks = list(callbacks)
        self._clock = clock
        self._breaker = Breaker(clock)
        self._slots = asyncio.Semaphore(options.concurrency)
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(options.timeout_s, connect=min(5.0, options.timeout_s)))
        self._name = options.name
        self._counter = Counter(self._tokenize, clock)
        self._chat: Chat | None = None
        self._served: Mapping[str, Mapping[str, Any]] | None = None
        self._listing = Breaker(clock, failures=1)
        self._template: Literal["unknown", "likely", "taken", "refused"] = "unknown"
        """Whether the endpoint takes what is meant for the chat template."""
        self.opened = False
        """The template ends a prompt inside a block of thought, which the model only closes."""

    @property
    def state(self) -> State:
        """The circuit breaker's state."""
        return self._breaker.state

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def warm(self, messages: Sequence[Message]) -> None:
        """Learn what is served and write one token after ``messages``, so that no user waits for imports, for the
        connection, or for the server to read a beginning that all prompts share. Never raises."""
        with suppress(ModelError):
            await self.limits()
            await self.count([message.content for message in messages])
            async with aclosing(self.stream(messages, max_tokens=1)) as deltas:
                async for _ in deltas:
                    pass

    async def name(self) -> str:
        """The model's name: the one configured, or the first that the endpoint lists. Raises `ModelError`."""
        if not self._name:
            names = list(self._served or await self._listed())
            if not names:
                raise ModelError("unknown_model", "the endpoint lists no model")
            self._name = names[0]
        return self._name

    async def limits(self) -> ModelLimits:
        """The smaller of what the settings give and what the endpoint says it takes (vLLM's ``max_model_len``).

        Never raises: an endpoint that does not answer is believed to take what the settings say.
        """
        if self._served is None and self.state != "open" and (call := self._listing.admit()):
            try:
                async with asyncio.timeout(COUNTING_S):
                    await self._listed()
                    await self._learn(await self.name())
            except (ModelError, TimeoutError):
                self._listing.failed(call)
            except BaseException:
                self._listing.abandoned(call)
                raise
            else:
                self._listing.succeeded()
        most, served = self.options.context_tokens, self._served or {}
        entry = served.get(self._name, {})
        for each in (entry, served.get(str(entry.get("parent")), {})):  # an adapter has the context of its base
            length = each.get("max_model_len")
            if isinstance(length, int) and length > 0:
                most = min(most, length)
        return ModelLimits(context_tokens=most, max_tokens=min(self.options.max_tokens, max(1, most // ANSWER_SHARE)))

    async def probe(self) -> str | None:
        """What is wrong with the endpoint in a word, or None."""
        try:
            names = await self._listed()
        except ModelError as failure:
            return failure.kind
        return None if (self.options.name in names if self.options.name else names) else "unknown_model"

    async def runnable(self, **bound: Any) -> Chat:
        """The LangChain runnable, for chains and agents. Raises `ModelError` where no model can be named."""
        if self._chat is None:
            self._chat = await self._made()
        if not bound:
            return self._chat
        taken = self._template in ("likely", "taken")
        return await self._made(**({**_silenced(), **bound} if taken else bound))

    async def _made(self, **bound: Any) -> Chat:
        options = self.options
        return Chat(
            model=await self.name(),
            base_url=options.base_url,
            api_key=SecretStr(options.api_key or "none"),
            temperature=options.temperature,
            max_retries=0,
            stream_usage=True,
            stream_chunk_timeout=None,  # it loses cancellations on Python 3.11; the limits here do its work
            http_async_client=self._http,
            callbacks=self._callbacks,
            **bound,
        )

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, within_s: float | None = None
    ) -> AsyncGenerator[Delta, None]:
        """What the model writes, piece by piece, all of it ``within_s`` seconds (default and most: the options').

        Raises `ModelError`, also in the middle of a text.
        """
        limit = max_tokens or self.options.max_tokens
        async with self._turn(within_s) as deadline:
            said = ended = False
            for attempt in (0, 1):
                try:
                    async with aclosing(self._attempt(messages, limit, deadline)) as deltas:
                        async for delta in deltas:
                            said = bool(delta.text.strip()) or (said and not delta.anew)
                            ended = ended or delta.finish is not None
                            yield delta
                    break
                except ModelError as failure:
                    if said and failure.kind == "absent":  # the client has one name for both ends of a connection
                        raise ModelError("cut", failure.detail) from None
                    if said or attempt or failure.kind not in TRIED_AGAIN or deadline - self._clock() < PAUSE_S:
                        raise
                    await asyncio.sleep(PAUSE_S)
            if not said:
                raise ModelError("garbage", "the model wrote nothing")
            if not ended:
                raise ModelError("cut", "the stream ended without a reason")

    async def structured(
        self, messages: Sequence[Message], form: type[Form], *, max_tokens: int, within_s: float | None = None
    ) -> Form:
        """One answer in the shape of ``form``; the endpoint enforces the schema, and it is checked again here.

        Not tried a second time. Raises `ModelError`.
        """
        schema = {"name": form.__name__, "schema": form.model_json_schema(), "strict": True}
        shape = {"response_format": {"type": "json_schema", "json_schema": schema}, "max_tokens": max_tokens}
        async with self._turn(within_s) as deadline:
            answer = None
            for way in self._ways():
                try:
                    with failures():
                        async with asyncio.timeout(max(0.0, deadline - self._clock())):
                            asked = (await self.runnable()).bind(**shape, **way)
                            answer = await asked.ainvoke(messages_of(messages))
                    self._settle(way)
                    break
                except ModelError as failure:
                    if not (failure.invalid and way and self._undecided):
                        raise
            try:
                return form.model_validate_json(without(text_of(answer)))
            except ValidationError as error:
                raise ModelError("garbage", f"not in the form asked for: {error.error_count()} problems") from None

    @asynccontextmanager
    async def turn(self, within_s: float | None = None) -> AsyncIterator[float]:
        """A slot for one call that is made through `runnable`, and how many seconds it may take.

        Whatever the client raises inside comes out as a `ModelError`, and the breaker hears of it.
        """
        async with self._turn(within_s) as deadline:
            with failures():
                yield max(0.0, deadline - self._clock())

    async def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, counted by the endpoint (vLLM's ``/tokenize``) or estimated. Never raises."""
        return await self._counter.count(texts, ask=self.state != "open")

    async def _tokenize(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        root = self.options.base_url.rstrip("/").removesuffix("/v1")
        asked = {"model": await self.name(), **body}
        answer = await self._http.post(f"{root}/tokenize", json=asked, headers=self._headers())
        answer.raise_for_status()
        found: Mapping[str, Any] = answer.json()
        return found

    async def _learn(self, name: str) -> None:
        """Whether a vLLM server's template opens a block of thought, before a model that only closes it is heard."""
        entry = (self._served or {}).get(name, {})
        if entry.get("owned_by") == "vllm" and self._template == "unknown":
            self._template = "likely"
            self.opened = await self._counter.ends_inside("think", **SILENT)

    async def _listed(self) -> Mapping[str, Mapping[str, Any]]:
        """The models that the endpoint serves, by name. Raises `ModelError`."""
        data = (await self._get("models")).get("data")
        if not isinstance(data, list):
            raise ModelError("garbage", "models: no list")
        named = [each for each in data if isinstance(each, dict) and isinstance(each.get("id"), str)]
        self._served = {each["id"]: each for each in named}
        return self._served

    async def _get(self, path: str) -> Mapping[str, Any]:
        try:
            url = f"{self.options.base_url.rstrip('/')}/{path}"
            answer = await self._http.get(url, headers=self._headers(), timeout=5.0)
            answer.raise_for_status()
            found = answer.json()
        except httpx.TimeoutException:
            raise ModelError("slow", path) from None
        except httpx.HTTPStatusError as error:
            code = error.response.status_code
            kind = "overloaded" if code == 429 else "server_error" if code >= 500 else "refused"
            raise ModelError(kind, f"{path}: {code}") from None
        except ValueError:
            raise ModelError("garbage", f"{path}: no JSON") from None
        except Exception as error:  # an address may be wrong in ways that the client has no name for
            raise ModelError("absent", type(error).__name__) from None
        if not isinstance(found, dict):
            raise ModelError("garbage", f"{path}: no object")
        return found

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.options.api_key}"} if self.options.api_key else {}

    @asynccontextmanager
    async def _turn(self, within_s: float | None) -> AsyncIterator[float]:
        """A slot and a deadline for one call; its end is told to the breaker."""
        if self._breaker.state == "open":
            raise _left_alone()  # at once: no use to wait for a slot
        deadline = self._clock() + min(self.options.timeout_s, self.options.timeout_s if within_s is None else within_s)
        try:
            async with asyncio.timeout(max(0.0, min(self.options.first_token_s, deadline - self._clock()))):
                await self._slots.acquire()
        except TimeoutError:
            raise ModelError("busy", f"{self.options.concurrency} answers are being written") from None
        try:
            async with self._told():
                yield deadline
        finally:
            self._slots.release()

    @asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        """The breaker lets a call through, and hears how it went."""
        call = self._breaker.admit()
        if not call:
            raise _left_alone()
        try:
            yield
        except ModelError as failure:
            if failure.kind in BREAKS:
                self._breaker.failed(call)
            else:
                self._breaker.succeeded()  # it answered, if only with a refusal
            raise
        except BaseException:
            self._breaker.abandoned(call)
            raise
        else:
            self._breaker.succeeded()

    @property
    def _undecided(self) -> bool:
        return self._template in ("unknown", "likely")

    def _ways(self) -> tuple[Mapping[str, Any], ...]:
        """How a request may be made, the next where the endpoint refuses the form of the one before."""
        if self._undecided:
            return _silenced(), {}
        return (_silenced(),) if self._template == "taken" else ({},)

    def _settle(self, way: Mapping[str, Any]) -> None:
        """The endpoint has answered a request of this form."""
        if self._undecided:
            self._template = "taken" if way else "refused"

    async def _attempt(self, messages: Sequence[Message], limit: int, deadline: float) -> AsyncGenerator[Delta, None]:
        """One request, made in another form where the endpoint refuses that."""
        for way in self._ways():
            try:
                async with aclosing(self._pieces(messages, limit, deadline, way)) as deltas:
                    async for delta in deltas:
                        yield delta
                return
            except ModelError as failure:
                if not (failure.invalid and way and self._undecided):
                    raise

    async def _pieces(
        self, messages: Sequence[Message], limit: int, deadline: float, way: Mapping[str, Any]
    ) -> AsyncGenerator[Delta, None]:
        """What comes, without what was thought. The first token has a limit of its own, everything the deadline."""
        thoughts, whole = ReasoningFilter(opened=self.opened), False
        with failures():
            until = min(self._clock() + self.options.first_token_s, deadline)
            async with asyncio.timeout(max(0.0, until - self._clock())):
                model = await self.runnable()
            async with aclosing(model.astream(messages_of(messages), max_tokens=limit, **way)) as chunks:  # type: ignore[type-var]
                while True:
                    async with asyncio.timeout(max(0.0, until - self._clock())):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        break
                    self._settle(way)
                    delta, apart = delta_of(chunk), thinks(chunk)
                    if delta.text or apart:
                        until = deadline
                    if apart:
                        thoughts.apart()
                    shown = thoughts.push(delta.text)
                    self.opened, anew = self.opened or thoughts.orphaned, thoughts.orphaned
                    thoughts.orphaned = False
                    whole = whole or delta.finish not in (None, "length")
                    yield delta if shown == delta.text and not anew else replace(delta, text=shown, anew=anew)
                if rest := thoughts.end(whole=whole):
                    yield Delta(text=rest)


def _silenced() -> dict[str, Any]:
    return {"extra_body": {"chat_template_kwargs": dict(SILENT)}}


def _left_alone() -> ModelError:
    return ModelError("open", "it failed several times running and is left alone for a while")
