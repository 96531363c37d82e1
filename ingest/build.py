"""From a source to a folder of drafts: read, clean, drop copies, draft, write."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from trainmedic.ingest.clean import clean
from trainmedic.ingest.dedupe import distinct
from trainmedic.ingest.document import Document, Failure, Raw, masked_raw
from trainmedic.ingest.draft import Draft, draft

Related = Callable[[Document], tuple[str, ...]]
"""Finds the published cases that an article is probably about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What one run did. ``known`` are articles that had a draft already; it is left alone."""

    written: tuple[Draft, ...]
    known: tuple[str, ...]
    copies: tuple[tuple[str, str], ...]
    failures: tuple[Failure, ...]
    removed: int


def none_related(document: Document) -> tuple[str, ...]:
    return ()


def build(source: Iterable[Raw | Failure], folder: Path, related: Related = none_related) -> Summary:
    """Write a draft page for each new article into ``folder``.

    An existing draft is never overwritten: a reviewer may have worked on it.
    """
    items = list(source)
    raws = [masked_raw(item) for item in items if isinstance(item, Raw)]
    failures = [item for item in items if isinstance(item, Failure)]
    cleaned = clean(raws)
    with_text = {document.origin for document in cleaned}
    failures += [
        Failure(origin=raw.origin, reason="nothing but boilerplate") for raw in raws if raw.origin not in with_text
    ]
    documents, copies = distinct(cleaned)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Draft] = []
    known: list[str] = []
    for document in documents:
        page = draft(document, related(document))
        # The digest at the end of the id survives a reviewer's renaming of the rest.
        if any(folder.glob(f"*-{page.digest[:8]}.md")):
            known.append(document.origin)
            continue
        write(folder / f"{page.id}.md", page.page)
        written.append(page)
    return Summary(
        written=tuple(written),
        known=tuple(known),
        copies=copies,
        failures=tuple(failures),
        removed=sum(len(document.removed) for document in documents),
    )


def write(path: Path, text: str) -> None:
    """Write atomically."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
