"""The language model behind an OpenAI-compatible endpoint (vLLM first), by LangChain's `ChatOpenAI`.

Whatever goes wrong is one `ModelFailure` with a kind; nothing else leaves this module. One instance belongs to one
event loop. Cancelling whoever reads a stream closes the connection, by which vLLM stops the generation.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, TypeVar

import httpx
import openai
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr, ValidationError

from service.breaker import Breaker, State

Form = TypeVar("Form", bound=BaseModel)
BREAKS = frozenset({"absent", "slow", "server_error", "overloaded", "cut"})
"""Failures that the next call would meet too: they open the breaker."""
TRIED_AGAIN = frozenset({"absent", "server_error", "overloaded"})
"""Failures before the first token that are worth a second try."""
PAUSE_S = 0.2
COUNTING_S = 3.0
"""How long counting tokens may take; an estimate will do."""
COUNTS_KEPT = 2048
BYTES_PER_TOKEN = 3
"""A careful estimate where the endpoint cannot count: Chinese takes about three bytes a token, English four."""
_TOO_LONG = (
    "context length",
    "maximum context",
    "max_model_len",
    "too many tokens",
    "longer than the maximum",
    "context window",
)


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
class Message:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of what the model writes; the last one may carry token counts and why it ended."""

    text: str = ""
    usage: Mapping[str, int] | None = None
    finish: str | None = None


class ModelFailure(Exception):
    """The model did not do what was asked. ``detail`` holds no secret and is safe to log.

    ``kind``: absent, slow, refused, overloaded, server_error, cut, garbage, unknown_model, too_long, busy (no slot) or
    open (the circuit breaker is).
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail


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
        self._counts: OrderedDict[bytes, int] = OrderedDict()
        self._tokenizer = Breaker(clock, failures=1)

    @property
    def state(self) -> State:
        """The circuit breaker's state."""
        return self._breaker.state

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def name(self) -> str:
        """The model's name: the one configured, or the first that the endpoint lists. Raises `ModelFailure`."""
        if not self._name:
            names = await self._listed()
            if not names:
                raise ModelFailure("unknown_model", "the endpoint lists no model")
            self._name = names[0]
        return self._name

    async def probe(self) -> str | None:
        """What is wrong with the endpoint in a word, or None."""
        try:
            names = await self._listed()
        except ModelFailure as failure:
            return failure.kind
        return None if (self.options.name in names if self.options.name else names) else "unknown_model"

    async def runnable(self, **bound: Any) -> ChatOpenAI:
        """The LangChain runnable, for chains and agents. Raises `ModelFailure` where no model can be named."""
        options = self.options
        return ChatOpenAI(
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

        Raises `ModelFailure`, also in the middle of a text.
        """
        limit = max_tokens or self.options.max_tokens
        async with self._turn(within_s) as deadline:
            said = ended = False
            for attempt in (0, 1):
                try:
                    async with aclosing(self._attempt(messages, limit, deadline)) as deltas:
                        async for delta in deltas:
                            said, ended = said or bool(delta.text.strip()), ended or delta.finish is not None
                            yield delta
                    break
                except ModelFailure as failure:
                    if said and failure.kind == "absent":  # the client has one name for both ends of a connection
                        raise ModelFailure("cut", failure.detail) from None
                    if said or attempt or failure.kind not in TRIED_AGAIN or deadline - self._clock() < PAUSE_S:
                        raise
                    await asyncio.sleep(PAUSE_S)
            if not said:
                raise ModelFailure("garbage", "the model wrote nothing")
            if not ended:
                raise ModelFailure("cut", "the stream ended without a reason")

    async def structured(
        self, messages: Sequence[Message], form: type[Form], *, max_tokens: int, within_s: float | None = None
    ) -> Form:
        """One answer in the shape of ``form``; the endpoint enforces the schema, and it is checked again here.

        Not tried a second time. Raises `ModelFailure`.
        """
        schema = {"name": form.__name__, "schema": form.model_json_schema(), "strict": True}
        async with self._turn(within_s) as deadline:
            with _failures():
                async with asyncio.timeout(max(0.0, deadline - self._clock())):
                    model = await self.runnable(max_tokens=max_tokens)
                    asked = model.bind(response_format={"type": "json_schema", "json_schema": schema})
                    answer = await asked.ainvoke(_messages(messages))
            try:
                return form.model_validate_json(_text(answer))
            except ValidationError as error:
                raise ModelFailure("garbage", f"not in the form asked for: {error.error_count()} problems") from None

    async def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, counted by the endpoint (vLLM's ``/tokenize``) or estimated. Never raises."""
        keys = [blake2b(text.encode("utf-8", "replace"), digest_size=12).digest() for text in texts]
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._counts}
        self._counts.update(zip(unknown, await self._tokenized(list(unknown.values())), strict=False))
        numbers = [self._counts.get(key, _estimate(text)) for key, text in zip(keys, texts, strict=True)]
        for key in self._counts.keys() & set(keys):
            self._counts.move_to_end(key)
        while len(self._counts) > COUNTS_KEPT:
            self._counts.popitem(last=False)
        return numbers

    async def _tokenized(self, texts: Sequence[str]) -> Sequence[int]:
        """Counts by the endpoint, all at once; none where it cannot, and then it is not asked again for a while."""
        if not texts or self.state == "open" or not self._tokenizer.admit():
            return ()
        try:
            async with asyncio.timeout(COUNTING_S):
                name = await self.name()
                found = await asyncio.gather(*(self._tokenize(name, text) for text in texts))
        except Exception:  # whatever it is, an estimate will do
            self._tokenizer.failed()
            return ()
        except BaseException:
            self._tokenizer.abandoned()
            raise
        self._tokenizer.succeeded()
        return found

    async def _tokenize(self, name: str, text: str) -> int:
        root = self.options.base_url.rstrip("/").removesuffix("/v1")
        body = {"model": name, "prompt": text, "add_special_tokens": False}
        answer = await self._http.post(f"{root}/tokenize", json=body, headers=self._headers())
        answer.raise_for_status()
        count = answer.json().get("count")
        if not isinstance(count, int):
            raise ValueError("no count")
        return count

    async def _listed(self) -> list[str]:
        """The models that the endpoint serves. Raises `ModelFailure`."""
        data = (await self._get("models")).get("data")
        if not isinstance(data, list):
            raise ModelFailure("garbage", "models: no list")
        return [each["id"] for each in data if isinstance(each, dict) and isinstance(each.get("id"), str)]

    async def _get(self, path: str) -> Mapping[str, Any]:
        try:
            url = f"{self.options.base_url.rstrip('/')}/{path}"
            answer = await self._http.get(url, headers=self._headers(), timeout=5.0)
            answer.raise_for_status()
            found = answer.json()
        except httpx.TimeoutException:
            raise ModelFailure("slow", path) from None
        except httpx.HTTPStatusError as error:
            code = error.response.status_code
            kind = "overloaded" if code == 429 else "server_error" if code >= 500 else "refused"
            raise ModelFailure(kind, f"{path}: {code}") from None
        except ValueError:
            raise ModelFailure("garbage", f"{path}: no JSON") from None
        except Exception as error:  # an address may be wrong in ways that the client has no name for
            raise ModelFailure("absent", type(error).__name__) from None
        if not isinstance(found, dict):
            raise ModelFailure("garbage", f"{path}: no object")
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
            raise ModelFailure("busy", f"{self.options.concurrency} answers are being written") from None
        try:
            async with self._told():
                yield deadline
        finally:
            self._slots.release()

    @asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        """The breaker lets a call through, and hears how it went."""
        if not self._breaker.admit():
            raise _left_alone()
        try:
            yield
        except ModelFailure as failure:
            if failure.kind in BREAKS:
                self._breaker.failed()
            else:
                self._breaker.succeeded()  # it answered, if only with a refusal
            raise
        except BaseException:
            self._breaker.abandoned()
            raise
        else:
            self._breaker.succeeded()

    async def _attempt(self, messages: Sequence[Message], limit: int, deadline: float) -> AsyncGenerator[Delta, None]:
        """One request. The first token has a limit of its own, everything together the deadline."""
        with _failures():
            first = min(self._clock() + self.options.first_token_s, deadline)
            async with asyncio.timeout(max(0.0, first - self._clock())):
                model = await self.runnable(max_tokens=limit)
            async with aclosing(model.astream(_messages(messages))) as chunks:  # type: ignore[type-var]
                until = first
                while True:
                    async with asyncio.timeout(max(0.0, until - self._clock())):
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        return
                    delta = _delta(chunk)
                    if delta.text:
                        until = deadline
                    yield delta


