"""Releases on their way: each is fetched once at a time, and whoever needs it waits only so long. What comes too late
is there for the next one who asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import BoundedSemaphore, Lock, Thread
from typing import NamedTuple

from trainmedic.kb.errors import SourceError
from trainmedic.kb.sources.tree import SourceTree

AGAIN_S = 300.0
"""After a failure, the time in which the same release is not asked for again."""
AT_ONCE = 2
MOST_WAITING = 12
MOST_KEPT = 200
_LATER = "ask again in a minute"


class _Arrival(NamedTuple):
    since: float
    tree: Future[SourceTree]


class Arrivals:
    """``wait_s`` counts from when a release was first asked for; None waits for as long as it takes."""

    def __init__(self, fetch: Callable[[str, str], SourceTree], wait_s: float | None) -> None:
        self._fetch = fetch
        self._wait_s = wait_s
        self._coming: dict[tuple[str, str], _Arrival] = {}
        self._lock = Lock()
        self._slots = BoundedSemaphore(AT_ONCE)

    def wait(self, package: str, version: str) -> SourceTree:
        """The release. Raises what fetching it raises, and `SourceError` if it takes too long."""
        arrival = self.order(package, version)
        left = None if self._wait_s is None else max(0.0, arrival.since + self._wait_s - time.monotonic())
        try:
            return arrival.tree.result(left)
        except TimeoutError:
            raise SourceError(f"{package} {version} is still on its way from the index", hint=_LATER) from None

    def order(self, package: str, version: str) -> _Arrival:
        """Begin to fetch a release unless that is under way, or failed a moment ago. Raises `SourceError`."""
        key, now = (package, version), time.monotonic()
        with self._lock:
            arrival = self._coming.get(key)
            if arrival is not None and not (arrival.tree.done() and now > arrival.since + AGAIN_S):
                return arrival
            ended = [each for each, known in self._coming.items() if known.tree.done()]
            if len(self._coming) - len(ended) >= MOST_WAITING:
                raise SourceError("too many releases are on their way from the index", hint=_LATER)
            for each in (key, *ended[: max(0, len(self._coming) - MOST_KEPT)]):
                self._coming.pop(each, None)
            arrival = self._coming[key] = _Arrival(now, Future())
        Thread(target=self._run, args=(key, arrival.tree), name=f"fetch {package}", daemon=True).start()
        return arrival

    def _run(self, key: tuple[str, str], arriving: Future[SourceTree]) -> None:
        try:
            with self._slots:
                tree = self._fetch(*key)
        except BaseException as error:
            arriving.set_exception(error)
            return
        arriving.set_result(tree)
        with self._lock:
            self._coming.pop(key, None)
