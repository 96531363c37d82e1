"""Watch a run: follow its log, or launch it, and report a failure as soon as it appears.

Examples: trainmedic watch train.log --config train.sh --config ds.json
          kubectl logs -f POD | trainmedic watch -
          trainmedic watch --config env.txt -- accelerate launch train.py --config cfg.yaml

The configuration is checked before the launch. Each failure is reported once, with its step: on standard error, and to
a webhook if given. With a command, its output passes through and its exit code is returned. If the watcher is killed,
the run goes on, and its output stays in the folder trainmedic-watch-... where it was started.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.model.place import Attachment
from trainmedic.ui.cli import FAILED, FINDINGS
from trainmedic.ui.cli._input import STDIN, STDIN_NAME, attachments, files_of_command, key_of, language_of

if TYPE_CHECKING:
    from trainmedic.service.advisor import Advisor
    from trainmedic.service.settings import Settings
    from trainmedic.ui.watch.notify import Notifier
    from trainmedic.ui.watch.watcher import Watcher

POLL_S = 0.5
COMMAND, OUTPUT = "command", "output.log"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "trainmedic watch [LOG] [options] [-- COMMAND ...]"
    parser.set_defaults(command=[])
    parser.add_argument(
        "log",
        nargs="?",
        metavar="LOG",
        help="log to follow, - for standard input; with a command, its output is watched too",
    )
    parser.add_argument("--config", action="append", default=[], metavar="FILE", help="file of the run")
    parser.add_argument("--strict", action="store_true", help="do not launch if the check finds an error")
    parser.add_argument("--once", action="store_true", help="read LOG once and exit instead of following it")
    parser.add_argument(
        "--webhook",
        metavar="URL",
        help="post the diagnosis there: as JSON to http(s), else to a service that the package apprise knows",
    )
    parser.add_argument("--server", metavar="URL", help="ask this service instead of the installed knowledge")
    parser.add_argument("--key", metavar="KEY_FILE", help="file with the key of that service")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto", help="language of the output")


def run(options: argparse.Namespace) -> int:
    from trainmedic.service.configuration import load_settings
    from trainmedic.ui import diagnosing
    from trainmedic.ui.watch.watcher import Watcher

    log, command = options.log, options.command
    if not log and not command:
        raise InvalidRequest("nothing to watch", hint="trainmedic watch LOG, or: trainmedic watch -- COMMAND")
    if log == STDIN and command:
        raise InvalidRequest("standard input belongs to the command", hint="trainmedic watch -- COMMAND")
    language = language_of(options.language)
    settings = load_settings()
    configuration = [*attachments(tuple(dict.fromkeys((*options.config, *files_of_command(command)))))]
    if command:
        configuration.append(Attachment(name=COMMAND, content=shlex.join(command)))
    text, errors = diagnosing.report(configuration, settings, language)
    sys.stderr.write(text)
    if errors and options.strict and command:
        sys.stderr.write("trainmedic: not launched (--strict)\n")
        return FINDINGS
    diagnose = diagnosing.source(partial(_load_advisor, settings), language, options.server, key_of(options))
    notify = notifier(options, settings)
    if not command:
        name = STDIN_NAME if log == STDIN else log
        return follow(Path(log), Watcher(name, configuration, diagnose, notify), once=options.once)
    return launch_and_watch(
        command, Watcher(log or OUTPUT, configuration, diagnose, notify), Path(log) if log else None
    )


def _load_advisor(settings: Settings) -> Advisor:
    from trainmedic.ui.app import build_advisor

    return build_advisor(settings, with_history=False)


def notifier(options: argparse.Namespace, settings: Settings) -> Notifier:
    from trainmedic.ui.watch import notify

    notifiers: list[Notifier] = [notify.to_terminal]
    if options.webhook:
        notifiers.append(notify.to_webhook(options.webhook))
    return notify.all_of(notifiers)


def follow(path: Path, watcher: Watcher, *, once: bool) -> int:
    """Follow a log until interrupted, or with ``once`` to its end. Standard input and pipes end by themselves."""
    from trainmedic.ui.watch.follow import GrowingFile, GrowingStream, is_stream

    if once and not path.exists() and str(path) != STDIN:
        raise NotFound(f"{path} is not a file", hint="without --once, trainmedic waits for it")
    stream = str(path) == STDIN or is_stream(path)
    file = GrowingStream(path) if stream else GrowingFile(path)
    try:
        while True:
            while text := file.read():
                watcher.add(text)
            if file.ended or (once and not stream):
                break
            guarded(watcher.look)
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        pass
    finally:
        file.close()
    guarded(watcher.end)
    return 0


def launch_and_watch(command: Sequence[str], watcher: Watcher, log: Path | None) -> int:
    """Run the command and follow its log, if given; its exit code, or 3 if it cannot be started."""
    from trainmedic.ui.watch import launch
    from trainmedic.ui.watch.follow import GrowingFile

    ended = Event()
    file = GrowingFile(log, from_end=True) if log else None

    def look() -> None:
        last = False
        while not last:
            last = ended.wait(POLL_S)
            while file is not None and (text := file.read()):
                watcher.add(text)
            guarded(watcher.look)

    poller = Thread(target=look, daemon=True)
    poller.start()
    try:
        code = launch.run(command, watcher.add)
    except OSError as error:
        sys.stderr.write(f"trainmedic: {command[0]} cannot be started: {error.strerror}\n")
        return FAILED
    finally:
        ended.set()
    try:
        poller.join()
        if file is not None:
            file.close()
        guarded(watcher.end)
    except KeyboardInterrupt:
        sys.stderr.write("trainmedic: the last diagnosis was interrupted\n")
    return code


def guarded(examine: Callable[[], None]) -> None:
    """Call it; a failure of ours is reported and never ends what is watched, nor changes its exit code."""
    try:
        examine()
    except Exception as error:
        sys.stderr.write(f"trainmedic: {type(error).__name__} while the log was read\n")
