"""One run of a source: items → facts, each read once → threads that are searched, and drafts for a reviewer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from trainmedic.ingest.drafts.build import Related, Summary, none_related, write_drafts
from trainmedic.ingest.items import Discussion, Item, Raw
from trainmedic.ingest.threads.local import Local
from trainmedic.ingest.threads.sync import Explain, SyncSummary, sync
from trainmedic.kb.model.case import Case
from trainmedic.kb.threads.store import ThreadStore

MOST_DRAFTS = 500
"""Write-ups of one run that become drafts: what a person can review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """Where drafts are written, and the published cases that they are held against. ``trackers``: a resolved
    issue becomes one too, as a team's own discussions always do."""

    folder: Path
    related: Related = none_related
    cases: tuple[Case, ...] = ()
    trackers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    threads: SyncSummary
    drafts: Summary


def run(
    source: str,
    items: Iterable[Item],
    store: ThreadStore,
    executor: Local,
    explain: Explain,
    drafting: Drafting,
    progress: Callable[[int], None] = lambda count: None,
    *,
    complete: bool = True,
) -> Outcome:
    """``complete``: the items are all that the source has, so whatever else is stored of it is gone."""
    wanted = 0

    def drafted(item: Raw | Discussion) -> bool:
        nonlocal wanted
        is_article = isinstance(item, Raw) or (item.resolved and (item.team or drafting.trackers))
        wanted += is_article
        return is_article and wanted <= MOST_DRAFTS

    synced = sync(source, items, store, executor, explain, progress, complete=complete, drafted=drafted)
    drafts = write_drafts(
        synced.facts,
        drafting.folder,
        drafting.related,
        source=source,
        cases=drafting.cases,
        complete=complete and not synced.summary.failures and wanted <= MOST_DRAFTS,
        gone=synced.deleted,
    )
    return Outcome(threads=synced.summary, drafts=drafts)
