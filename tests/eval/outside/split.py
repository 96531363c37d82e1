"""Split incidents into the tuning half and the half that is never looked at, without showing either.

    python -m tests.eval.outside.split FILE.jsonl…

A thread is on one side with all that belongs to it. Two framework families are unseen as a whole; the others are split
by a hash of the thread's address, so that neither the order nor the author decides. Lines are appended once. A sample
whose misses are read is for tuning as a whole: the ids of its lines begin with one of `READ`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
UNSEEN_FAMILIES = frozenset({"axolotl", "megatron", "nemo"})
UNSEEN_SHARE = 112
"""Of 256: with the two families about half of all."""
READ = ("f1-",)
"""Beginnings of the ids of samples that were measured once, then read."""


def side(family: str, thread: str, name: str = "") -> str:
    """``tuning`` or ``unseen``; ``name`` is the incident's id."""
    if name.startswith(READ):
        return "tuning"
    digest = hashlib.sha256(thread.encode()).digest()[0]
    return "unseen" if family in UNSEEN_FAMILIES or digest < UNSEEN_SHARE else "tuning"


def main() -> None:
    lines: dict[str, dict[str, str]] = {"tuning": {}, "unseen": {}}
    for path in (HERE / "tuning.jsonl", HERE / "unseen.jsonl", *map(Path, sys.argv[1:])):
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            data = json.loads(line)
            lines[side(data["family"], data["thread"], data["id"])].setdefault(data["id"], line)
    for name, kept in lines.items():
        text = "".join(f"{kept[key]}\n" for key in sorted(kept))
        (HERE / f"{name}.jsonl").write_text(text, encoding="utf-8")
        print(name, len(kept))  # noqa: T201


if __name__ == "__main__":
    main()
