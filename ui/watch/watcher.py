"""Watches the text of a run as it grows, and reports each failure once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.answer.schema import Answer
from trainmedic.ui.watch.alarm import SUSPICIOUS, Alarm, alarm
from trainmedic.ui.watch.log import Log

if TYPE_CHECKING:
    from trainmedic.ui.diagnosing import Diagnose

QUIET_S = 2.0
"""Silence to wait for after the first sign: tracebacks come in pieces."""
LONGEST_WAIT_S = 10.0
"""The longest wait for silence: a run that continues with NaN never falls silent."""
EVERY_S = 15.0
"""The interval between checks of a log without suspicious lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """A reported failure: its signs, with the step, and the answer."""

    alarm: Alarm
    answer: Answer
    name: str


class Watcher:
    """One run. `add` may be called from several threads; `look` from one, periodically.

    A failure is reported once; a second one if its first cause is different, or if the run had recovered in between.
    """

    def __init__(
        self,
        name: str,
        configuration: Sequence[Attachment],
        diagnose: Diagnose,
        notify: Callable[[Diagnosis], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._configuration = tuple(configuration)
        self._diagnose_files = diagnose
        self._notify = notify
        self._clock = clock
        self._log = Log()
        self._lock = Lock()
        self._suspicious = False
        self._looked = clock()
        self._lines_seen = 0
        self._last = clock()
        self._since: float | None = None
        self._every = logging_steps(self._configuration)
        self._known: set[str] = set()
        self._reported: set[str] = set()

    def add(self, text: str) -> None:
        """Append text of the run."""
        if not text:
            return
        with self._lock:
            lines = self._log.add(text)
            self._last = self._clock()
            self._suspicious = self._suspicious or SUSPICIOUS.search(lines) is not None

    def look(self) -> None:
        """Check the text if a check is due, and report a new failure."""
        now = self._clock()
        if self._since is not None:
            if now - self._last >= QUIET_S or now - self._since >= LONGEST_WAIT_S:
                self._diagnose()
            return
        if self._suspicious or now - self._looked >= EVERY_S:
            self._check(now)

    def end(self) -> None:
        """Check the text a last time, without waiting for silence."""
        with self._lock:
            self._log.end()
        self._check(self._clock())
        if self._since is not None:
            self._diagnose()

    def _check(self, now: float) -> None:
        with self._lock:
            text, lines, self._suspicious = self._log.recent(), self._log.lines, False
        self._looked = now
        if lines == self._lines_seen:
            return
        self._lines_seen = lines
        if alarm(text, self._name, self._known) is not None:
            self._since = now

    def _diagnose(self) -> None:
        self._since = None
        with self._lock:
            # A copy: the run must not wait in `add` while its log is read.
            log, self._suspicious = self._log.copy(), False
            self._lines_seen = log.lines
        recent, whole = log.recent(), log.whole()
        signs = alarm(recent, self._name, self._known, self._every if recent == whole else None)
        if signs is None:
            return
        if signs.after:
            # The earlier failure would explain everything; this is a new one.
            whole = log.whole(after=signs.after)
        answer = self._diagnose_files((*self._configuration, Attachment(name=self._name, content=whole)))
        self._known.update(signs.kinds)
        cause = answer.causes[0].case_id if answer.verdict == "answered" and answer.causes else ""
        # A doubtful sign is reported only if a case explains it: there must be no alarm for a healthy run.
        if not (signs.certain or cause):
            return
        # The same again, or a consequence of the failure already reported.
        if cause in self._reported if cause else self._reported and not signs.after:
            return
        self._reported.add(cause)
        self._notify(Diagnosis(alarm=signs, answer=answer, name=self._name))


def logging_steps(configuration: Sequence[Attachment]) -> int | None:
    """The number of steps between logged rows, if the configuration states it."""
    settings = parse("", tuple(configuration)).run.settings if configuration else {}
    every = settings.get("logging_steps")
    return every.value if every is not None and isinstance(every.value, int) and every.value > 0 else None
