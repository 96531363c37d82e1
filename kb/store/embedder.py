"""Text to vectors, by the methods of LangChain's `Embeddings`. The default needs no torch, no network, one thread."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import cachetools
import numpy as np
import numpy.typing as npt

from trainmedic.kb.breaker import Breaker
from trainmedic.kb.errors import InvalidSettings, StoreError
from trainmedic.kb.identities import mask_identities
from trainmedic.kb.store import shipped

BATCH = 16
BULK = 64
"""The number of texts from which all cores are used."""
MAX_CHARACTERS = 4_000
"""Code points tokenised of a text: far more than the 256 tokens that the model uses."""
CACHED_QUERIES = 512
REQUEST_TEXTS = 64
"""Texts in one request to an endpoint."""
BULK_S, QUESTION_S = 60.0, 4.0
"""Timeouts of one request: for many texts, and for a question that a user waits for."""
REST_S = 30.0
"""How long questions are not sent to an endpoint that failed."""
LEAST_CHARACTERS = 100
"""The shortest length to which a text is cut for a model with a small context."""
LEFT_OUT = ("SkipLayerNormFusion",)
"""A fusion of onnxruntime that takes longer than what it fuses: a sixth of the time of a question. It changes roundings
and so the vectors, which is why the identity names it."""
PROBES = ("loss is nan", "CUDA out of memory", "stock prices fell in London")
log = logging.getLogger("trainmedic.embedder")
Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which embedder made a vector. Vectors of different identities must never be compared."""

    name: str
    dimension: int
    digest: str


@runtime_checkable
class Embedder(Protocol):
    """The methods of LangChain's `Embeddings`, with an identity and vectors as arrays."""

    @property
    def identity(self) -> Identity: ...

    def vectors(self, texts: Sequence[str]) -> Array:
        """One normalised row of ``identity.dimension`` floats for each text."""
        ...

    def embed_query(self, text: str) -> list[float]: ...

    def known_share(self, text: str) -> float:
        """The share of the text's tokens that the model knows (0 to 1), a measure of its vector's value."""
        ...


class CachedEmbeddings:
    """The methods of LangChain's `Embeddings` over ``vectors``, with a cache of queries. Safe to share between threads.

    No subclass, because importing LangChain's takes longer than all of ours.
    """

    def __init__(self) -> None:
        self._queries: cachetools.LRUCache[str, list[float]] = cachetools.LRUCache(CACHED_QUERIES)
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str]) -> Array:
        """One normalised row for each text."""
        raise StoreError("this embedder makes no vectors")

    def known_share(self, text: str) -> float:
        """1, because the vocabulary is not known."""
        return 1.0

    def _embedded(self, text: str) -> Array:
        row: Array = self.vectors([text])[0]
        return row

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """LangChain's interface."""
        return [list(map(float, row)) for row in self.vectors(texts)]

    def embed_query(self, text: str) -> list[float]:
        key = " ".join(text.split())
        with self._lock:
            vector = self._queries.get(key)
        if vector is None:
            vector = list(map(float, self._embedded(key)))
            with self._lock:
                self._queries[key] = vector
        return vector

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        return await asyncio.to_thread(self.embed_query, text)


class OnnxEmbedder(CachedEmbeddings):
    """all-MiniLM-L6-v2, int8, by onnxruntime on one thread: 0.2 s to load, about a millisecond a question."""

    def __init__(self) -> None:
        super().__init__()
        folder = shipped.encoder()
        fields = json.loads((folder / "identity.json").read_text(encoding="utf-8"))
        graph = hashlib.sha256("\n".join((fields["sha256"], *LEFT_OUT)).encode()).hexdigest()
        self.identity = Identity(name=fields["name"], dimension=fields["dimension"], digest=graph[:16])
        self._folder = folder
        self._loading = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None
        self._last: tuple[str, Any] | None = None

    def vectors(self, texts: Sequence[str]) -> Array:
        """One normalised row of 384 floats for each text."""
        if not texts:
            return np.zeros((0, self.identity.dimension), np.float32)
        # One by one: the int8 scale is taken over a whole batch, so a text's vector would depend on its neighbours
        # (cosine 0.985); and on one thread a batch is no faster.
        if len(texts) < BULK:
            return np.stack([self._vector(text) for text in texts])
        with ThreadPoolExecutor(os.cpu_count()) as threads:  # building an index: no question competes for the cores
            return np.stack(list(threads.map(self._vector, texts)))

    def known_share(self, text: str) -> float:
        """The share of tokens that are not ``[UNK]``."""
        tokens = self._tokens(" ".join(text.split())).tokens[1:-1]
        return 1.0 - tokens.count("[UNK]") / len(tokens) if tokens else 0.0

    def _vector(self, text: str) -> Array:
        _, session = self.load()
        ids = np.asarray([self._tokens(text).ids], np.int64)
        vector: Array = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0]
        return vector

    def _tokens(self, text: str) -> Any:
        """The tokens, with ``[CLS]`` and ``[SEP]``. Cached, because `known_share` and the embedding both need them."""
        last = self._last
        if last is not None and last[0] == text:
            return last[1]
        encoded = self.load()[0].encode(text[:MAX_CHARACTERS])
        self._last = (text, encoded)
        return encoded

    def load(self) -> tuple[Any, Any]:
        """Tokeniser and model, opened on first use. Safe to call from several threads."""
        if self._loaded is None:
            with self._loading:
                if self._loaded is None:
                    self._loaded = self._open()
        return self._loaded

    def _open(self) -> tuple[Any, Any]:
        # The official Linux build reports its use unless this is set before the import; nothing may leave the machine.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        path = self._folder / "model.onnx"
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=LEFT_OUT
        )
        return Tokenizer.from_file(str(self._folder / "tokenizer.json")), session


