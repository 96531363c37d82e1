"""``trainmedic kb update``: what came since of the packages that are known."""

from __future__ import annotations

import argparse
import sys
from datetime import date
from pathlib import Path

from trainmedic.kb.errors import InvalidRequest
from trainmedic.ui.cli._input import sources


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("package", nargs="*", metavar="PACKAGE", help="only these packages")
    parser.add_argument("--since", default="", metavar="DATE", help="compare with the last release before this day")
    parser.add_argument("--write", action="store_true", help="add the releases to the files of this checkout")
    parser.add_argument("--json", action="store_true", help="print JSON, with everything that the Markdown shortens")
    checkout = "a git checkout of a package: defects are drafted from its commits, and releases read that no index has"
    parser.add_argument("--checkout", action="append", default=[], type=Path, metavar="FOLDER", help=checkout)
    parser.add_argument(
        "--drafts", type=Path, metavar="FILE", help="add the drafts of defects to this file (JSON lines)"
    )


def run(options: argparse.Namespace) -> int:
    from trainmedic.ingest.update.harvest import added
    from trainmedic.ingest.update.releases import Published, chosen
    from trainmedic.ingest.update.report import markdown
    from trainmedic.ingest.update.update import update
    from trainmedic.kb.serialization import to_json

    published = Published(sources(), options.checkout)
    updates = []
    for package in chosen(options.package):
        print(package, file=sys.stderr)
        found = update(published, package, since=_day(options.since), write=options.write)
        if options.drafts:
            added(options.drafts, found.drafts)
        updates.append(found)
    sys.stdout.write(to_json(updates) + "\n" if options.json else markdown(updates))
    return 0


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise InvalidRequest(f"{text!r} is not a day", hint="such as 2026-09-30") from None
