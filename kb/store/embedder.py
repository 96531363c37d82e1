"""Text to vectors, behind LangChain's `Embeddings`. The default needs no torch, no network and one thread."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from kb.errors import InvalidSettings, StoreError

ASSETS = Path(__file__).parent / "assets"
BATCH = 16
BULK = 64
"""Texts from which every core takes part."""
MAX_CHARACTERS = 4_000
"""What is tokenised of a text: far more than the 256 tokens that the model sees."""
REMEMBERED = 512
"""Query vectors kept: the same question asked again costs nothing."""
Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which embedder made a vector. Vectors of different identities must never be compared."""

    name: str
    dimension: int
    digest: str


@runtime_checkable
class Embedder(Protocol):
    """LangChain's `Embeddings` with an identity and vectors as arrays."""

    @property
    def identity(self) -> Identity:
        """Which embedder this is."""
        ...

    def vectors(self, texts: Sequence[str]) -> Array:
        """One normalised row of ``identity.dimension`` floats for each text."""
        ...

    def embed_query(self, text: str) -> list[float]:
        """One vector."""
        ...

    def known_share(self, text: str) -> float:
        """The share of the text's tokens that the model knows (0 to 1): what its vector is worth."""
        ...


class _Remembering(Embeddings):
    """LangChain's methods over ``vectors``, with a bounded memory of queries. Safe to share between threads."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str]) -> Array:
        """One normalised row for each text."""
        raise StoreError("this embedder makes no vectors")

    def known_share(self, text: str) -> float:
        """Without a vocabulary to look at, everything counts as known."""
        return 1.0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """LangChain's interface."""
        return [list(map(float, row)) for row in self.vectors(texts)]

    def embed_query(self, text: str) -> list[float]:
        """LangChain's interface; remembered."""
        key = " ".join(text.split())
        with self._lock:
            if key in self._seen:
                self._seen.move_to_end(key)
                return self._seen[key]
        vector = list(map(float, self.vectors([key])[0]))
        with self._lock:
            self._seen[key] = vector
            while len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        return vector


class OnnxEmbedder(_Remembering):
    """all-MiniLM-L6-v2, int8, by onnxruntime on one thread: 0.2 s to load, about a millisecond a question."""

    def __init__(self, folder: Path = ASSETS) -> None:
        super().__init__()
        made = json.loads((folder / "identity.json").read_text(encoding="utf-8"))
        self.identity = Identity(name=made["name"], dimension=made["dimension"], digest=made["sha256"][:16])
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
        with ThreadPoolExecutor(os.cpu_count()) as threads:  # an index is built: nobody else waits for a core
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
        """The tokens, ``[CLS]`` and ``[SEP]`` around them. A question is weighed first, then embedded: read once."""
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
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return Tokenizer.from_file(str(self._folder / "tokenizer.json")), session


class SentenceTransformerEmbedder(_Remembering):
    """Any sentence-transformers model, by name or folder. Needs the ``st`` extra."""

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
        probe = self.vectors(["loss is nan"])
        digest = hashlib.sha256(np.round(probe, 3).tobytes()).hexdigest()[:16]
        self.identity = Identity(name=f"st:{Path(model).name}", dimension=int(probe.shape[1]), digest=digest)

    def vectors(self, texts: Sequence[str]) -> Array:
        """One normalised row for each text."""
        found = self._model.encode(
            list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(found, np.float32)


class OpenAIEmbedder(_Remembering):
    """An OpenAI-compatible embeddings endpoint, such as vLLM serves."""

    def __init__(self, model: str, base_url: str, api_key: str) -> None:
        super().__init__()
        from langchain_openai import OpenAIEmbeddings

        if not base_url:
            raise InvalidSettings(f"the embedder openai:{model} needs embedder_base_url")
        # Token ids are OpenAI's own tokeniser's; other servers want text.
        options: dict[str, Any] = {"base_url": base_url, "api_key": api_key or "none", "timeout": 30}
        self._client = OpenAIEmbeddings(model=model, check_embedding_ctx_length=False, max_retries=1, **options)
        probe = self.vectors(["loss is nan"])
        digest = hashlib.sha256(np.round(probe, 2).tobytes()).hexdigest()[:16]
        self.identity = Identity(name=f"openai:{model}", dimension=int(probe.shape[1]), digest=digest)

    def vectors(self, texts: Sequence[str]) -> Array:
        """One normalised row for each text. Raises `StoreError` where the endpoint does not answer."""
        import openai

        try:
            found = np.asarray(self._client.embed_documents(list(texts)), np.float32)
        except openai.OpenAIError as error:
            raise StoreError("the embeddings endpoint does not answer", hint=type(error).__name__) from error
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.maximum(norms, 1e-12), np.float32)


def make_embedder(setting: str, *, base_url: str = "", api_key: str = "") -> Embedder:
    """The embedder that a setting names: ``default``, ``st:<model>`` or ``openai:<model>``."""
    kind, _, model = setting.partition(":")
    if setting == "default":
        return OnnxEmbedder()
    if kind == "st" and model:
        return SentenceTransformerEmbedder(model)
    if kind == "openai" and model:
        return OpenAIEmbedder(model, base_url, api_key)
    raise InvalidSettings(f"unknown embedder {setting!r}", hint="default, st:<model or path>, openai:<model>")
