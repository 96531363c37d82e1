"""Removes a model's reasoning (``<think>…</think>``) from its text. Pure.

Tags in inline code and in fenced blocks are kept, because answers about such models mention them.
"""

from __future__ import annotations

import re
from typing import Literal

from trainmedic.kb.lazy import regex

# Qwen and DeepSeek write <think>, Seed <seed:think>, Mistral [THINK]; fine-tunes the other two.
_NAMES = ("think", "thinking", "thought", "seed:think")
_TAG = regex(rf"<(?P<close>/?)(?:{'|'.join(_NAMES)})>|\[(?P<close_bracket>/?)THINK\]", re.IGNORECASE)
_TAGS = ("[think]", "[/think]", *(f"<{slash}{name}>" for name in _NAMES for slash in ("", "/")))
_PREFIXES = frozenset(tag[:length] for tag in _TAGS for length in range(1, len(tag)))
_LONGEST = max(map(len, _TAGS))
_MAX_FENCE_INDENT = 12


class ReasoningFilter:
    """Filters one text as it is streamed. ``opened``: the prompt may end inside a block that the model only closes."""

    def __init__(self, *, opened: bool = False) -> None:
        self._inside = opened
        self._suspect: list[str] | None = [] if opened else None
        """The whole text so far, as long as only the prompt suggests that it is reasoning."""
        self._pending = ""
        self._line = ""
        """The current line of the visible text."""
        self._fenced = False
        self._at_start = True
        """Nothing is visible yet, and whitespace before the answer is dropped."""
        self.orphaned = False
        """A block was closed that never began: everything returned so far was reasoning."""

    def apart(self) -> None:
        """The server separates the reasoning from the text, so no block is open in the text."""
        if self._suspect is not None:
            self._inside, self._pending, self._suspect = False, "".join(self._suspect), None

    def push(self, text: str) -> str:
        """The text that may be shown after ``text`` has arrived."""
        return self._filtered(text, ended=False)

    def end(self, *, whole: bool = False) -> str:
        """The pending text, at the end of the stream. An open block stays hidden.

        ``whole``: the model ended the text by itself. Then a block that only the prompt may have opened, and that was
        never closed, was not reasoning.
        """
        if whole:
            self.apart()
        return self._filtered("", ended=True)

    def _filtered(self, text: str, *, ended: bool) -> str:
        self._pending += text
        if self._suspect is not None:
            self._suspect.append(text)
        visible: list[str] = []
        while self._pending:
            if self._inside:
                end = next((tag.end() for tag in _TAG.finditer(self._pending) if _kind(tag) == "close"), None)
                if end is None:
                    # Reasoning itself is dropped at once; only what may be the start of a closing tag is needed.
                    self._pending = "" if ended else self._pending[-_LONGEST:]
                    break
                self._pending, self._inside, self._suspect = self._pending[end:], False, None
            elif not self._show(visible, ended=ended):
                break
        shown = "".join(visible)
        if self._at_start:
            shown = shown.lstrip()
            self._at_start = not shown
        return shown

    def _show(self, visible: list[str], *, ended: bool) -> bool:
        """Move the text up to the next tag into ``visible``; whether anything is left to read."""
        for match in re.finditer(r"[<\[]", self._pending):
            start = match.start()
            rest = self._pending[start : start + _LONGEST]
            tag = _TAG.match(rest)
            # A tag may arrive in several pieces, down to one character each.
            partial = not ended and rest.lower() in _PREFIXES
            if tag is None and not partial:
                continue
            self._follow(self._pending[:start])
            visible.append(self._pending[:start])
            self._pending = self._pending[start:]
            if tag is None:
                return False
            if self._in_code():
                self._follow(tag.group())
                visible.append(tag.group())
            elif _kind(tag) == "open":
                self._inside = True
            else:
                visible.clear()
                self._line, self._fenced, self._at_start, self.orphaned = "", False, True, True
            self._pending = self._pending[tag.end() :]
            return True
        self._follow(self._pending)
        visible.append(self._pending)
        self._pending = ""
        return False

    def _follow(self, text: str) -> None:
        """Keep track of the current line and of fenced blocks."""
        first, *others = text.split("\n")
        self._line += first
        for line in others:
            if _is_fence(self._line):
                self._fenced = not self._fenced
            self._line = line

    def _in_code(self) -> bool:
        return self._fenced or self._line.count("`") % 2 == 1


def _kind(tag: re.Match[str]) -> Literal["open", "close"]:
    return "close" if tag["close"] or tag["close_bracket"] else "open"


def _is_fence(line: str) -> bool:
    text = line.lstrip(" \t>")
    # Deeper than CommonMark allows: models indent fences inside nested lists.
    return len(line) - len(text) <= _MAX_FENCE_INDENT and text.startswith(("```", "~~~"))


def without_reasoning(text: str, *, opened: bool = False) -> str:
    """A complete text without its reasoning."""
    reasoning = ReasoningFilter(opened=opened)
    shown = reasoning.push(text)
    return shown + reasoning.end(whole=True)
