"""Delimiters around text that is data for the model, never instructions."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b


def data_mark(texts: Sequence[str]) -> str:
    """A mark that none of the texts contains, so that pasted text cannot close its own delimiter.

    A digest rather than a random number: the same question then has the same prompt, which the server has cached.
    """
    joined = "\0".join(texts)
    mark = blake2b(joined.encode("utf-8", "replace"), digest_size=6).hexdigest()
    while mark in joined:
        mark = blake2b(mark.encode(), digest_size=6).hexdigest()
    return mark


def delimited(mark: str, text: str) -> str:
    return f"<data-{mark}>{text}</data-{mark}>"


def without_delimiters(mark: str, text: str) -> str:
    return text.replace(f"<data-{mark}>", "").replace(f"</data-{mark}>", "")
