"""Make, list, rotate and revoke API keys. A secret is shown once; the database has only its digest.

new NAME    a key of its own for a person or a program: --scope read (the knowledge and stored answers),
            ask (questions and checks too) or admin (everything)
list        all keys, without their secrets
rotate ID   a new secret for the same key, which keeps its conversations; the old one works for --grace
revoke ID   end a key; a running service notices within seconds
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmedic.service.access.keys import ApiKey

UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    new = actions.add_parser("new", help="create a key")
    new.add_argument("name", help="person or program that uses the key")
    new.add_argument("--scope", choices=("read", "ask", "admin"), default="ask")
    new.add_argument("--limit", default="", metavar="N/PERIOD", help="rate limit of this key, such as 600/minute")
    new.add_argument("--expires", type=period, metavar="PERIOD", help="validity, such as 90d (default: no expiry)")
    actions.add_parser("list", help="list all keys").add_argument("--json", action="store_true", help="print JSON")
    rotate = actions.add_parser("rotate", help="issue a new secret for a key")
    rotate.add_argument("id", help="id of the key, from list")
    rotate.add_argument(
        "--grace", type=period, default="24h", metavar="PERIOD", help="how long the old secret keeps working (24h)"
    )
    actions.add_parser("revoke", help="revoke a key").add_argument("id", help="id of the key")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.service.access.keys import KeyStore
    from trainmedic.service.access.limits import item_of
    from trainmedic.ui.app import database_of
    from trainmedic.ui.cli._service import open_journal, settings_of

    settings = settings_of(options)
    keys, note, now = KeyStore(database_of(settings)), open_journal(options), datetime.now(UTC)

    if options.action == "new":
        if options.limit:
            item_of("--limit", options.limit)
        expires = now + options.expires if options.expires else None
        key, secret = keys.new(options.name, options.scope, rate_limit=options.limit, expires_at=expires, now=now)
        note(f"key {options.action}", key.id)
        _show(key, secret)
    elif options.action == "rotate":
        key, secret = keys.rotate(options.id, options.grace, now)
        note(f"key {options.action}", key.id)
        _show(key, secret)
    elif options.action == "revoke":
        key = keys.revoke(options.id, now)
        note(f"key {options.action}", key.id)
        print(f"revoked {key.id}")
    elif options.json:
        print(to_json([_fields(key, now) for key in keys.all()], indent=2))
    else:
        for key in keys.all():
            expires = f"until {key.expires_at.date()}" if key.expires_at else ""
            line = f"{key.id}  {key.scope:5}  {key.state(now):7}  {key.created_at.date()}  {key.name}"
            print("  ".join(filter(None, (line, key.rate_limit, expires))))
    return 0


def period(text: str) -> timedelta:
    """A time such as 30m, 24h or 90d."""
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit() and unit in UNITS and len(number) < 6):
        raise argparse.ArgumentTypeError(f"{text!r} is not a period; write it like 30m, 24h or 90d")
    return timedelta(**{UNITS[unit]: int(number)})


def _show(key: ApiKey, secret: str) -> None:
    print(secret)
    print(f"key {key.id} ({key.name}, scope {key.scope}); its secret is not shown again", file=sys.stderr)


def _fields(key: ApiKey, now: datetime) -> dict[str, object]:
    times = {"created": key.created_at, "expires": key.expires_at, "revoked": key.revoked_at}
    return {
        "id": key.id,
        "name": key.name,
        "scope": key.scope,
        "state": key.state(now),
        "rate_limit": key.rate_limit,
        **{name: at.isoformat(timespec="seconds") if at else None for name, at in times.items()},
    }
