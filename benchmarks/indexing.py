"""Making the index: from nothing, of pages that all are embedded, and after an edit of one page.

    python -m benchmarks.indexing

Budgets: 60 s by the clock from nothing; 6 s of processor time that an edited page adds to the next command. Exit code 1
if one is missed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.serving import COMMAND, own_environment
from benchmarks.table import Table
from trainmedic.kb.pages.page import KNOWLEDGE
from trainmedic.ui.loading import prebuild

FROM_NOTHING_S = 60.0
EDITED_S = 6.0
EDITS = 3
PAGE = KNOWLEDGE / "causes" / "trl" / "clip-fraction-zero-with-one-update.md"
NO_PACKAGE = (
    "from pathlib import Path; from trainmedic.kb.store import shipped; shipped.index = lambda: Path('no-index')"
)
"""A package without an index of its own, as a fresh checkout is."""


def spent(*words: str, folder: Path, pages: Path | None = None, before: str = "") -> tuple[float, float]:
    """Seconds by the clock and of processor time of one command, the process included."""
    environment = {**own_environment(), "TRAINMEDIC_DATA_DIR": str(folder)}
    if pages is not None:
        environment["TRAINMEDIC_KB_PATHS"] = str(pages)
    started, used = time.perf_counter(), _processor_time()
    command = [sys.executable, "-c", f"{before}\n{COMMAND}", *words]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started, _processor_time() - used


def _processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def write_page(folder: Path, edition: int) -> None:
    """A page of one's own, another text with each edition."""
    text = PAGE.read_text(encoding="utf-8")
    own = folder / f"own-{PAGE.name}"
    own.write_text(text.replace("id: ", "id: own-", 1) + f"\n第 {edition} 版。\n", encoding="utf-8")


def edited(folder: Path) -> tuple[list[float], list[float]]:
    """Processor time of a search before and after edits of one page."""
    pages = folder / "pages"
    pages.mkdir()
    same, after = [], []
    for edition in range(EDITS + 1):
        write_page(pages, edition)
        first = spent("search", "loss is nan", folder=folder, pages=pages)[1]
        same.append(spent("search", "loss is nan", folder=folder, pages=pages)[1])
        after.append(first)
    return same, after[1:]  # the first reads what the package's index does not say


def main() -> int:
    table = Table("index")
    with TemporaryDirectory() as fresh:
        clock, processor = spent("index", "build", folder=Path(fresh), before=NO_PACKAGE)
    table.add(f"from nothing, on {os.cpu_count()} cores", [clock], "s", FROM_NOTHING_S)
    table.add("the same, processor time", [processor], "s")
    prebuild()
    with TemporaryDirectory() as folder:
        same, after = edited(Path(folder))
    table.add("a search, processor time", same, "s")
    table.add("the first one after an edit of one page", after, "s")
    table.add("added by the edit", [max(0.0, min(after) - min(same))], "s", EDITED_S)
    return table.print()


if __name__ == "__main__":
    sys.exit(main())
