"""A callback for transformers' Trainer, and everything built on it: checks the run when it starts, and tells of a
failure when the log shows it, from within the run.

    trainer = Trainer(..., callbacks=[TrainmedicCallback()])

Only the first process of a run does anything. What costs more than a look at a number is done in a thread: at a
step's end the callback spends microseconds (`benchmarks/callback.py` measures it).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from threading import Lock, Thread
from typing import Any, Literal

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from trainmedic.kb.errors import TrainmedicError
from trainmedic.service.settings import load_settings
from trainmedic.ui.watch import asking, described, tell
from trainmedic.ui.watch.watcher import Watcher

LOG = "trainer_log.jsonl"
FIRST_LOOK = 16
"""Rows after which the trend is looked at first; then each time that there are twice as many."""


class TrainmedicCallback(TrainerCallback):
    """``server``: a service to ask instead of the knowledge installed here, with ``key``. ``slack`` is a channel (the
    token is SLACK_BOT_TOKEN), ``webhook`` an address. ``tells`` are further functions that take the diagnosis.

    Never raises into the run, and never stops it.
    """

    def __init__(
        self,
        *,
        server: str = "",
        key: str | None = None,
        slack: str = "",
        webhook: str = "",
        language: Literal["en", "zh"] = "en",
        tells: Sequence[tell.Tell] = (),
    ) -> None:
        self._server = server
        self._key = key
        self._slack = slack
        self._webhook = webhook
        self._language: Literal["en", "zh"] = language
        self._tells = tuple(tells)
        self._watcher: Watcher | None = None
        self._rows = 0
        self._next_look = FIRST_LOOK
        self._working: Thread | None = None
        self._lock = Lock()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Check the run as it is configured; errors are told on standard error."""
        if not state.is_world_process_zero:
            return
        try:
            settings = load_settings()
            beside = described.run(args, kwargs.get("model"))
            text, _ = asking.report(beside, settings, self._language)
            ask = asking.here(settings, self._language)
            if self._server:
                ask = asking.first_of(asking.at(self._server, self._key, self._language), ask)
            tells = [tell.to_terminal, *self._tells]
            if self._slack:
                token, url = settings.slack_bot_token.get_secret_value(), settings.slack_api_url
                tells.append(tell.to_slack(self._slack, token, url, public_url=settings.public_url))
            if self._webhook:
                tells.append(tell.to_webhook(self._webhook))
            self._watcher = Watcher(LOG, beside, ask, tell.all_of(tells))
            sys.stderr.write(text)
        except TrainmedicError as error:
            sys.stderr.write(f"trainmedic: {error.message}\n")
        except Exception as error:  # the run matters more than whoever watches it
            sys.stderr.write(f"trainmedic: {type(error).__name__}, this run is not watched\n")

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Take a row of the log. A value that is not finite is diagnosed at once."""
        watcher = self._watcher
        if watcher is None or not logs:
            return
        watcher.add(row(state.global_step, logs))
        self._rows += 1
        broken = any(isinstance(value, float) and not math.isfinite(value) for value in logs.values())
        if broken or self._rows >= self._next_look:
            self._next_look = max(self._next_look, 2 * self._rows)
            self._start(watcher)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Wait for a diagnosis that is being made."""
        if self._watcher is not None:
            if self._working is not None:
                self._working.join()
            self._start(self._watcher)
            if self._working is not None:
                self._working.join()

    def _start(self, watcher: Watcher) -> None:
        """Look at the log in a thread, unless one is looking; it is not a daemon, so that a run that dies is told."""
        with self._lock:
            if self._working is None or not self._working.is_alive():
                self._working = Thread(target=_look, args=(watcher,), name="trainmedic")
                self._working.start()


def row(step: int, logs: Mapping[str, Any]) -> str:
    """A row of the log as a line of JSON, its step first; NaN as JSON's readers for logs take it."""
    numbers = {name: value for name, value in logs.items() if isinstance(value, int | float | str)}
    return json.dumps({"step": step, **numbers}) + "\n"


def _look(watcher: Watcher) -> None:
    try:
        watcher.end()
    except Exception as error:
        sys.stderr.write(f"trainmedic: {type(error).__name__} while the log was read\n")
