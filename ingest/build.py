"""From a source to a folder of drafts: read, clean, drop copies, draft, write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from trainmedic.ingest.clean import clean
from trainmedic.ingest.dedupe import distinct
from trainmedic.ingest.document import Document, Failure, Raw, masked_raw
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.drafting import UNAIDED, Means, draft_of
from trainmedic.ingest.drafts.store import edited, load_drafts, write_draft, write_record
from trainmedic.ingest.personal import without_persons
from trainmedic.ingest.threads import digest_of, key_of

Related = Callable[[Document], tuple[str, ...]]
"""Finds the published cases that an article is probably about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What one run did.

    ``known`` are the origins of articles whose drafts are up to date; of ``changed`` and ``gone`` articles a reviewer
    has edited the page, so it was left alone, or the page remains although the article is gone.
    """

    written: tuple[Draft, ...]
    updated: tuple[Draft, ...]
    known: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]
    failures: tuple[Failure, ...]
    removed: int


def none_related(document: Document) -> tuple[str, ...]:
    return ()


def build(
    items: Iterable[Raw | Failure],
    folder: Path,
    related: Related = none_related,
    *,
    source: str = "",
    means: Means = UNAIDED,
    complete: bool = False,
    gone: Collection[str] = (),
) -> Summary:
    """Write a draft for each new article into ``folder``, and anew for a changed one unless a reviewer edited its page.

    ``complete``: the items are all that ``source`` has, so a draft of another article of it is of one that is gone;
    ``gone`` are the keys of those that are known to be.
    """
    items = list(items)
    raws = [masked_raw(item) for item in items if isinstance(item, Raw)]
    cleaned = tuple(without_persons(document) for document in clean(raws))
    documents, copies = distinct(cleaned)
    failures = (*(item for item in items if isinstance(item, Failure)), *_empty(raws, cleaned))
    raw_of = {raw.origin: raw for raw in raws}
    drafts = load_drafts(folder)
    by_key = {draft.key: draft for draft in drafts if draft.source == source}
    digests = {draft.digest for draft in drafts}
    known: list[str] = []
    changed: list[str] = []
    written: list[Draft] = []
    updated: list[Draft] = []
    for document in documents:
        raw = raw_of[document.origin]
        key, digest = key_of(raw), digest_of(raw)
        before = by_key.get(key)
        # The same article under another name or from another source is the same draft.
        if digest in digests if before is None else before.digest == digest and not _was_gone(before):
            known.append(document.origin)
        elif before is not None and edited(folder, before):
            same = before.digest == digest
            write_record(folder, replace(before, source_state="current" if same else "changed"))
            (known if same else changed).append(document.origin)
        else:
            draft = draft_of(document, means, source=source, key=key, digest=digest, related=related(document))
            draft = write_draft(folder, replace(draft, id=before.id) if before else draft)
            (updated if before else written).append(draft)
    if complete and not failures:
        gone = {*gone, *(by_key.keys() - {key_of(raw) for raw in raws})}
    lost = _mark_gone(folder, [draft for draft in by_key.values() if draft.key in gone])
    return Summary(
        written=tuple(written),
        updated=tuple(updated),
        known=tuple(known),
        changed=tuple(changed),
        gone=lost,
        copies=copies,
        failures=failures,
        removed=sum(len(document.removed) for document in documents),
    )


def _empty(raws: Iterable[Raw], cleaned: Iterable[Document]) -> tuple[Failure, ...]:
    with_text = {document.origin for document in cleaned}
    return tuple(
        Failure(origin=raw.origin, reason="nothing but boilerplate") for raw in raws if raw.origin not in with_text
    )


def _mark_gone(folder: Path, drafts: Iterable[Draft]) -> tuple[str, ...]:
    """The origins of those that were not gone before."""
    lost = [draft for draft in drafts if not _was_gone(draft)]
    for draft in lost:
        write_record(folder, replace(draft, source_state="gone"))
    return tuple(draft.origin for draft in lost)


def _was_gone(draft: Draft) -> bool:
    """Whether the article was gone at the last run: if it is read again, it is back."""
    return draft.source_state == "gone"
