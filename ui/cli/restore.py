"""Bring a backup into an empty database and data folder.

The database may be another kind than that of the backup: this is also the way from SQLite to PostgreSQL. A backup of an
older release is migrated; one of a newer release is refused. Start the service afterwards.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="an archive written by trainmedic backup")


def run(options: argparse.Namespace) -> int:
    from trainmedic.ui.backup import restore
    from trainmedic.ui.cli._service import settings_of

    backup = restore(settings_of(options), options.file)
    rows = ", ".join(f"{count} {name}" for name, count in backup.rows.items()) or "no history"
    print(f"restored from {backup.made}: {rows}, {backup.drafts} drafts", file=sys.stderr)
    return 0
