"""Search over 10⁴ to 10⁶ vectors of threads: build time, size, memory, and how long a search takes.

    python -m benchmarks.scale [--sizes 10000 100000 1000000]

The vectors are those of the shipped pages with noise, so that they lie in clusters as real ones do. Recall is against
comparing every one.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil

from trainmedic.kb.threads.vectors import PassageVectors
from trainmedic.service.settings import Settings
from trainmedic.ui.loading import load_knowledge

Array = npt.NDArray[np.float32]
BATCH = 10_000
NOISE = 0.035
QUERIES = 200
MOST = 40
COLUMNS = (
    *("vectors", "write s", "optimise s", "first search s", "median ms", "p95 ms", "recall@10"),
    *("memory MB", "disk MB"),
)


def cloud(base: Array, size: int, seed: int = 5) -> Iterator[Array]:
    """``size`` normalised vectors around those of ``base``, some at a time; the same for the same seed."""
    random = np.random.default_rng(seed)
    for start in range(0, size, BATCH):
        count = min(BATCH, size - start)
        chosen = base[random.integers(0, len(base), count)]
        points = chosen + random.standard_normal(chosen.shape).astype(np.float32) * NOISE
        yield points / np.linalg.norm(points, axis=1, keepdims=True)


def measure(base: Array, size: int, queries: Array) -> list[str]:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        store = PassageVectors(Path(folder), base.shape[1])
        best = np.zeros((len(queries), 10), np.float32)
        number = 0
        written = 0.0
        for points in cloud(base, size):
            start = time.perf_counter()
            store.put([f"t{number + n}#0" for n in range(len(points))], points)
            written += time.perf_counter() - start
            number += len(points)
            cosines = np.concatenate([best, queries @ points.T], axis=1)
            best = -np.sort(-cosines, axis=1)[:, :10]
        start = time.perf_counter()
        store.optimise()
        optimised = time.perf_counter() - start
        gc.collect()
        before = psutil.Process().memory_info().rss
        store = PassageVectors(Path(folder), base.shape[1])
        start = time.perf_counter()
        store.search(queries[0], MOST)
        opened = time.perf_counter() - start
        memory = psutil.Process().memory_info().rss - before
        times, right = [], 0.0
        for query, known in zip(queries, best, strict=True):
            start = time.perf_counter()
            found = store.search(query, MOST)
            times.append(time.perf_counter() - start)
            right += sum(any(abs(c - cosine) < 2e-3 for _, cosine in found) for c in known) / len(known)
        disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    ordered = sorted(times)
    return [
        f"{size:,}",
        f"{written:.0f}",
        f"{optimised:.0f}",
        f"{opened:.1f}",
        f"{ordered[len(ordered) // 2] * 1000:.1f}",
        f"{ordered[int(len(ordered) * 0.95)] * 1000:.1f}",
        f"{right / len(queries):.3f}",
        f"{memory / 1e6:.0f}",
        f"{disk / 1e6:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options = parser.parse_args()
    base = load_knowledge(Settings()).index.vectors.rows()
    queries = next(cloud(base, QUERIES, seed=11))
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for size in options.sizes:
        print(f"| {' | '.join(measure(base, size, queries))} |", flush=True)


if __name__ == "__main__":
    main()
