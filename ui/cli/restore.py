"""Bring a backup into an empty database and data folder, and those of its teams.

The database may be another kind than that of the backup: this is also the way from SQLite to PostgreSQL. A backup of an
older release is migrated; one of a newer release is refused. Start the service afterwards.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmedic.service.settings import Settings
    from trainmedic.ui.backup import Backup


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="an archive written by trainmedic backup; -: standard input"
    )


def run(options: argparse.Namespace) -> int:
    from trainmedic.ui.backup import restore
    from trainmedic.ui.cli._service import settings_of
    from trainmedic.ui.cli.backup import described

    settings = settings_of(options)
    backup = _restore_input(settings) if str(options.file) == "-" else restore(settings, options.file)
    print(described(f"restored from {backup.made}", backup), file=sys.stderr)
    return 0


def _restore_input(settings: Settings) -> Backup:
    from trainmedic.kb.errors import StoreError
    from trainmedic.ui.backup import restore_stream

    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        # The archive is read from its end, and a container's /tmp may be small.
        with tempfile.TemporaryFile(dir=settings.data_dir) as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            return restore_stream(settings, copy, "standard input")
    except OSError as error:
        raise StoreError(f"standard input cannot be restored ({error.strerror or error})") from error
