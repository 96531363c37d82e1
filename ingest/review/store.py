"""Decisions on disk: ``reviews/<id>.json`` below the folder of the drafts."""

from __future__ import annotations

import os
from pathlib import Path

from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.store import page_path, write_private
from trainmedic.ingest.review.state import Review
from trainmedic.kb.serialization import from_json, to_json

FOLDER = "reviews"


def load_review(folder: Path, draft_id: str) -> Review:
    """The last decision about a draft; that of a new draft if there is none or it cannot be read."""
    try:
        return from_json(Review, (folder / FOLDER / f"{draft_id}.json").read_bytes())
    except (OSError, ValueError):
        return Review()


def write_review(folder: Path, draft_id: str, review: Review) -> None:
    write_private(folder / FOLDER / f"{draft_id}.json", to_json(review, indent=1) + "\n")


def page_text(folder: Path, draft: Draft) -> str:
    """The draft's page as it is now; empty if it was removed or is no text."""
    path = page_path(folder, draft)
    try:
        return path.read_text(encoding="utf-8") if path is not None else ""
    except (OSError, UnicodeDecodeError):
        return ""


def write_page(folder: Path, draft: Draft, text: str) -> None:
    """Replace the draft's page, under the name that it has."""
    write_private(page_path(folder, draft) or folder / f"{draft.id}.md", text)


def write_text(path: Path, text: str) -> None:
    """Write a file for everybody atomically, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
