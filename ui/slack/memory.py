"""In-process memory, all bounded: events seen, answers posted, questions asked back."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from cachetools import LRUCache

from trainmedic.kb.model.place import Attachment
from trainmedic.service.answer import Answer

EVENTS = 20_000
"""Most of an hour at the 30,000 events that Slack sends an app per hour; it repeats events within minutes."""
THREADS = 5_000
ANSWERS = 300


class SeenEvents:
    """Events already handled: Slack delivers at least once, and one message under two event ids.

    Not on disk: if the process dies before it answers, the repeated event must be answered.
    """

    def __init__(self, size: int = EVENTS) -> None:
        self._seen: LRUCache[Hashable, bool] = LRUCache(size)

    def claim(self, *keys: Hashable) -> bool:
        """Whether none of the keys was claimed before; claims all of them."""
        is_new = not any(key in self._seen for key in keys)
        # A repeated event counts as recent again, so that a burst of retries does not outlive its entry.
        self._seen.update(dict.fromkeys(keys, True))
        return is_new


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedAnswer:
    """An answer with its question and attachments, masked."""

    answer: Answer
    question: str
    attachments: tuple[Attachment, ...] = ()
