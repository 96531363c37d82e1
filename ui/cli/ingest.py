"""Make your own write-ups and issue threads searchable, and turn write-ups into draft cases for a person to review.

Examples: trainmedic ingest ~/post-mortems          a folder, file or zip: documents, issues as JSON, Slack exports
          trainmedic ingest github OWNER/NAME       also: web ADDRESS
Threads are shown at once as similar reports, quoted and never more than reported; a run again reads what changed, and
forgets what is gone. Write-ups and the resolved threads of a chat become drafts: pages with `status: draft`, which
are shown only when a reviewer publishes them. Secrets and e-mail addresses are masked before anything is stored.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmedic.ingest.drafts.build import Related, Summary
    from trainmedic.ingest.drafts.draft import Draft
    from trainmedic.ingest.items import Document
    from trainmedic.ingest.threads.sync import SyncSummary
    from trainmedic.service.advisor import Advisor

RELATED = 3
"""Cases that are proposed for a draft."""
PROGRESS = 1_000
"""Items after which a long run says how far it is."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="folder, github or web (default: by location)")
    parser.add_argument("location", metavar="LOCATION", nargs="?", help="a path or an address")
    parser.add_argument("--out", type=Path, metavar="PATH", help="folder for the drafts (drafts/ in the data folder)")
    parser.add_argument(
        "--drafts",
        action="store_true",
        help="also draft pages from resolved issues (a team's own threads are always drafted)",
    )
    parser.add_argument(
        "--internal",
        action="store_true",
        help="for web pages: also follow redirects from public pages into your network",
    )
    parser.add_argument("--full", action="store_true", help="read everything again, not only what changed")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Exit code 3 if nothing could be read."""
    from trainmedic.ingest import pipeline
    from trainmedic.ingest.items import Options
    from trainmedic.ingest.sources import read
    from trainmedic.ingest.threads.local import Local
    from trainmedic.service.ranking.similar import mechanisms_near
    from trainmedic.ui import app, loading
    from trainmedic.ui.cli._service import settings_of
    from trainmedic.ui.desk import drafts_folder

    name, location = _source_of(options)
    settings = settings_of(options)
    advisor = app.build_advisor(settings, with_history=False)
    knowledge = advisor.knowledge
    store = loading.threads_of(settings, knowledge.embedder)
    key = source_name(name, location)
    since = "" if options.full else store.checkpoint(key)
    folder: Path = options.out or drafts_folder(settings)

    def progress(count: int) -> None:
        if count % PROGRESS == 0:
            print(f"{count} read", file=sys.stderr)

    outcome = pipeline.run(
        key,
        read(name, Options(location=location, since=since, internal=options.internal)),
        store,
        Local(knowledge.embedder.vectors),
        lambda vector: mechanisms_near(vector, knowledge),
        pipeline.Drafting(
            folder=folder,
            related=_related(advisor),
            cases=knowledge.cases.published,
            trackers=options.drafts,
        ),
        progress,
        complete=not since,
    )
    _write(outcome.threads, outcome.drafts, folder, as_json=options.json)
    threads = outcome.threads
    return 3 if threads.failures and not (threads.added or threads.changed or threads.unchanged) else 0


def _source_of(options: argparse.Namespace) -> tuple[str, str]:
    """The kind of the source, and its location."""
    from trainmedic.ingest.sources import names, recognised
    from trainmedic.kb.errors import InvalidRequest

    location = options.location or options.source
    name = options.source if options.location else recognised(location)
    if name not in names():
        raise InvalidRequest(f"no source {name!r}", hint=f"one of: {', '.join(names())}")
    return name, location


def _related(advisor: Advisor) -> Related:
    def related(document: Document) -> tuple[str, ...]:
        hits = advisor.search(f"{document.title}\n{document.text}", top_k=RELATED)
        return tuple(hit.case_id for hit in hits)

    return related


def _lines(draft: Draft) -> Iterator[str]:
    """The draft, and each claim that the knowledge contradicts with its line."""
    about = f"  (about {', '.join(draft.related)}?)" if draft.related else ""
    yield f"{draft.origin} → {draft.id}{about}"
    for mark in draft.marks:
        yield f"  line {mark.claim.first_line}: {mark.claim.text}"
        yield f"    {mark.reason(draft.language)}"


def _write(threads: SyncSummary, drafts: Summary, folder: Path, *, as_json: bool) -> None:
    from trainmedic.kb.serialization import to_json

    if as_json:
        sys.stdout.write(to_json({**_fields(drafts), "threads": threads}, indent=2) + "\n")
    else:
        for draft in (*drafts.written, *drafts.updated):
            sys.stdout.write("\n".join(_lines(draft)) + "\n")
    for origin in drafts.known:
        print(f"{origin}: already drafted", file=sys.stderr)
    for origin in drafts.changed:
        print(f"{origin}: changed, but its draft was edited, so that is left alone", file=sys.stderr)
    for origin in drafts.gone:
        print(f"{origin}: gone; its draft remains", file=sys.stderr)
    for copy, original in drafts.copies:
        print(f"{copy}: the same article as {original}", file=sys.stderr)
    for failure in threads.failures:
        print(f"{failure.origin}: {failure.reason}", file=sys.stderr)
    counts = f"{threads.added} new, {threads.changed} changed, {threads.unchanged} unchanged, {threads.removed} gone"
    print(f"threads: {counts}", file=sys.stderr)
    counts = (
        f"{len(drafts.written)} new, {len(drafts.updated)} updated; lines left out as boilerplate: {drafts.removed}"
    )
    print(f"drafts: {counts}", file=sys.stderr)
    if drafts.written or drafts.updated:
        print(f"drafts are in {folder}; trainmedic review list shows them", file=sys.stderr)


def source_name(kind: str, location: str) -> str:
    """The name under which the threads of a source are stored: its kind and place, without the place's folders."""
    path = Path(location)
    whole = str(path.resolve()) if path.exists() else location
    digest = hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:6]
    return f"{kind}:{Path(whole).name}-{digest}"


def _fields(summary: Summary) -> dict[str, object]:
    return {field.name: getattr(summary, field.name) for field in fields(summary)}
