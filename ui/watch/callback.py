"""A callback for transformers' Trainer and everything built on it: checks the run at its start, and reports a failure
as soon as the log shows it.

    trainer = Trainer(..., callbacks=[TrainmedicCallback()])

Only the main process of a run is active. Diagnoses are made in a thread: at a step's end the callback spends
microseconds (measured by `benchmarks/callback.py`).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Literal

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainmedic.kb.errors import TrainmedicError
from trainmedic.service.configuration import load_settings
from trainmedic.service.settings import Settings
from trainmedic.ui import diagnosing
from trainmedic.ui.watch import notify, trainer_run
from trainmedic.ui.watch.watcher import Watcher

if TYPE_CHECKING:
    from trainmedic.service.advisor import Advisor

LOG = "trainer_log.jsonl"
FIRST_LOOK = 16
"""Rows before the first check of the trend; the next ones come each time the number has doubled."""


class TrainmedicCallback(TrainerCallback):
    """``server`` is a service to ask, with ``key``; by default the knowledge installed here answers. ``webhook`` is
    a URL, of apprise too. ``notifiers`` are further functions of the diagnosis.

    Never raises into the run, and never stops it.
    """

    def __init__(
        self,
        *,
        server: str = "",
        key: str | None = None,
        webhook: str = "",
        language: Literal["en", "zh"] = "en",
        notifiers: Sequence[notify.Notifier] = (),
    ) -> None:
        self._server = server
        self._key = key
        self._webhook = webhook
        self._language: Literal["en", "zh"] = language
        self._notifiers = tuple(notifiers)
        self._watcher: Watcher | None = None
        self._rows = 0
        self._next_look = FIRST_LOOK
        self._working: Thread | None = None
        self._lock = Lock()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Check the configuration of the run; findings go to standard error."""
        # One report for the run, not one for each of its processes.
        if not state.is_world_process_zero:
            return
        try:
            settings = load_settings()
            configuration = trainer_run.attachments(args, kwargs.get("model"))
            text, _ = diagnosing.report(configuration, settings, self._language)
            load = partial(_load_advisor, settings)
            diagnose = diagnosing.source(load, self._language, self._server, self._key)
            notifiers = [notify.to_terminal, *self._notifiers]
            if self._webhook:
                notifiers.append(notify.to_webhook(self._webhook))
            self._watcher = Watcher(LOG, configuration, diagnose, notify.all_of(notifiers))
            sys.stderr.write(text)
        except TrainmedicError as error:
            sys.stderr.write(f"trainmedic: {error.message}\n")
        except Exception as error:  # watching must never end the run
            sys.stderr.write(f"trainmedic: {type(error).__name__}, this run is not watched\n")

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add a row to the log. A non-finite value triggers a diagnosis at once."""
        watcher = self._watcher
        if watcher is None or not logs:
            return
        watcher.add(row(state.global_step, logs))
        self._rows += 1
        broken = any(isinstance(value, float) and not math.isfinite(value) for value in logs.values())
        if broken or self._rows >= self._next_look:
            # Doubling bounds the total work: reading the log again costs its whole length each time.
            self._next_look = max(self._next_look, 2 * self._rows)
            self._start(watcher)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Wait for a diagnosis in progress, then make the last one."""
        if self._watcher is not None:
            if self._working is not None:
                self._working.join()
            self._start(self._watcher)
            if self._working is not None:
                self._working.join()

    def _start(self, watcher: Watcher) -> None:
        """Check the log in a thread, unless one is running; not a daemon, so that it survives a crash of the run."""
        with self._lock:
            if self._working is None or not self._working.is_alive():
                self._working = Thread(target=_look, args=(watcher,), name="trainmedic")
                self._working.start()


def row(step: int, logs: Mapping[str, Any]) -> str:
    """A row of the log as a line of JSON, its step first, with the literal NaN that log readers accept."""
    numbers = {name: value for name, value in logs.items() if isinstance(value, int | float | str)}
    return json.dumps({"step": step, **numbers}) + "\n"


def _look(watcher: Watcher) -> None:
    try:
        watcher.end()
    except Exception as error:
        sys.stderr.write(f"trainmedic: {type(error).__name__} while the log was read\n")


def _load_advisor(settings: Settings) -> Advisor:
    # Retrieval takes a second to load, and a healthy run never needs it.
    from trainmedic.ui.app import build_advisor

    return build_advisor(settings, with_history=False)
