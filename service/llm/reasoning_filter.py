"""What a model thinks aloud before it answers (``<think>…</think>``) is not the answer: it is left out. Pure.

Tags in inline code and in fenced blocks stay: answers about such models name them.
"""

from __future__ import annotations

import re

_NAMES = "think|thinking|thought|seed:think"
_OPEN = re.compile(rf"<(?:{_NAMES})>|\[THINK\]", re.IGNORECASE)
_CLOSE = re.compile(rf"</(?:{_NAMES})>|\[/THINK\]", re.IGNORECASE)
_FENCE = re.compile(r"[ \t>]{0,12}(?:```|~~~)")
_TAGS = ("[think]", "[/think]", *(f"<{slash}{name}>" for name in _NAMES.split("|") for slash in ("", "/")))
_PARTS = frozenset(tag[:length] for tag in _TAGS for length in range(1, len(tag)))
_LONGEST = max(map(len, _TAGS))


class ReasoningFilter:
    """One text as it comes. ``opened``: the prompt is thought to end inside a block, which the model only closes."""

    def __init__(self, *, opened: bool = False) -> None:
        self._inside = opened
        self._held: list[str] | None = [] if opened else None
        """All text so far, as long as only the prompt says that it is thought."""
        self._waiting = ""
        self._line = ""  # of what is shown, up to now
        self._fenced = False
        self._bare = True
        """Nothing is shown yet: white space before the answer says nothing."""
        self.orphaned = False
        """A block was closed that never began: everything shown so far was thought."""

    def apart(self) -> None:
        """The server tells thoughts apart from the text itself, so no block of them is open in the text."""
        if self._held is not None:
            self._inside, self._waiting, self._held = False, "".join(self._held), None

    def push(self, text: str) -> str:
        """What may be shown now that ``text`` has come."""
        return self._passed(text, ended=False)

    def end(self, *, whole: bool = False) -> str:
        """What waited, now that nothing more comes. A block that is open stays unseen.

        ``whole``: the model ended the text by itself. Then nothing was thought if no block was ever closed that only
        the prompt may have opened.
        """
        if whole:
            self.apart()
        return self._passed("", ended=True)

    def _passed(self, text: str, *, ended: bool) -> str:
        self._waiting += text
        if self._held is not None:
            self._held.append(text)
        shown: list[str] = []
        while self._waiting:
            if self._inside:
                closed = _CLOSE.search(self._waiting)
                if closed is None:
                    self._waiting = "" if ended else self._waiting[-_LONGEST:]
                    break
                self._waiting, self._inside, self._held = self._waiting[closed.end() :], False, None
            elif not self._show(shown, ended=ended):
                break
        said = "".join(shown)
        if self._bare:
            said = said.lstrip()
            self._bare = not said
        return said

    def _show(self, shown: list[str], *, ended: bool) -> bool:
        """Show up to the next tag; whether there is more to look at."""
        for match in re.finditer(r"[<\[]", self._waiting):
            at = match.start()
            rest = self._waiting[at : at + _LONGEST]
            opens, closes = _OPEN.match(rest), _CLOSE.match(rest)
            partial = not ended and rest.lower() in _PARTS
            if not (opens or closes or partial):
                continue
            self._see(self._waiting[:at])
            shown.append(self._waiting[:at])
            self._waiting = self._waiting[at:]
            if partial:
                return False
            tag = opens or closes
            assert tag is not None
            if self._in_code():
                self._see(tag.group())
                shown.append(tag.group())
            elif opens:
                self._inside = True
            else:
                shown.clear()
                self._line, self._fenced, self._bare, self.orphaned = "", False, True, True
            self._waiting = self._waiting[tag.end() :]
            return True
        self._see(self._waiting)
        shown.append(self._waiting)
        self._waiting = ""
        return False

    def _see(self, text: str) -> None:
        """Keep account of the line, and of whether it stands in a fenced block."""
        first, *others = text.split("\n")
        self._line += first
        for line in others:
            if _FENCE.match(self._line):
                self._fenced = not self._fenced
            self._line = line

    def _in_code(self) -> bool:
        return self._fenced or self._line.count("`") % 2 == 1


def without(text: str, *, opened: bool = False) -> str:
    """The whole text without what was thought aloud."""
    thoughts = ReasoningFilter(opened=opened)
    shown = thoughts.push(text)
    return shown + thoughts.end(whole=True)
