"""Looks at a run's text as it comes, and tells of a failure once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse import parse
from trainmedic.ui.watch.alarm import TELLING, Alarm, alarm
from trainmedic.ui.watch.log import Log

Wire = Mapping[str, Any]
"""An answer in the shape of the API."""
Ask = Callable[[Sequence[Attachment]], Wire]
QUIET_S = 2.0
"""After the first sign this much silence is waited for: tracebacks come in pieces."""
PATIENCE_S = 10.0
"""... but no longer than this: a run that goes on with NaN never falls silent."""
EVERY_S = 15.0
"""How often the log is looked at where no line asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What is told: the signs, the step, and the answer."""

    alarm: Alarm
    answer: Wire
    name: str


class Watcher:
    """One run. `add` may be called from several threads; `look` from one, now and then.

    A failure is told once. Another is told only where its first cause is another one.
    """

    def __init__(
        self,
        name: str,
        beside: Sequence[Attachment],
        ask: Ask,
        tell: Callable[[Diagnosis], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._beside = tuple(beside)
        self._ask = ask
        self._tell = tell
        self._clock = clock
        self._log = Log()
        self._lock = Lock()
        self._telling = False
        self._looked = clock()
        self._lines_seen = 0
        self._last = clock()
        self._since: float | None = None
        self._every = logged_every(self._beside)
        self._known: set[str] = set()
        self._told: set[str] = set()

    def add(self, text: str) -> None:
        """More of the run's text."""
        if not text:
            return
        with self._lock:
            lines = self._log.add(text)
            self._last = self._clock()
            self._telling = self._telling or TELLING.search(lines) is not None

    def look(self) -> None:
        """See whether there is something to tell, and tell it."""
        now = self._clock()
        if self._since is not None:
            if now - self._last >= QUIET_S or now - self._since >= PATIENCE_S:
                self._diagnose()
            return
        if self._telling or now - self._looked >= EVERY_S:
            self._check(now)

    def end(self) -> None:
        """The run has ended: whatever is in its text is told now."""
        with self._lock:
            self._log.end()
        self._check(self._clock())
        if self._since is not None:
            self._diagnose()

    def _check(self, now: float) -> None:
        with self._lock:
            text, lines, self._telling = self._log.recent(), self._log.lines, False
        self._looked = now
        if lines == self._lines_seen:
            return
        self._lines_seen = lines
        if alarm(text, self._name, self._known) is not None:
            self._since = now

    def _diagnose(self) -> None:
        self._since = None
        with self._lock:
            recent, whole, self._telling = self._log.recent(), self._log.whole(), False
            self._lines_seen = self._log.lines
        found = alarm(recent, self._name, self._known, self._every if recent == whole else None)
        if found is None:
            return
        answer = self._ask((*self._beside, Attachment(name=self._name, content=whole)))
        self._known.update(found.kinds)
        cause = answer["causes"][0]["case_id"] if answer["verdict"] == "answered" and answer["causes"] else ""
        # A doubtful sign is told only where the knowledge explains it: a healthy run must be left in peace.
        if cause in self._told or not (found.certain or cause):
            return
        if not cause and self._told:
            return  # what follows from a failure that was told: nothing new is known of it
        self._told.add(cause)
        self._tell(Diagnosis(alarm=found, answer=answer, name=self._name))


def logged_every(beside: Sequence[Attachment]) -> int | None:
    """After how many steps a row is logged, where the configuration says so."""
    settings = parse("", tuple(beside)).run.settings if beside else {}
    every = settings.get("logging_steps")
    return every.value if every is not None and isinstance(every.value, int) and every.value > 0 else None
