"""A model's text on its way to the user: citation markers that point at nothing, and our own instructions, stay behind.

Text passes as it comes. Only what may yet turn out to be a marker, or goes on like a passage of the protected text,
waits until the next piece shows.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from trainmedic.service.llm.verify.words import PASSAGE, passages, repeated, running

SUSPECT = 4
"""So many words running of it at the end of the text make what follows wait."""
LONGEST_MARKER = 64
_MARKER = re.compile(r"\[(\d{1,4}(?:\s*[,，、]\s*\d{1,4})*)\]")
_OPEN = re.compile(r"\[[\d\s,，、]*$")


class StreamFilter:
    """Meant for one text. ``markers`` are those that exist; ``protected`` is what must never be shown."""

    def __init__(self, protected: str, markers: Collection[int]) -> None:
        self._markers = frozenset(markers)
        self._runs = frozenset().union(*(passages(protected, length) for length in range(SUSPECT, PASSAGE + 1)))
        self._shown = ""  # the last words shown: a passage may have begun there
        self._waiting = ""
        self._silent = False

    def push(self, text: str) -> str:
        """What may be shown now that ``text`` has come."""
        return self._passed(text, ended=False)

    def end(self) -> str:
        """What waited, now that nothing more comes."""
        return self._passed("", ended=True)

    def _passed(self, text: str, *, ended: bool) -> str:
        if self._silent:
            return ""
        self._waiting += text
        known = self._shown + self._waiting
        words = list(running(known))
        if words and words[-1].end() == len(known) and not ended:
            words.pop()  # it may go on in the next piece
        plain = [word.group() for word in words]
        if repeated(plain, self._runs):
            self._silent = True
            return ""
        keep = len(known) if ended else self._from(known, words, plain)
        keep = max(keep, len(self._shown))
        shown, self._waiting = known[len(self._shown) : keep], known[keep:]
        kept = [word for word in words if word.start() < keep][1 - PASSAGE :]
        self._shown = known[kept[0].start() : keep] if kept else known[:keep][-LONGEST_MARKER:]
        return _MARKER.sub(self._marked, shown)

    def _from(self, known: str, words: list[re.Match[str]], plain: list[str]) -> int:
        """Where the part begins that has to wait."""
        opened = _OPEN.search(known, max(len(self._shown), len(known) - LONGEST_MARKER))
        keep = opened.start() if opened else len(known)
        for length in range(PASSAGE - 1, SUSPECT - 1, -1):
            if len(plain) >= length and tuple(plain[-length:]) in self._runs:
                return min(keep, words[-length].start())
        return keep

    def _marked(self, match: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", match[1])]
        return "".join(f"[{number}]" for number in numbers if number in self._markers)
