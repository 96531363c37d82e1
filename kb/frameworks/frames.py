"""Which framework a traceback or a log comes from: the outermost whose own files stand among the frames, or whose
metrics are logged."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainmedic.kb.model.evidence import Row, Traceback
from trainmedic.kb.model.run import Recognised

_PACKAGES = {
    "openrlhf": "openrlhf", "llamafactory": "llamafactory", "swift": "ms-swift", "verl": "verl", "axolotl": "axolotl",
    "unsloth": "unsloth", "unsloth_zoo": "unsloth", "trl": "trl", "peft": "peft", "accelerate": "accelerate",
    "deepspeed": "deepspeed", "transformers": "transformers",
}  # fmt: skip
LIBRARIES = ("trl", "transformers", "peft", "accelerate", "deepspeed")
"""Libraries that the others call, the most telling first: they are meant only where no framework above them is."""
_OWN = {
    "verl": "workers|trainer|utils|single_controller|models|experimental|third_party|protocol",
    "openrlhf": "cli|trainer|models|datasets|utils",
    "swift": "cli|llm|trainers|utils|megatron|rlhf_trainers|pipelines|template|tuners",
    "llamafactory": "train|cli|launcher|data|model|hparams|extras",
    "axolotl": "cli|core|utils|train|monkeypatch|loaders",
}
_CHECKOUT = re.compile("|".join(rf"[/\\](?P<{name}>{name})[/\\](?:{parts})(?=[/\\.])" for name, parts in _OWN.items()))
"""Folders that a framework's package has, for a package that runs from a checkout."""
_FRAME = re.compile(r"(?:site-packages|dist-packages|src)[/\\](\w+)[/\\]|^(\w+)[/\\](?:\w+[/\\])*\w+\.py:")


def framework_of(tracebacks: Sequence[Traceback]) -> Recognised | None:
    """The framework that the first traceback with one of its frames names, or None."""
    for trace in tracebacks:
        found: list[str] = []
        for frame in trace.frames:
            match = _FRAME.search(frame)
            package = (match[1] or match[2]) if match else None
            if package not in _PACKAGES and (checkout := _CHECKOUT.search(frame)) is not None:
                package = checkout.lastgroup
            if package in _PACKAGES and _PACKAGES[package] not in found:
                found.append(_PACKAGES[package])
        # trl imports itself by its launcher, so its own frames come first; of mere libraries the most telling one.
        above = [name for name in found if name not in LIBRARIES]
        chosen = above[0] if above else next((name for name in LIBRARIES if name in found), None)
        if chosen is not None:
            return Recognised(value=chosen, reason=f"the traceback runs through {chosen}", span=trace.span)
    return None


_VERL_LOGS = ("actor/", "critic/", "timing_s/", "response_length/", "global_seqlen/")


def framework_of_log(rows: Sequence[Row]) -> Recognised | None:
    """verl, where the rows are written as only verl writes them (``step:3 - actor/pg_loss:0.1 - …``); or None."""
    for row in rows:
        if row.style == "verl" and any(name.startswith(_VERL_LOGS) for name in row.metrics):
            return Recognised(value="verl", reason="the log's metrics are verl's", span=row.span)
    return None
