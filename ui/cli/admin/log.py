"""Who did what with this service, and when: the audit log. It holds ids, routes and results, and no text of anyone."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from trainmedic.ui.cli.admin.key import period


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--who", default="", metavar="ID", help="only entries of this key or user, such as key:3f9a1c27b804"
    )
    parser.add_argument("--since", type=period, metavar="PERIOD", help="only entries of the last 30m, 24h or 7d")
    parser.add_argument("--top", type=int, default=100, metavar="N", help="number of latest entries to show (100)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")


def run(options: argparse.Namespace) -> int:
    import json
    from dataclasses import asdict

    from trainmedic.service.access.audit_log import AuditLog
    from trainmedic.ui.app import database_of
    from trainmedic.ui.cli._service import settings_of

    since = datetime.now(UTC) - options.since if options.since else None
    listed = AuditLog(database_of(settings_of(options))).entries(options.who, since, options.top)
    for item in listed:
        at, entry = item.at.isoformat(timespec="seconds"), item.entry
        if options.json:
            print(json.dumps({"at": at, **asdict(entry)}, ensure_ascii=False))
        else:
            who = f"{entry.who or '-'} {entry.name}".strip()
            print("  ".join(filter(None, (at, entry.result, entry.action, entry.target, who, entry.address))))
    if not listed:
        print("nothing yet", file=sys.stderr)
    return 0
