"""Whether a page repeats a sentence of its sources: facts may be carried over, sentences may not.

The sources' sentences are stored as digests (`source-sentences.txt`, written by `originals`), so that the check needs
no copy of anybody's text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from importlib.resources import files

from trainmedic.kb.lazy import regex

LEAST_WORDS = 8
"""Shorter sentences are said alike by accident."""
# A Chinese character carries more than half an English word.
LEAST_HAN = 14
DIGEST_BYTES = 6

_FENCE = regex(r"^```.*?^```[^\n]*$", re.DOTALL | re.MULTILINE)
_QUOTED = regex(r"`[^`\n]+`|\"[^\"\n]{20,}\"|“[^”\n]{20,}”")
_END = regex(r"(?<=[.!?;:])\s+|[。！？；：]|\n\s*(?:[-*+>#|]|\d+\.|\n)|\|")
_WORD = regex(r"[A-Za-z0-9_][\w.\-/=]*|[\u4e00-\u9fff]")
_HAN = regex(r"[\u4e00-\u9fff]")


def sentences(text: str) -> Iterator[str]:
    """The sentences that say something, normalised to lower-case words joined by blanks.

    Code blocks are left out, and code spans and long quotations become a blank: error messages and option names are
    meant to be quoted. A Chinese character counts as a word.
    """
    prose = _QUOTED.sub(" ", _FENCE.sub("\n\n", text))
    for part in _END.split(prose):
        words = [word.strip(".-/=").casefold() for word in _WORD.findall(part)]
        han = sum(1 for word in words if _HAN.match(word))
        if len(words) - han >= LEAST_WORDS or han >= LEAST_HAN:
            yield " ".join(filter(None, words))


def digest(sentence: str) -> str:
    """A short fingerprint of a normalised sentence."""
    return hashlib.blake2b(sentence.encode("utf-8", "replace"), digest_size=DIGEST_BYTES).hexdigest()


def stored() -> frozenset[str]:
    """The digests in the repository."""
    return frozenset(files(__package__).joinpath("source-sentences.txt").read_text(encoding="utf-8").split())


def repeated(text: str, known: Collection[str]) -> tuple[str, ...]:
    """The sentences of ``text`` whose digests are among ``known``, in order, each once."""
    return tuple(dict.fromkeys(sentence for sentence in sentences(text) if digest(sentence) in known))