def _estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def _left_alone() -> ModelFailure:
    return ModelFailure("open", "it failed several times running and is left alone for a while")


@contextmanager
def _failures() -> Iterator[None]:
    """Whatever the client raises, as a `ModelFailure`.

    Without its cause: a server's message may repeat the key and what was pasted, and a traceback would print it.
    """
    try:
        yield
    except ModelFailure:
        raise
    except Exception as error:
        raise failure_of(error) from None


def failure_of(error: Exception) -> ModelFailure:
    """What an exception of the client means. Only its type and the server's own code are told, never its headers."""
    name = type(error).__name__
    match error:
        case TimeoutError() | openai.APITimeoutError() | httpx.TimeoutException():
            return ModelFailure("slow", name)
        case openai.APIStatusError(status_code=code):
            return ModelFailure(_status(code, str(error)), f"{name} {code}")
        case openai.APIConnectionError() | httpx.ConnectError():
            return ModelFailure("absent", name)
        case httpx.TransportError():
            return ModelFailure("cut", name)
        case openai.APIResponseValidationError():
            return ModelFailure("garbage", name)
        case openai.APIError():  # an error that the server reports inside its stream
            return ModelFailure("too_long" if _is_too_long(str(error)) else "server_error", name)
        case _:
            return ModelFailure("garbage", name)


def _is_too_long(message: str) -> bool:
    return any(words in message.lower() for words in _TOO_LONG)


def _status(code: int, message: str) -> str:
    if _is_too_long(message):
        return "too_long"
    if code == 404:
        return "unknown_model"
    if code in (408, 504):
        return "slow"
    if code in (429, 503):
        return "overloaded"
    return "server_error" if code >= 500 else "refused"


def _messages(messages: Sequence[Message]) -> list[BaseMessage]:
    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [kinds[message.role](content=message.content) for message in messages]


def _delta(chunk: object) -> Delta:
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
    return Delta(text=_text(chunk), usage=usage, finish=str(finish) if finish else None)


def _text(message: object) -> str:
    content = getattr(message, "content", "")
    return content if isinstance(content, str) else ""
