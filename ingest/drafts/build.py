"""From what write-ups say to a folder of drafts: drop what a site repeats and copies, draft, write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainmedic.ingest.drafts.copies import distinct
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.drafting import draft_of
from trainmedic.ingest.drafts.store import edited, load_drafts, write_draft, write_record
from trainmedic.ingest.items import Document
from trainmedic.ingest.personal import without_persons
from trainmedic.ingest.read.clean import document, frequent
from trainmedic.ingest.threads.facts import Facts
from trainmedic.kb.model.case import Case

Related = Callable[[Document], tuple[str, ...]]
"""Finds the published cases that an article is probably about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The counts of one run.

    ``known`` are the origins of articles whose drafts are up to date; of ``changed`` and ``gone`` articles a reviewer
    has edited the page, so it was left alone, or the page remains although the article is gone. ``removed`` counts the
    lines of boilerplate.
    """

    written: tuple[Draft, ...]
    updated: tuple[Draft, ...]
    known: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]
    removed: int


def none_related(document: Document) -> tuple[str, ...]:
    return ()


def write_drafts(
    read: Sequence[Facts],
    folder: Path,
    related: Related = none_related,
    *,
    source: str = "",
    cases: Sequence[Case] = (),
    complete: bool = False,
    gone: Collection[str] = (),
) -> Summary:
    """Write a draft into ``folder`` for each article that is new or changed, unless a reviewer edited its page.

    ``complete``: these are all articles of ``source``, so a draft of another article of it is of one that is gone;
    ``gone`` are the keys of those that are known to be.
    """
    articles = _without_repeated(read)
    kept, copies = distinct([facts.document for facts in articles])
    facts_by_origin = {facts.document.origin: facts for facts in articles}
    drafts = load_drafts(folder)
    by_key = {draft.key: draft for draft in drafts if draft.source == source}
    digests = {draft.digest for draft in drafts}
    known: list[str] = []
    changed: list[str] = []
    written: list[Draft] = []
    updated: list[Draft] = []
    for facts in (facts_by_origin[article.origin] for article in kept):
        article, digest = facts.document, facts.digest
        before = by_key.get(facts.key)
        # The same article under another name or from another source is the same draft.
        if digest in digests if before is None else before.digest == digest and not _was_gone(before):
            known.append(article.origin)
        elif before is not None and edited(folder, before):
            same = before.digest == digest
            write_record(folder, replace(before, source_state="current" if same else "changed"))
            (known if same else changed).append(article.origin)
        else:
            draft = draft_of(
                article,
                facts.evidence,
                source=source,
                key=facts.key,
                digest=digest,
                related=related(article),
                cases=cases,
            )
            draft = write_draft(folder, replace(draft, id=before.id) if before else draft)
            (updated if before else written).append(draft)
    if complete:
        gone = {*gone, *(by_key.keys() - {facts.key for facts in read})}
    lost = _mark_gone(folder, [draft for draft in by_key.values() if draft.key in gone])
    return Summary(
        written=tuple(written),
        updated=tuple(updated),
        known=tuple(known),
        changed=tuple(changed),
        gone=lost,
        copies=copies,
        removed=sum(len(article.removed) for article in kept),
    )


def _without_repeated(read: Sequence[Facts]) -> list[Facts]:
    """The articles without the lines that many of them have; one that has some is read again without them."""
    repeated = frequent([facts.parts for facts in read])
    articles = []
    for facts in read:
        if any(block.text in repeated for block in facts.parts):
            before = facts.document
            article = without_persons(document(before.origin, before.url, facts.parts, repeated))
            facts = replace(facts, document=article, evidence=None)
        if facts.document.blocks:
            articles.append(facts)
    return articles


def _mark_gone(folder: Path, drafts: Iterable[Draft]) -> tuple[str, ...]:
    """The origins of those that were not gone before."""
    lost = [draft for draft in drafts if not _was_gone(draft)]
    for draft in lost:
        write_record(folder, replace(draft, source_state="gone"))
    return tuple(draft.origin for draft in lost)


def _was_gone(draft: Draft) -> bool:
    """Whether the article was gone at the last run: if it is read again, it is back."""
    return draft.source_state == "gone"
