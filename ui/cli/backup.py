"""Write the history, the drafts and the pinned version of the knowledge into one file, while the service runs.

Those of every team too. The index of your own pages and the ingested threads are not in it: both are made of their
sources again. Nor are the settings and their secrets.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmedic.service.settings import Settings
    from trainmedic.ui.backup import Backup, Contents


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a zip archive, which only its owner can read; -: standard output"
    )
    parser.add_argument("--json", action="store_true", help="print what it holds (with -: to standard error)")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.backup import back_up
    from trainmedic.ui.cli._service import settings_of

    settings = settings_of(options)
    streamed = str(options.file) == "-"
    backup = _output_backup(settings) if streamed else back_up(settings, options.file)
    if options.json:
        (sys.stderr if streamed else sys.stdout).write(to_json(backup, indent=2) + "\n")
    else:
        print(described("standard output" if streamed else str(options.file), backup), file=sys.stderr)
    return 0


def _output_backup(settings: Settings) -> Backup:
    from trainmedic.kb.errors import StoreError
    from trainmedic.ui.backup import write_backup

    try:
        with open(sys.stdout.fileno(), "wb", closefd=False) as stream:
            return write_backup(settings, stream)
    except OSError as error:  # a reader that is gone is a failure here: it has half a backup
        raise StoreError(f"standard output cannot be written ({error.strerror or error})") from error


def described(head: str, backup: Backup) -> str:
    """A line for everybody's part and one for each team's."""
    parts = {head: backup, **{f"team {name}": contents for name, contents in backup.teams.items()}}
    return "\n".join(f"{name}: {_counts(contents)}" for name, contents in parts.items())


def _counts(contents: Contents) -> str:
    rows = ", ".join(f"{count} {name}" for name, count in contents.rows.items()) or "no history"
    return f"{rows}, {contents.drafts} drafts"
