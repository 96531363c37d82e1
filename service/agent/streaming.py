"""Streaming of the model's text during an investigation.

A turn may end with tool calls, and the remark before them ("let me look that up") is no answer. So the beginning of
each turn is held back until the turn ends or grows longer than such remarks are.
"""

from __future__ import annotations

from collections.abc import Collection

from trainmedic.service.llm.reasoning_filter import ReasoningFilter
from trainmedic.service.llm.stream_filter import StreamFilter

REMARK = 280
"""Code points at the beginning of a turn that are held back."""


class StreamedText:
    """The streamed text of one answer; ``quiet``: nothing is shown."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._begun = False
        self._pending = ""
        self._released = False
        self._filter: StreamFilter | None = None
        self._reasoning = ReasoningFilter()

    def begin(self, protected: str, markers: Collection[int], *, opened: bool = False) -> None:
        """Begin a turn; the arguments are those of `StreamFilter` and `ReasoningFilter`."""
        self._filter = StreamFilter(protected, markers)
        self._reasoning = ReasoningFilter(opened=opened)
        self._pending, self._released = "", False

    def push(self, text: str, *, apart: bool = False) -> str:
        """What may be shown after ``text`` has arrived. ``apart``: the server separates reasoning from the text."""
        assert self._filter is not None
        if apart:
            self._reasoning.apart()
        self._pending += self._filter.push(self._reasoning.push(text))
        if self._reasoning.orphaned and not self._released:
            self._pending = ""  # it was reasoning; the rest of this piece is shown with the answer
        return self._release() if self._released or len(self._pending) > REMARK else ""

    def end(self, *, dropped: bool, whole: bool = True) -> str:
        """The pending text at the end of the turn; empty after a turn with tool calls (``dropped``).

        ``whole``: the model ended the turn by itself.
        """
        assert self._filter is not None
        self._pending += self._filter.push(self._reasoning.end(whole=whole)) + self._filter.end()
        if dropped and not self._released:
            self._pending = ""
            return ""
        return self._release()

    def _release(self) -> str:
        text, self._pending = self._pending, ""
        if self._quiet or not text:
            return ""
        before = "" if self._released else "\n\n" if self._begun else ""
        self._begun = self._released = True
        return before + text
