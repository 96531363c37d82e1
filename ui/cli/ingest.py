"""Turn write-ups into draft cases for a person to review.

Example: trainmedic ingest folder ~/saved-articles --out drafts
Drafts are case pages with `status: draft`: they are indexed and shown only when a reviewer publishes them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a kind of source (folder), or the path of a folder")
    parser.add_argument("location", metavar="LOCATION", nargs="?", help="the folder or file")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="folder of the drafts (drafts/ in the data folder)")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace) -> int:
    """Exit code 3 if nothing could be read."""
    from trainmedic.ingest.build import build
    from trainmedic.ingest.document import Document
    from trainmedic.ingest.sources import names, source
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.app import build_advisor
    from trainmedic.ui.cli._service import settings_of

    name, location = (options.source, options.location) if options.location else ("folder", options.source)
    if name not in names():
        from trainmedic.kb.errors import InvalidRequest

        raise InvalidRequest(f"no source {name!r}", hint=f"one of: {', '.join(names())}")
    settings = settings_of(options)
    advisor = build_advisor(settings, with_history=False)

    def related(document: Document) -> tuple[str, ...]:
        hits = advisor.search(f"{document.title}\n{document.text}", top_k=1)
        return tuple(hit.case_id for hit in hits)

    summary = build(source(name).read(location), options.out or settings.data_dir / "drafts", related)
    if options.json:
        sys.stdout.write(to_json(summary, indent=2) + "\n")
    else:
        for draft in summary.written:
            about = f"  (about {', '.join(draft.related)}?)" if draft.related else ""
            sys.stdout.write(f"{draft.origin} → {draft.id}{about}\n")
    for origin in summary.known:
        print(f"{origin}: already drafted", file=sys.stderr)
    for copy, original in summary.copies:
        print(f"{copy}: the same article as {original}", file=sys.stderr)
    for failure in summary.failures:
        print(f"{failure.origin}: {failure.reason}", file=sys.stderr)
    print(f"{len(summary.written)} drafts, {summary.removed} lines of boilerplate removed", file=sys.stderr)
    return 3 if summary.failures and not summary.written and not summary.known else 0
