"""Where a program ran out of accelerator memory, from the frames of its traceback.

The innermost frame that belongs to a place decides: a loss computed during an evaluation is the loss's matter,
predictions that pile up between its batches are the evaluation's. A traceback without frames has no place.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence, Traceback

PLACES: Mapping[str, tuple[str, ...]] = {
    place: tuple(patterns) for place, patterns in load_table("engine/memory_places.toml")["places"].items()
}
"""Frames (``path.py:line function``) of each place, as file-name patterns; of two places for a frame the first."""
_EVALUATION_LOOPS = ("* evaluation_loop", "* prediction_loop")
_COLLECTING = ("* gather_for_metrics", "* _gpu_gather*", "* pad_across_processes")
"""Frames that collect predictions below an evaluation loop; training steps of PPO and GRPO call them too."""
_NO_BACKWARD = ("* generate", "* _sample", "* _beam_search", "* evaluation_loop", "* prediction_step")
_END = 1500
"""Characters at the end of a traceback in which a source line shows what the innermost frames do."""
_OUT = ("out of memory", "outofmemoryerror")
_SIZE = regex(r"[Tt]ried to allocate (?P<size>[0-9.]{1,12} ?[KMGT]i?B)")


def out_of_memory(evidence: Evidence) -> Iterator[tuple[str, Traceback]]:
    """Every traceback that ends in out of memory, with its place: one of `PLACES`, or empty."""
    for trace in evidence.tracebacks:
        if any(word in f"{trace.exception}: {trace.message}".lower() for word in _OUT):
            yield place_of(trace), trace


def place_of(trace: Traceback) -> str:
    """The place of the innermost frame that has one; the call of the output layer counts as ``logits``.

    What a forward pass does while text is generated or rows are evaluated is not kept for a backward pass.
    """
    if _has_frame(trace, _NO_BACKWARD):
        collects = _has_frame(trace, _EVALUATION_LOOPS) and _has_frame(trace, _COLLECTING)
        collects = collects and "losses = self.gather_function" not in trace.span.text
        return _innermost(trace, ("evaluation", "engine", "wake")) or ("evaluation" if collects else "")
    if "lm_head(" in trace.span.text[-_END:]:
        return "logits"
    return _innermost(trace, PLACES)


def size_of(trace: Traceback) -> str | None:
    """The size that could not be allocated, as the message says it; None if it does not."""
    size = _SIZE.search(trace.message)
    return size["size"] if size is not None else None


def _has_frame(trace: Traceback, patterns: tuple[str, ...]) -> bool:
    return any(_matcher(patterns).match(frame) for frame in trace.frames)


def _innermost(trace: Traceback, places: Collection[str]) -> str:
    for frame in reversed(trace.frames):
        for place in places:
            if _matcher(PLACES[place]).match(frame):
                return place
    return ""


@lru_cache(maxsize=64)
def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))
