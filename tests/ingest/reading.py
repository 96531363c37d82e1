"""Write-ups read, cleaned and drafted in one step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from trainmedic.ingest.drafts.build import Related, Summary, none_related, write_drafts
from trainmedic.ingest.items import Document, Raw, masked
from trainmedic.ingest.read.blocks import blocks, canonical
from trainmedic.ingest.read.clean import document, frequent
from trainmedic.ingest.threads.facts import facts_of


def clean(raws: Sequence[Raw]) -> tuple[Document, ...]:
    """The articles of one batch, in order; nothing of a write-up that is boilerplate alone."""
    parts = [blocks(raw) for raw in raws]
    repeated = frequent(parts)
    cleaned = (
        document(raw.origin, raw.url or canonical(raw), part, repeated) for raw, part in zip(raws, parts, strict=True)
    )
    return tuple(article for article in cleaned if article.blocks)


def build(
    items: Iterable[Raw], folder: Path, related: Related = none_related, *, source: str = "", complete: bool = False
) -> Summary:
    read = [facts for item in items if (facts := facts_of(masked(item))) is not None]
    return write_drafts(read, folder, related, source=source, complete=complete)
