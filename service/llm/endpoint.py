"""The HTTP side of an OpenAI-compatible endpoint: which models it serves, their limits, and token counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import httpx
from cachetools import LRUCache

from trainmedic.kb.breaker import Breaker
from trainmedic.kb.identities import masked_values
from trainmedic.service.llm.errors import ModelError, refusal_of

ANSWER_SHARE = 4
"""The answer gets at most this fraction of a small context: one token in four."""
COUNTING_S = 3.0
"""How long counting tokens may take; an estimate will do."""
CACHED_COUNTS = 2048
BYTES_PER_TOKEN = 3
"""A cautious estimate if the endpoint cannot count: Chinese has about three bytes a token, English four."""
SILENT: Mapping[str, Any] = {"enable_thinking": False}
"""Switches reasoning off in the chat templates of Qwen3 and others; the rest ignore it."""
OURS = frozenset(("role", "type", "id", "tool_call_id", "name"))
"""Fields of a message that the protocol needs as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Where the model is and how to use it. An empty ``name`` means the first model that the endpoint lists."""

    base_url: str
    name: str = ""
    api_key: str = field(default="", repr=False)
    context_tokens: int = 8192
    max_tokens: int = 2_000
    temperature: float = 0.2
    timeout_s: float = 25.0
    first_token_s: float = 10.0
    concurrency: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """The most tokens for prompt and answer together, and for the answer."""

    context_tokens: int
    max_tokens: int


class Endpoint:
    """``opened``: the chat template ends a prompt inside a reasoning block, which the model only closes."""

    def __init__(self, options: ModelOptions, clock: Callable[[], float]) -> None:
        self.http = httpx.AsyncClient(timeout=httpx.Timeout(options.timeout_s, connect=min(5.0, options.timeout_s)))
        self.opened = False
        self._options = options
        self._url = options.base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {options.api_key}"} if options.api_key else {}
        self._name = options.name
        self._served: Mapping[str, Mapping[str, Any]] | None = None
        self._listing = Breaker(clock, failures=1)
        # Cases are in most prompts with the same text, so nearly all counts of a busy service are cached.
        self._counts: LRUCache[bytes, int] = LRUCache(CACHED_COUNTS)
        self._counting = Breaker(clock, failures=1)

    @property
    def named(self) -> bool:
        """Whether the model's name is known without asking."""
        return bool(self._name)

    async def name(self) -> str:
        """The model's name: the one configured, or the first that is listed. Raises `ModelError`."""
        if not self._name:
            names = list(self._served or await self._list())
            if not names:
                raise ModelError("unknown_model", "the endpoint lists no model")
            self._name = names[0]
        return self._name

    async def probe(self) -> str | None:
        """The kind of `ModelError` that a call would raise now, or None."""
        try:
            names = await self._list()
        except ModelError as failure:
            return failure.kind
        # Without a configured name any listed model will do.
        return None if (self._options.name in names if self._options.name else names) else "unknown_model"

    async def limits(self, *, ask: bool = True) -> ModelLimits:
        """The configured limits, or the endpoint's own (vLLM's ``max_model_len``) if they are smaller. Never raises."""
        if ask and self._served is None and (call := self._listing.admit()):
            with _reporting(self._listing, call):
                async with asyncio.timeout(COUNTING_S):
                    served = await self._list()
                    name = await self.name()
                    if served.get(name, {}).get("owned_by") == "vllm":
                        self.opened = await self._opens_block("think")
        most, served = self._options.context_tokens, self._served or {}
        entry = served.get(self._name, {})
        for model in (entry, served.get(str(entry.get("parent")), {})):  # an adapter has the context of its base
            length = model.get("max_model_len")
            if isinstance(length, int) and length > 0:
                most = min(most, length)
        return ModelLimits(context_tokens=most, max_tokens=min(self._options.max_tokens, max(1, most // ANSWER_SHARE)))

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer in one piece to one request below ``/v1``, which is sent without the names of people and machines.

        Raises `ModelError`, and what `httpx` raises.
        """
        request = {"model": await self.name(), **{key: masked_values(item, keep=OURS) for key, item in body.items()}}
        response = await self.http.post(f"{self._url}/{path}", json=request, headers=self._headers)
        if response.is_error:
            raise refusal_of(response.status_code, response.text)
        answer = response.json()
        if not isinstance(answer, dict):
            raise ModelError("garbage", f"{path}: no object")
        return answer

    async def count(self, texts: Sequence[str], *, ask: bool = True) -> list[int]:
        """Tokens of each text, by vLLM's ``/tokenize``; without ``ask`` from the cache or estimated. Never raises."""
        keys = [blake2b(text.encode("utf-8", "replace"), digest_size=12).digest() for text in texts]
        counts = {key: self._counts[key] for key in keys if key in self._counts}
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in counts}
        if unknown and ask and (call := self._counting.admit()):
            with _reporting(self._counting, call):
                async with asyncio.timeout(COUNTING_S):
                    counted = await asyncio.gather(*map(self._count, unknown.values()))
                counts |= zip(unknown, counted, strict=True)
                self._counts.update(zip(unknown, counted, strict=True))
        return [counts.get(key, estimate(text)) for key, text in zip(keys, texts, strict=True)]

    async def _count(self, text: str) -> int:
        count = (await self._tokenize({"prompt": text, "add_special_tokens": False})).get("count")
        if not isinstance(count, int):
            raise ValueError("no count")
        return count

    async def _opens_block(self, tag: str) -> bool:
        """Whether the template ends every prompt inside a block that ``tag`` opens; False if that is unknown.

        https://docs.vllm.ai/en/latest/serving/openai_compatible_server/
        """
        body = {"messages": [{"role": "user", "content": "?"}], "add_generation_prompt": True}
        try:
            response = await self._tokenize({**body, "return_token_strs": True, "chat_template_kwargs": SILENT})
            text = "".join(response["token_strs"])
        except Exception:
            return False
        # The last tag decides: templates mention both in their instructions.
        return text.rfind(f"<{tag}>") > text.rfind(f"</{tag}>")

    async def _tokenize(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """May raise anything."""
        # vLLM serves /tokenize beside /v1, not below it.
        url = f"{self._url.removesuffix('/v1')}/tokenize"
        request = {"model": await self.name(), **{key: masked_values(value) for key, value in body.items()}}
        response = await self.http.post(url, json=request, headers=self._headers)
        response.raise_for_status()
        counts: Mapping[str, Any] = response.json()
        return counts

    async def _list(self) -> Mapping[str, Mapping[str, Any]]:
        """The models served, by name. Raises `ModelError`."""
        try:
            response = await self.http.get(f"{self._url}/models", headers=self._headers, timeout=5.0)
            response.raise_for_status()
            content = response.json()
        except httpx.TimeoutException:
            raise ModelError("slow", "models") from None
        except httpx.HTTPStatusError as error:
            code = error.response.status_code
            kind = "overloaded" if code == 429 else "server_error" if code >= 500 else "refused"
            raise ModelError(kind, f"models: {code}") from None
        except ValueError:
            raise ModelError("garbage", "models: no JSON") from None
        except Exception as error:  # httpx raises various exceptions for a malformed address
            raise ModelError("absent", type(error).__name__) from None
        listed = content.get("data") if isinstance(content, dict) else None
        if not isinstance(listed, list):
            raise ModelError("garbage", "models: no list")
        self._served = {
            model["id"]: model for model in listed if isinstance(model, dict) and isinstance(model.get("id"), str)
        }
        return self._served


@contextmanager
def _reporting(breaker: Breaker, call: int) -> Iterator[None]:
    """Report to the breaker whether what is inside succeeds, and swallow its exception."""
    try:
        yield
    except Exception:
        breaker.failed(call)
    except BaseException:
        breaker.abandoned(call)
        raise
    else:
        breaker.succeeded()


def estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
