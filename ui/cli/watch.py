"""Watch a run: follow its log, or launch it, and tell of a failure when it appears.

Examples: trainmedic watch train.log --config train.sh --config ds.json
          trainmedic watch --config env.txt --slack '#runs' -- accelerate launch train.py --config cfg.yaml

The configuration is checked before the launch. A diagnosis is told once, with its step: on standard error, and to
Slack or a webhook where one is named. With a command, its output passes through and its exit code is returned.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Literal

from trainmedic.kb.errors import InvalidRequest, InvalidSettings, NotFound
from trainmedic.kb.model.place import Attachment
from trainmedic.ui.cli import FAILED, FINDINGS
from trainmedic.ui.cli._input import attachments, language_of

if TYPE_CHECKING:
    from trainmedic.service.settings import Settings
    from trainmedic.ui.watch.tell import Tell
    from trainmedic.ui.watch.watcher import Watcher

BETWEEN_S = 0.5
COMMAND, OUTPUT = "command", "output.log"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.usage = "trainmedic watch [LOG] [options] [-- COMMAND ...]"
    parser.set_defaults(command=[])
    parser.add_argument("log", nargs="?", metavar="LOG", help="the log to follow; with a command, both are watched")
    parser.add_argument("--config", action="append", default=[], metavar="FILE", help="what belongs to the run")
    parser.add_argument("--strict", action="store_true", help="do not launch where the check finds an error")
    parser.add_argument("--once", action="store_true", help="read LOG to its end and leave, instead of following it")
    parser.add_argument("--slack", metavar="CHANNEL", help="tell this channel too (SLACK_BOT_TOKEN)")
    parser.add_argument("--webhook", metavar="URL", help="post the diagnosis as JSON")
    parser.add_argument("--server", metavar="URL", help="let this service answer; else the knowledge installed here")
    parser.add_argument("--key", metavar="KEY_FILE", help="file with the key of that service")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto")


def run(options: argparse.Namespace) -> int:
    """Check, then watch until the log's reader is interrupted or the command ends."""
    from trainmedic.service.settings import load_settings
    from trainmedic.ui.watch import asking, launch
    from trainmedic.ui.watch.watcher import Watcher

    log, command = options.log, options.command
    if not log and not command:
        raise InvalidRequest("nothing to watch", hint="trainmedic watch LOG, or: trainmedic watch -- COMMAND")
    wanted = language_of(options.language, os.environ.get("LC_ALL") or os.environ.get("LANG", ""))
    language: Literal["en", "zh"] = "zh" if wanted == "zh" else "en"
    settings = load_settings()
    beside = [*attachments(tuple(dict.fromkeys((*options.config, *launch.configs(command)))))]
    if command:
        beside.append(Attachment(name=COMMAND, content=shlex.join(command)))
    text, errors = asking.report(beside, settings, language)
    sys.stderr.write(text)
    if errors and options.strict and command:
        sys.stderr.write("trainmedic: not launched (--strict)\n")
        return FINDINGS
    ask = asking.here(settings, language)
    if options.server:
        key = Path(options.key).read_text(encoding="utf-8").strip() if options.key else None
        ask = asking.first_of(asking.at(options.server, key, language), ask)
    tell = told_to(options, settings)
    if not command:
        return followed(Path(log), Watcher(log, beside, ask, tell), once=options.once)
    return launched(command, Watcher(log or OUTPUT, beside, ask, tell), Path(log) if log else None)


def told_to(options: argparse.Namespace, settings: Settings) -> Tell:
    """Everybody who is told."""
    from trainmedic.ui.watch import tell

    tells: list[Tell] = [tell.to_terminal]
    if options.slack:
        token = settings.slack_bot_token.get_secret_value()
        if not token:
            raise InvalidSettings("--slack needs a bot token", hint="set SLACK_BOT_TOKEN")
        url, public = settings.slack_api_url, settings.public_url
        tells.append(tell.to_slack(options.slack, token, url, public_url=public, buttons=bool(options.server)))
    if options.webhook:
        tells.append(tell.to_webhook(options.webhook))

    return tell.all_of(tells)


def followed(path: Path, watcher: Watcher, *, once: bool) -> int:
    """Follow a log until interrupted; with ``once`` to its end."""
    from trainmedic.ui.watch.follow import Followed

    if once and not path.is_file():
        raise NotFound(f"{path} is no file", hint="without --once it is waited for")
    file = Followed(path)
    try:
        while True:
            while text := file.read():
                watcher.add(text)
            if once:
                break
            watcher.look()
            time.sleep(BETWEEN_S)
    except KeyboardInterrupt:
        pass
    finally:
        file.close()
    watcher.end()
    return 0


def launched(command: Sequence[str], watcher: Watcher, log: Path | None) -> int:
    """Run the command, and follow its log where it writes one; its own exit code, or 3 where it cannot be started."""
    from trainmedic.ui.watch import launch
    from trainmedic.ui.watch.follow import Followed

    over = Event()
    file = Followed(log, from_end=True) if log else None

    def look() -> None:
        ended = False
        while not ended:
            ended = over.wait(BETWEEN_S)
            while file is not None and (text := file.read()):
                watcher.add(text)
            watcher.look()

    looking = Thread(target=look, daemon=True)
    looking.start()
    try:
        code = launch.run(command, watcher.add)
    except OSError as error:
        sys.stderr.write(f"trainmedic: {command[0]} cannot be started: {error.strerror}\n")
        return FAILED
    finally:
        over.set()
        looking.join()
        if file is not None:
            file.close()
    watcher.end()
    return code
