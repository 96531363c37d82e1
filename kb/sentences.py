"""Sentences of a paragraph. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from trainmedic.kb.lazy import regex

_SENTENCE_END = regex(
    r"(?:[.!?]{1,8}[\"'”’)*_]{0,4}(?=\s|\[\d|$)|[。！？]{1,8}[”’」』）\"*_]{0,4})"
    r"(?:[ \t]{0,4}\[\d{1,4}(?:[ ,，、]{1,3}\d{1,4}){0,20}\]){0,20}\s*"
)
# Their full stop ends no sentence.
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.k.a", "w.r.t", "vs", "cf", "approx", "resp", "ca", "al"}) | frozenset(
    {"Fig", "Figs", "No", "Eq", "Sec", "Dr", "St"}
)


def sentences(body: str) -> Iterator[str]:
    """The sentences of a paragraph, each with its markers. Code, decimals, versions, file names and abbreviations do
    not end a sentence."""
    start = 0
    for end in sentence_ends(body):
        yield body[start:end].strip()
        start = end
    if rest := body[start:].strip():
        yield rest


def sentence_ends(body: str) -> Iterator[int]:
    """The positions after each sentence of a paragraph; an unfinished last one has none."""
    end = position = ticks = 0
    for match in _SENTENCE_END.finditer(body):
        ticks += body.count("`", position, match.start())
        position = match.start()
        # Inside inline code a full stop ends nothing.
        if ticks % 2 or (body[position] == "." and _ends_abbreviated(body[max(end, position - 8) : position])):
            continue
        end = match.end()
        yield end


def _ends_abbreviated(text: str) -> bool:
    words = f"{text}.".replace("(", " ").split()
    return words[-1].removesuffix(".") in _ABBREVIATIONS
