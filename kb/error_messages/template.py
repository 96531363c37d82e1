"""Message templates: literal text with holes ``{expression}``; literal braces are doubled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

HOLE = "\x00"
"""Replaces a hole in a skeleton."""


def split(template: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The literal parts of a template, white space at their ends removed, and the expressions of the holes between.

    There is one part more than there are holes; parts may be empty.

    >>> split("{a} of {b}%")
    (('', 'of', '%'), ('a', 'b'))
    """
    parts: list[str] = []
    holes: list[str] = []
    for number, piece in enumerate(template.replace("{{", "\x01").replace("}}", "\x02").split("{")):
        hole, closed, text = piece.partition("}") if number else ("", "", piece)
        if closed:
            holes.append(hole)
        elif number:
            text = piece
        parts.append(text.replace("\x01", "{").replace("\x02", "}").strip())
    return tuple(parts), tuple(holes)


def skeleton(template: str) -> str:
    """The fixed text of a template, whatever the names of its variables: the same for the same message elsewhere."""
    return HOLE.join(split(template)[0])


def anchors(template: str, most_words: int) -> list[tuple[int, int, int]]:
    """(start, end, words) of every stretch of one to ``most_words`` words that holds no part of a hole and no brace.

    The name before the value of ``{name=}`` is a stretch of one word.
    """
    words = _words(template)
    stretches = [
        (words[first][0], words[first + count - 1][1], count)
        for first in range(len(words))
        for count in range(1, most_words + 1)
        if first + count <= len(words) and _adjacent(template, words[first : first + count])
    ]
    return stretches + [(start, end, 1) for start, end in _names_of_values(template)]


def _names_of_values(template: str) -> Iterator[tuple[int, int]]:
    """(start, end) of ``name=`` before a hole, at the beginning of a word."""
    at = template.find("={")
    while at >= 0:
        start = template.rfind(" ", 0, at) + 1
        if not set(template[start:at]) & set("{}=") and template[at + 2 : at + 3] != "{":
            yield start, at + 1
        at = template.find("={", at + 1)


def _words(template: str) -> list[tuple[int, int]]:
    """(start, end) of the words outside of holes that no hole touches."""
    words: list[tuple[int, int]] = []
    start, depth, clean = -1, 0, True
    for at, character in enumerate(template + " "):
        depth += (character == "{") - (character == "}")
        if character == " " and depth == 0:
            if start >= 0 and clean:
                words.append((start, at))
            start, clean = -1, True
            continue
        if start < 0:
            start = at
        clean = clean and character not in "{}"
    return words


def _adjacent(template: str, words: Sequence[tuple[int, int]]) -> bool:
    """Whether nothing but one space is between each word and the next."""
    return all(template[end:start] == " " for (_, end), (start, _) in pairwise(words))
