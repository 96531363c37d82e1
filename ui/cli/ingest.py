"""Turn write-ups into draft cases for a person to review.

Example: trainmedic ingest folder ~/saved-articles --out drafts
Drafts are case pages with `status: draft`: they are indexed and shown only when a reviewer publishes them.

`trainmedic ingest defects CHECKOUT… --out FILE` harvests fix commits from the history of packages' git checkouts as
candidates for kb/defects, one JSON object a line, with the releases that have the defect. What kb/defects or the file
has already is skipped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="a kind of source (folder, defects), or the path of a folder")
    parser.add_argument("location", metavar="LOCATION", nargs="*", help="the folder or file; of defects the checkouts")
    parser.add_argument("--out", type=Path, metavar="PATH", help="folder of the drafts (drafts/ in the data folder)")
    parser.add_argument("--since", default="", metavar="DATE", help="of defects: the earliest commit, as 2024-06-01")
    parser.add_argument("--json", action="store_true")


def run(options: argparse.Namespace) -> int:
    """Exit code 3 if nothing could be read."""
    if options.source == "defects":
        return _defects(options)
    from trainmedic.ingest.build import build
    from trainmedic.ingest.document import Document
    from trainmedic.ingest.sources import names, source
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.app import build_advisor
    from trainmedic.ui.cli._service import settings_of

    if len(options.location) > 1:
        raise InvalidRequest("name one folder or file")
    name, location = (options.source, options.location[0]) if options.location else ("folder", options.source)
    if name not in names():
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


def _defects(options: argparse.Namespace) -> int:
    from trainmedic.ingest.defects.harvest import harvest
    from trainmedic.ingest.defects.history import History
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.kb.pages.defect import defects_of

    if not options.location or options.out is None:
        raise InvalidRequest("name the checkouts, and the file of the candidates", hint="--out FILE.jsonl")
    for checkout in options.location:
        if not Path(checkout).is_dir():
            raise InvalidRequest(f"{checkout} is no folder")
        history = History(Path(checkout))
        if not history.releases:
            raise InvalidRequest(f"{checkout} has no releases", hint="a full git checkout with its tags is needed")
        count = sum(1 for _ in harvest(history, options.out, defects_of([history.package]), options.since))
        print(f"{history.package}: {count} new candidates", file=sys.stderr)
    return 0
