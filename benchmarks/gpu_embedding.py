"""How fast larger embedders build an index: the shapes of three models with random weights, on this device.

    python -m benchmarks.gpu_embedding [--models bge-m3 …] [--chunks N] [--batches 16 64 256] [--layers N]

Nothing is downloaded: the models are built with the published shapes (layers, widths, heads) and written to a temporary
folder, where `kb.store.embedder.SentenceTransformerEmbedder` loads them like any other. The figures are about speed,
not quality: the weights are noise. The vocabulary is smaller than the real one (a look-up, whatever its size), and its
tokenizer is trained on our own pages.

On a GPU: all chunks of the knowledge base, weights in bfloat16. On a CPU: a few chunks in float32, just to see that it
runs. Columns: chunks per second by batch size and with our own embedder; tokens per second; building the faiss index
of all chunks; one search in it on one thread. There is no budget.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.table import milliseconds
from tests.vllm.tiny import SPECIAL, VOCABULARY, trained
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.store.chunks import chunks
from trainmedic.kb.store.embedder import BATCH, SentenceTransformerEmbedder
from trainmedic.kb.store.vectors import Vectors

XLM_ROBERTA_LARGE = {
    "num_hidden_layers": 24,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "type_vocab_size": 1,
}
SHAPES: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "bge-m3": ("XLMRoberta", {**XLM_ROBERTA_LARGE, "max_position_embeddings": 8194}),
    "multilingual-e5-large": ("XLMRoberta", {**XLM_ROBERTA_LARGE, "max_position_embeddings": 514}),
    "Qwen3-Embedding-0.6B": (
        "Qwen3",
        {
            "num_hidden_layers": 28,
            "hidden_size": 1024,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 3072,
            "max_position_embeddings": 32_768,
        },
    ),
}
"""Family and shape of each model, as its ``config.json`` has it."""
ON_CPU = 8
"""Chunks embedded without a GPU."""
QUESTIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Figures of one model: ``by_batch`` and ``ours`` in chunks per second, ``tokens`` per chunk."""

    name: str
    parameters: int
    dimension: int
    load_s: float
    by_batch: Mapping[int, float]
    ours: float
    tokens: float
    build_ms: float
    search_ms: float


def make(name: str, folder: Path, device: str, layers: int | None) -> int:
    """Write a model of this shape with random weights. Returns the number of its parameters."""
    import torch
    import transformers

    family, shape = SHAPES[name]
    shape = {**shape, **({"num_hidden_layers": layers} if layers else {})}
    longest = shape["max_position_embeddings"] - (2 if family == "XLMRoberta" else 0)
    library: Any = transformers  # has no complete types
    library.utils.logging.disable_progress_bar()
    tokenizer = library.PreTrainedTokenizerFast(
        tokenizer_object=trained(), pad_token=SPECIAL[0], eos_token=SPECIAL[0], model_max_length=longest
    )
    config: Any = getattr(library, f"{family}Config")(
        vocab_size=VOCABULARY, pad_token_id=0, bos_token_id=0, eos_token_id=0, **shape
    )
    torch.manual_seed(7)
    with torch.device(device):
        model: Any = getattr(library, f"{family}Model")(config)
    model.to(torch.bfloat16 if device == "cuda" else torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return int(sum(parameter.numel() for parameter in model.parameters()))


def measure(name: str, texts: Sequence[str], size: int, batches: Sequence[int], options: argparse.Namespace) -> Speed:
    """One model over ``texts``, and an index of ``size`` vectors of its dimension."""
    with tempfile.TemporaryDirectory() as folder:
        parameters = make(name, Path(folder), options.device, options.layers)
        started = time.perf_counter()
        embedder = SentenceTransformerEmbedder(folder)
        load_s = time.perf_counter() - started
    model = embedder._model
    embedder.vectors(texts[: min(len(texts), BATCH)])  # the first call on a GPU is slow
    by_batch = {}
    for batch in batches:
        started = time.perf_counter()
        model.encode(list(texts), batch_size=batch, normalize_embeddings=True, show_progress_bar=False)
        by_batch[batch] = len(texts) / (time.perf_counter() - started)
    started = time.perf_counter()
    vectors = embedder.vectors(texts)
    ours = len(texts) / (time.perf_counter() - started)
    tokens = sum(len(ids) for ids in model.tokenizer(list(texts))["input_ids"]) / len(texts)
    build_ms, search_ms = index_of(vectors, size, embedder)
    return Speed(
        name=name,
        parameters=parameters,
        dimension=int(vectors.shape[1]),
        load_s=load_s,
        by_batch=by_batch,
        ours=ours,
        tokens=tokens,
        build_ms=build_ms,
        search_ms=search_ms,
    )


def index_of(vectors: np.ndarray[Any, np.dtype[np.float32]], size: int, embedder: Any) -> tuple[float, float]:
    """Milliseconds to build an index of ``size`` vectors, and of the median search in it."""
    rows = np.resize(vectors, (size, vectors.shape[1]))
    started = time.perf_counter()
    index = Vectors.of(rows)
    build_ms = (time.perf_counter() - started) * 1000
    searches = [milliseconds(partial(index.ranked, rows[number % size], 80)) for number in range(QUESTIONS)]
    return build_ms, statistics.median(searches)


def knowledge() -> list[str]:
    """All texts that are embedded for the index of the shipped knowledge."""
    return [piece.embedded for piece in chunks(load_cases().cases, load_rules(), load_glossary())]


def table(speeds: Sequence[Speed], batches: Sequence[int], size: int) -> str:
    heads = [f"batch {batch}" for batch in batches]
    lines = [
        f"| model | parameters, M | load, s | {', chunks/s | '.join(heads)}, chunks/s | ours (batch {BATCH}), chunks/s "
        f"| tokens/s | all {size} chunks, s | index, ms | search, ms |",
        "|" + "---|" * (8 + len(batches)),
    ]
    for speed in speeds:
        rates = " | ".join(f"{speed.by_batch[batch]:.1f}" for batch in batches)
        best = max(speed.by_batch.values())
        lines.append(
            f"| {speed.name} ({speed.dimension}) | {speed.parameters / 1e6:.0f} | {speed.load_s:.1f} | {rates} "
            f"| {speed.ours:.1f} | {best * speed.tokens:.0f} | {size / best:.1f} "
            f"| {speed.build_ms:.1f} | {speed.search_ms:.2f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch

    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_embedding", description="Embedders by shape.")
    parser.add_argument("--models", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--chunks", type=int, help=f"chunks embedded (default: all on a GPU, else {ON_CPU})")
    parser.add_argument("--batches", nargs="+", type=int, help="batch sizes (default: 16 64 256 on a GPU, else 8)")
    parser.add_argument("--layers", type=int, help="layers instead of the model's own, for a quick look")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    if options.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    gpu = options.device == "cuda"
    batches = options.batches or ([16, 64, 256] if gpu else [8])
    everything = knowledge()
    count = options.chunks or (len(everything) if gpu else ON_CPU)
    # Evenly from all kinds and both languages.
    picked = np.linspace(0, len(everything) - 1, min(count, len(everything))).astype(int)
    texts = [everything[number] for number in picked]
    speeds = [measure(name, texts, len(everything), batches, options) for name in options.models]
    device = torch.cuda.get_device_name() if gpu else f"processor, {torch.get_num_threads()} threads"
    print(f"{device}; torch {torch.__version__}; {len(texts)} of {len(everything)} chunks\n")
    print(table(speeds, batches, len(everything)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
