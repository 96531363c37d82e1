"""Write the history, the drafts and the pinned version of the knowledge into one file, while the service runs.

The index of your own pages and the ingested threads are not in it: both are made of their sources again. Nor are the
settings and their secrets.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a zip archive, which only its owner can read")
    parser.add_argument("--json", action="store_true", help="print what it holds")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.backup import back_up
    from trainmedic.ui.cli._service import settings_of

    backup = back_up(settings_of(options), options.file)
    if options.json:
        sys.stdout.write(to_json(backup, indent=2) + "\n")
    else:
        rows = ", ".join(f"{count} {name}" for name, count in backup.rows.items()) or "no history"
        print(f"{options.file}: {rows}, {backup.drafts} drafts", file=sys.stderr)
    return 0
