"""A source to drafts in a folder: read, clean, drop copies, draft, write. The only part of ingest that writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from trainmedic.ingest.clean import clean
from trainmedic.ingest.dedupe import distinct
from trainmedic.ingest.document import Document, Failure, Raw
from trainmedic.ingest.draft import Draft, draft

Related = Callable[[Document], tuple[str, ...]]
"""Finds the published cases that an article is probably about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What one run did. ``known`` are articles whose draft was there already; they are left as they are."""

    written: tuple[Draft, ...]
    known: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]
    failures: tuple[Failure, ...]
    removed: int


def none_related(document: Document) -> tuple[str, ...]:
    """For callers without an index."""
    return ()


def build(found: Iterable[Raw | Failure], folder: Path, related: Related = none_related) -> Summary:
    """Write a draft page for each new article into ``folder``.

    A reviewer may have worked on a draft since: a page that is there already is never overwritten.
    """
    items = list(found)
    raws = [item for item in items if isinstance(item, Raw)]
    failures = [item for item in items if isinstance(item, Failure)]
    cleaned = clean(raws)
    left = {document.origin for document in cleaned}
    failures += [Failure(origin=raw.origin, reason="nothing but boilerplate") for raw in raws if raw.origin not in left]
    documents, copies = distinct(cleaned)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Draft] = []
    known: list[str] = []
    for document in documents:
        made = draft(document, related(document))
        # The digest at the end of the id survives a reviewer's renaming of the rest.
        if any(folder.glob(f"*-{made.digest[:8]}.md")):
            known.append(document.origin)
            continue
        write(folder / f"{made.id}.md", made.page)
        written.append(made)
    return Summary(
        written=tuple(written),
        known=tuple(known),
        copies=copies,
        failures=tuple(failures),
        removed=sum(len(document.removed) for document in documents),
    )


def write(path: Path, text: str) -> None:
    """Write a page whole or not at all."""
    aside = path.with_suffix(".tmp")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)
