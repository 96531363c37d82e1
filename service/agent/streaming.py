"""Which of the model's words are shown while it works.

A turn may end with calls of tools; what is said before them ("let me look that up") is no answer. So the beginning of
every turn waits until the turn has ended, or has grown longer than such remarks are.
"""

from __future__ import annotations

from collections.abc import Collection

from trainmedic.service.llm.reasoning_filter import ReasoningFilter
from trainmedic.service.llm.stream_filter import StreamFilter

REMARK = 280
"""Code points of a turn that wait."""


class StreamedText:
    """The model's text of one answer as it is streamed; ``quiet``: nothing is shown."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self.said = False
        self._waiting = ""
        self._released = False
        self._withhold: StreamFilter | None = None
        self._thoughts = ReasoningFilter()

    def begin(self, protected: str, markers: Collection[int], *, opened: bool = False) -> None:
        """A turn begins; citations may point at these markers, and the protected text does not show.

        ``opened``: the prompt ends inside a block of thought.
        """
        self._withhold = StreamFilter(protected, markers)
        self._thoughts = ReasoningFilter(opened=opened)
        self._waiting, self._released = "", False

    def push(self, text: str, *, apart: bool = False) -> str:
        """What may be shown now that ``text`` has come. ``apart``: the server tells thoughts apart from the text."""
        assert self._withhold is not None
        if apart:
            self._thoughts.apart()
        self._waiting += self._withhold.push(self._thoughts.push(text))
        if self._thoughts.orphaned and not self._released:
            self._waiting = ""  # it was thought all along; what is left of this piece comes with the answer
        return self._out() if self._released or len(self._waiting) > REMARK else ""

    def end(self, *, dropped: bool, whole: bool = True) -> str:
        """What waited, now that the turn has ended; nothing of a turn that called tools (``dropped``).

        ``whole``: the model ended it by itself.
        """
        assert self._withhold is not None
        self._waiting += self._withhold.push(self._thoughts.end(whole=whole)) + self._withhold.end()
        if dropped and not self._released:
            self._waiting = ""
            return ""
        return self._out()

    def _out(self) -> str:
        text, self._waiting = self._waiting, ""
        if self._quiet or not text:
            return ""
        before = "" if self._released else "\n\n" if self.said else ""
        self.said = self._released = True
        return before + text