class SentenceTransformerEmbedder(CachedEmbeddings):
    """Any sentence-transformers model, by name or folder. Needs the ``st`` extra.

    A model's own prompts for questions and for documents (E5, Qwen3-Embedding and others have them) are used.
    """

    def __init__(self, model: str) -> None:
        super().__init__()
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise InvalidSettings(
                f"the embedder st:{model} needs sentence-transformers", hint="pip install 'trainmedic[st]'"
            ) from error
        try:
            self._model = SentenceTransformer(model, device=None)
        except (OSError, ValueError) as error:
            raise InvalidSettings(f"the model {model} cannot be loaded", hint=str(error).split("\n")[0]) from error
        self._encoding = threading.Lock()
        probe = self.vectors(PROBES)
        digest = fingerprint(probe)
        self.identity = Identity(name=f"st:{Path(model).name}", dimension=int(probe.shape[1]), digest=digest)

    def vectors(self, texts: Sequence[str]) -> Array:
        """One normalised row for each document."""
        return self._rows(self._model.encode_document, texts)

    def _embedded(self, text: str) -> Array:
        row: Array = self._rows(self._model.encode_query, [text])[0]
        return row

    def _rows(self, encode: Callable[..., Any], texts: Sequence[str]) -> Array:
        with self._encoding:  # a fast tokeniser refuses to be shared ("Already borrowed")
            rows = encode(list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(rows, np.float32)


class OpenAIEmbedder(CachedEmbeddings):
    """An OpenAI-compatible embeddings endpoint, such as vLLM serves.

    At start and while an index is built, a failure is a `StoreError` with a hint. Questions do not wait for a failing
    endpoint: if it cannot embed one in a few seconds, the search uses the words alone, and the breaker opens.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        api_key: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Identify the model. Raises `InvalidSettings` without an address, `StoreError` if the endpoint is silent."""
        super().__init__()
        import openai

        if not base_url:
            raise InvalidSettings(f"the embedder openai:{model} needs embedder_base_url")
        self._model = model
        self._client = openai.OpenAI(base_url=base_url, api_key=api_key or "none", max_retries=1, timeout=BULK_S)
        self._breaker = Breaker(clock, failures=1, rest_s=REST_S)
        self._trouble: str | None = None
        probe = self._request(PROBES, BULK_S)
        digest = fingerprint(_normalised(probe))
        self.identity = Identity(name=f"openai:{model}", dimension=int(probe.shape[1]), digest=digest)

    @property
    def trouble(self) -> str | None:
        """Why the last question was not embedded; None if it was."""
        return self._trouble

    def vectors(self, texts: Sequence[str]) -> Array:
        """One normalised row per text, `REQUEST_TEXTS` in each request. Raises `StoreError`."""
        return self._rows(texts, BULK_S)

    def known_share(self, text: str) -> float:
        """1, or 0 if the endpoint does not embed the text in time; the search then uses its words alone."""
        with self._lock:
            call = self._breaker.admit()
        if not call:
            return 0.0
        try:
            self.embed_query(text)
        except StoreError as error:
            with self._lock:
                self._breaker.failed(call)
            self._trouble = error.message
            log.warning("questions are searched for by their words alone for %d s: %s", REST_S, error.message)
            return 0.0
        with self._lock:
            self._breaker.succeeded()
        self._trouble = None
        return 1.0

    def _embedded(self, text: str) -> Array:
        row: Array = self._rows([mask_identities(text)], QUESTION_S)[0]
        return row

    def _rows(self, texts: Sequence[str], timeout_s: float) -> Array:
        dimension = self.identity.dimension
        vectors = np.zeros((len(texts), dimension), np.float32)
        for start in range(0, len(texts), REQUEST_TEXTS):
            rows = self._request(texts[start : start + REQUEST_TEXTS], timeout_s)
            if rows.shape[1] != dimension:
                raise StoreError(
                    f"the embeddings endpoint sent {rows.shape[1]} dimensions, {dimension} before",
                    hint="another model is served under this name: start again, and the index is built anew",
                )
            vectors[start : start + REQUEST_TEXTS] = _normalised(rows)
        return vectors

    def _request(self, texts: Sequence[str], timeout_s: float) -> Array:
        """One request. Texts too long for the model are cut until it accepts them, as a local model would cut them."""
        import openai

        client = self._client.with_options(timeout=timeout_s)
        # An empty text is refused by most servers.
        inputs = [text[:MAX_CHARACTERS] or " " for text in texts]
        while True:
            try:
                return _rows_of(client.embeddings.create(model=self._model, input=inputs), len(inputs))
            except openai.APIStatusError as error:
                longest = max(map(len, inputs))
                if error.status_code in (400, 413, 422) and _says_too_long(str(error)) and longest > LEAST_CHARACTERS:
                    inputs = [text[: longest // 2] for text in inputs]
                    continue
                hint = _HINTS.get(error.status_code, "see the log of that server")
                raise StoreError(f"the embeddings endpoint answers {error.status_code}", hint=hint) from None
            except openai.OpenAIError as error:
                # Not its message or its cause: they may repeat the key and the input.
                name = type(error).__name__
                raise StoreError("the embeddings endpoint does not answer", hint=f"{ADDRESS} ({name})") from None
            except (ValueError, TypeError, AttributeError):
                raise StoreError("the embeddings endpoint sends no embeddings", hint=ADDRESS) from None


ADDRESS = "check embedder_base_url: it ends with /v1 on most servers"
_HINTS = {
    400: "it may not serve this model for embeddings",
    401: "set embedder_api_key",
    403: "set embedder_api_key",
    404: f"it may not serve this model; {ADDRESS}",
    429: "it is overloaded; try again later",
}


def _says_too_long(message: str) -> bool:
    """Whether a server's refusal is about the length of a text (vLLM, text-embeddings-inference, OpenAI)."""
    lower = message.lower()
    return any(
        words in lower for words in ("context length", "too long", "maximum", "must have less than", "max_model")
    )


def _rows_of(answer: Any, count: int) -> Array:
    """The rows of an embeddings response in the order of the texts. Raises `ValueError` for any other response."""
    data = sorted(answer.data, key=lambda item: int(item.index))
    rows = np.asarray([item.embedding for item in data], np.float32)
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1] or not np.isfinite(rows).all():
        raise ValueError("not one finite vector for each text")
    return rows


def _normalised(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), np.float32)


def fingerprint(rows: Array) -> str:
    """Distinguishes models of the same name and dimension by the cosines between the normalised `PROBES`.

    The vectors themselves differ between GPUs and batches; these cosines agree to two digits.
    """
    cosines = [f"{round(float(rows[a] @ rows[b]) * 20)}" for a, b in ((0, 1), (0, 2), (1, 2))]
    return hashlib.sha256(" ".join(cosines).encode()).hexdigest()[:16]


def make_embedder(setting: str, *, base_url: str = "", api_key: str = "") -> Embedder:
    """The embedder of a setting: ``default``, ``st:<model>`` or ``openai:<model>``; only the last uses the rest."""
    kind, _, model = setting.partition(":")
    if setting == "default":
        return OnnxEmbedder()
    if kind == "st" and model:
        return SentenceTransformerEmbedder(model)
    if kind == "openai" and model:
        return OpenAIEmbedder(model, base_url, api_key)
    raise InvalidSettings(f"unknown embedder {setting!r}", hint="default, st:<model or path>, openai:<model>")


def name_of_setting(setting: str) -> str:
    """The name in the identity of a setting's embedder, which need not be loaded for it."""
    kind, _, model = setting.partition(":")
    if setting == "default":
        return OnnxEmbedder().identity.name
    return f"st:{Path(model).name}" if kind == "st" else setting
