"""What reads and embeds elsewhere than on this machine: entry points of the group ``trainmedic.executors``."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import TypeAlias

from trainmedic.ingest.threads.stages import Embed, Executor
from trainmedic.kb.errors import InvalidRequest

GROUP = "trainmedic.executors"
BUILT_IN = (EntryPoint("ray", "trainmedic.ingest.threads.ray_data:RayData", GROUP),)
MakeExecutor: TypeAlias = Callable[[Callable[[], Embed]], Executor]
"""Makes an executor of what opens the encoder, which is called in the processes that embed."""


def executor(name: str) -> MakeExecutor:
    """Raises `InvalidRequest` if there is none of this name."""
    entries = {entry.name: entry for entry in (*entry_points(group=GROUP), *BUILT_IN)}
    if name not in entries:
        raise InvalidRequest(f"no executor {name!r}", hint=f"one of: {', '.join(sorted(entries))}")
    made: MakeExecutor = entries[name].load()
    return made
