"""What turns texts into vectors in a run: the default encoder, or a hash that costs nothing.

A module of its own, because every process of a run imports it by its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from trainmedic.ingest.threads.stages import Embed
from trainmedic.kb.store.embedder import OnnxEmbedder

DIMENSION = 384


def encoder() -> Embed:
    default = OnnxEmbedder()
    default.vectors(["loss is nan"])
    return default.vectors


def cheap() -> Embed:
    return _hashed


def _hashed(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """A normalised vector for each text, the same in every process."""
    seeds = (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in texts)
    rows = np.stack([np.random.default_rng(seed).standard_normal(DIMENSION, np.float32) for seed in seeds])
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
