"""Memory of the service: of its process and of those that read for it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily

PROC = Path("/proc")


class ProcessTreeMemory:
    """``trainmedic_memory_bytes``, where the system has ``/proc``: what counts against the limit of a container."""

    def __init__(self, pid: int | None = None, proc: Path = PROC) -> None:
        self._pid = pid or os.getpid()
        self._proc = proc

    def collect(self) -> Iterable[GaugeMetricFamily]:
        total = sum(_resident(self._proc / str(pid)) for pid in self._tree())
        if total:
            text = "Memory of the process and its readers; what they share counts once"
            yield GaugeMetricFamily("trainmedic_memory_bytes", text, value=total)

    def _tree(self) -> list[int]:
        """The process and its descendants."""
        children: defaultdict[int, list[int]] = defaultdict(list)
        for stat in self._proc.glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                # The name, which may hold anything, is in parentheses; then come the state and the parent.
                fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
                children[int(fields[1])].append(int(stat.parent.name))
        tree = [self._pid]
        for pid in tree:
            tree += children[pid]
        return tree


def _resident(process: Path) -> int:
    """Bytes in memory: its share of what it has in common with others, or all of it where the system does not say."""
    with suppress(OSError):
        for line in (process / "smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError):
        return int((process / "statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
