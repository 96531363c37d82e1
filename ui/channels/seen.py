"""Events handled already. Platforms deliver at least once."""

from __future__ import annotations

from collections.abc import Hashable

from cachetools import LRUCache

EVENTS = 20_000
"""Most of an hour at the 30,000 events that Slack sends an app per hour; it repeats events within minutes."""


class SeenEvents:
    """Not on disk: if the process dies before it answers, the repeated event must be answered."""

    def __init__(self, size: int = EVENTS) -> None:
        self._seen: LRUCache[Hashable, bool] = LRUCache(size)

    def claim(self, *keys: Hashable) -> bool:
        """Whether none of the keys was claimed before; claims all of them."""
        is_new = not any(key in self._seen for key in keys)
        # A repeated event counts as recent again, so that a burst of retries does not outlive its entry.
        self._seen.update(dict.fromkeys(keys, True))
        return is_new
