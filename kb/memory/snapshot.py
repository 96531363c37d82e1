"""Memory snapshots of PyTorch → lines of text: what is reserved, and which code made the live tensors.

`torch.cuda.memory._dump_snapshot` pickles segments of blocks, each with the frames that asked for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from trainmedic.kb.memory.observed import TITLE, shown

_MOST_SITES = 30
_INSIDE = ("/torch/", "torch/", "<frozen", "??")
_LIVE = ("active_allocated", "active_pending_free", "active_awaiting_free")


def text_of(snapshot: dict[str, Any]) -> str:
    """Raises AttributeError, KeyError, TypeError or ValueError for what is none."""
    return "\n".join(_lines(snapshot["segments"])) + "\n"


def _lines(segments: list[dict[str, Any]]) -> Iterator[str]:
    yield TITLE
    reserved: Counter[int] = Counter()
    largest: Counter[int] = Counter()
    live: dict[int, Counter[str]] = defaultdict(Counter)
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for segment in segments:
        device = int(segment["device"])
        reserved[device] += int(segment["total_size"])
        for block in segment["blocks"]:
            size = int(block["size"])
            if block["state"] in _LIVE:
                site = _site(block.get("frames") or ())
                live[device][site] += size
                counts[device][site] += 1
            else:
                largest[device] = max(largest[device], size)
    for device in sorted(reserved):
        held = live[device].total()
        yield (
            f"device {device}: {shown(reserved[device])} reserved, {shown(held)} live, "
            f"{shown(reserved[device] - held)} idle, the largest idle block {shown(largest[device])}"
        )
        for site, size in live[device].most_common(_MOST_SITES):
            yield f"device {device}: {shown(size)} live in {counts[device][site]} blocks from {site}"


def _site(frames: Any) -> str:
    """The innermost frame outside PyTorch, else the innermost one."""
    named = [(_word(frame["filename"]), int(frame["line"]), _word(frame["name"])) for frame in frames]
    named = [frame for frame in named if frame[0].endswith(".py")] or named
    outside = [frame for frame in named if not any(inside in frame[0] for inside in _INSIDE)]
    if not named:
        return "code that was not recorded"
    path, line, name = (outside or named)[0]
    return f"{path}:{line} {name}"


def _word(value: Any) -> str:
    """A text. Anything else could be the size of the memory as text: a pickle may hold one list many times."""
    if not isinstance(value, str):
        raise TypeError
    return value
