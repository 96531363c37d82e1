"""Removes unknown citation markers from a model's text as it is streamed, and stops it if it repeats our instructions.

Text passes through at once. Only the beginning of a possible marker, or words that continue like a passage of the
protected text, are held back until the next piece.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from trainmedic.service.llm.verify.words import PASSAGE, passages, prose_words, repeated

SUSPECT = 4
"""This many consecutive words of the protected text at the end hold back what follows."""
LONGEST_MARKER = 64
_MARKER = r"\[(\d{1,4}(?:\s*[,，、]\s*\d{1,4})*)\]"


class StreamFilter:
    """Filters one text. ``markers`` are the known ones; ``protected`` is a text that must not be quoted."""

    def __init__(self, protected: str, markers: Collection[int]) -> None:
        self._markers = frozenset(markers)
        self._passages = frozenset().union(*(passages(protected, length) for length in range(SUSPECT, PASSAGE + 1)))
        self._tail = ""
        """The last words shown: a passage may have begun there."""
        self._pending = ""
        self._stopped = False

    def push(self, text: str) -> str:
        """What may be shown after ``text`` has arrived."""
        return self._filtered(text, ended=False)

    def end(self) -> str:
        """The pending text, at the end of the stream."""
        return self._filtered("", ended=True)

    def _filtered(self, text: str, *, ended: bool) -> str:
        if self._stopped:
            return ""
        self._pending += text
        recent = self._tail + self._pending
        words = list(prose_words(recent))
        if words and words[-1].end() == len(recent) and not ended:
            words.pop()  # it may continue in the next piece
        plain = [word.group() for word in words]
        # The rest of the stream is dropped too: a model that recites its instructions seldom stops.
        if repeated(plain, self._passages):
            self._stopped = True
            return ""
        end = len(recent) if ended else self._safe_end(recent, words, plain)
        end = max(end, len(self._tail))
        shown, self._pending = recent[len(self._tail) : end], recent[end:]
        # One word fewer than a passage: with the next piece they may add up to one.
        last_words = [word for word in words if word.start() < end][1 - PASSAGE :]
        self._tail = recent[last_words[0].start() : end] if last_words else recent[:end][-LONGEST_MARKER:]
        return re.sub(_MARKER, self._known_markers, shown)

    def _safe_end(self, recent: str, words: list[re.Match[str]], plain: list[str]) -> int:
        """The position from which the text is held back."""
        bracket = recent.rfind("[", max(len(self._tail), len(recent) - LONGEST_MARKER))
        open_marker = bracket >= 0 and all(c.isdecimal() or c.isspace() or c in ",，、" for c in recent[bracket + 1 :])
        end = bracket if open_marker else len(recent)
        # The longest match first, so that as little as possible of a passage is shown.
        for length in range(PASSAGE - 1, SUSPECT - 1, -1):
            if len(plain) >= length and tuple(plain[-length:]) in self._passages:
                return min(end, words[-length].start())
        return end

    def _known_markers(self, match: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", match[1])]
        return "".join(f"[{number}]" for number in numbers if number in self._markers)
