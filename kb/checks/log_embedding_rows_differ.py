"""A checkpoint whose embedding or output head has another number of rows than the model, and nothing else differs."""

from __future__ import annotations

import re

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex

_MISMATCH = regex(
    r"size mismatch for (?P<name>\S{1,200}): copying a param with shape torch\.Size\(\[(?P<file>[0-9, ]{0,60})\]\)"
    r" from checkpoint, the shape in current model is torch\.Size\(\[(?P<model>[0-9, ]{0,60})\]\)"
)
_VOCABULARY = ("embed_tokens", "lm_head", "wte", "embed_in", "embed_out", "word_embeddings")


def check(facts: Facts) -> Outcome:
    """Fires if only matrices of the vocabulary differ, in their rows. Other columns mean another base model."""
    for trace in facts.evidence.tracebacks:
        mismatches = list(_MISMATCH.finditer(trace.message))
        if mismatches and all(map(_rows_differ, mismatches)):
            return fires(*trace.places)
    return NOT_SHOWN


def _rows_differ(mismatch: re.Match[str]) -> bool:
    name = mismatch["name"]
    in_file, in_model = (mismatch[key].replace(" ", "").split(",") for key in ("file", "model"))
    vocabulary = "lora_" not in name and any(part in _VOCABULARY for part in name.split("."))
    return vocabulary and len(in_file) == len(in_model) == 2 and in_file[0] != in_model[0] and in_file[1] == in_model[1]
