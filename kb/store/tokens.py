"""Tokens of the lexical index, the same for pages and questions. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from trainmedic.kb.lazy import regex

_WORD = regex(r"[a-z0-9][a-z0-9_.+/-]*[a-z0-9+]|[a-z0-9]")
_PART = regex(r"[a-z]+|\d+(?:\.\d+)*")
_CHINESE = regex(r"[\u3400-\u4dbf\u4e00-\u9fff]+")
MAX_CHARACTERS = 20_000
_STOP = (
    "a an and are as at be but by can do does for from had has have how i in is it its me my not of on or so that the "
    "then there this to was we were what when where which why will with you your"
)
STOP = frozenset(_STOP.split())


def tokens(text: str) -> Iterator[str]:
    """Words, the parts of compound names (``micro_train_batch_size``, ``flash-attn``), Chinese bigrams, and the
    3-grams of longer words, which find misspellings and have the prefix ``3:``."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARACTERS]).lower()
    for match in _WORD.finditer(folded):
        word = match.group()
        if word in STOP:
            continue
        yield word
        parts = _PART.findall(word)
        if len(parts) > 1:
            yield from (part for part in parts if part not in STOP)
        for part in parts:
            if len(part) > 4 and part.isalpha():
                yield from (f"3:{part[start : start + 3]}" for start in range(len(part) - 2))
    for match in _CHINESE.finditer(folded):
        run = match.group()
        if len(run) == 1:
            yield run
        yield from (run[start : start + 2] for start in range(len(run) - 1))
