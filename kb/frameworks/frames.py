"""Which framework a traceback comes from: the outermost one whose own files stand among its frames."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.model.evidence import Traceback
from kb.model.run import Recognised

_PACKAGES = {
    "openrlhf": "openrlhf", "llamafactory": "llamafactory", "swift": "ms-swift", "verl": "verl", "axolotl": "axolotl",
    "unsloth": "unsloth", "unsloth_zoo": "unsloth", "trl": "trl", "peft": "peft", "accelerate": "accelerate",
    "deepspeed": "deepspeed", "transformers": "transformers",
}  # fmt: skip
LIBRARIES = ("trl", "transformers", "peft", "accelerate", "deepspeed")
"""Libraries that the others call, the most telling first: they are meant only where no framework above them is."""
_FRAME = re.compile(r"(?:site-packages|dist-packages|src)[/\\](\w+)[/\\]|^(\w+)[/\\](?:\w+[/\\])*\w+\.py:")


def framework_of(tracebacks: Sequence[Traceback]) -> Recognised | None:
    """The framework that the first traceback with one of its frames names, or None."""
    for trace in tracebacks:
        found: list[str] = []
        for frame in trace.frames:
            match = _FRAME.search(frame)
            package = (match[1] or match[2]) if match else None
            if package in _PACKAGES and _PACKAGES[package] not in found:
                found.append(_PACKAGES[package])
        # trl imports itself by its launcher, so its own frames come first; of mere libraries the most telling one.
        above = [name for name in found if name not in LIBRARIES]
        chosen = above[0] if above else next((name for name in LIBRARIES if name in found), None)
        if chosen is not None:
            return Recognised(value=chosen, reason=f"the traceback runs through {chosen}", span=trace.span)
    return None
