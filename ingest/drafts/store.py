"""Drafts on disk: ``<id>.md`` is the page for the reviewer, ``<id>.json`` beside it the `Draft`."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

from trainmedic.ingest.drafts.draft import Draft
from trainmedic.ingest.drafts.page import page_of
from trainmedic.kb.serialization import from_json, to_json

KEY_DIGITS = 8
"""Hexadecimal digits at the end of a draft's id, which a renamed page keeps."""


def load_drafts(folder: Path) -> tuple[Draft, ...]:
    """The drafts of a folder in the order of their ids; files that are not drafts are skipped."""
    return tuple(draft for path in sorted(folder.glob("*.json")) if (draft := load_draft(path)) is not None)


def load_draft(path: Path) -> Draft | None:
    """The draft in a JSON file; None if it is none."""
    try:
        return from_json(Draft, path.read_bytes())
    except (OSError, ValueError):
        return None


def write_draft(folder: Path, draft: Draft) -> Draft:
    """Write the page and the draft, each atomically, and return the draft with the digest of its page."""
    page = page_of(draft)
    written = replace(draft, page_digest=digest_of(page))
    write_private(folder / f"{draft.id}.md", page)
    write_record(folder, written)
    return written


def write_record(folder: Path, draft: Draft) -> None:
    """Write the draft alone, not the page, which a reviewer may have edited."""
    write_private(folder / f"{draft.id}.json", to_json(draft, indent=1) + "\n")


def page_path(folder: Path, draft: Draft) -> Path | None:
    """The draft's page, also under a name that a reviewer gave it; None if it is no longer in the folder."""
    path = folder / f"{draft.id}.md"
    return path if path.exists() else next(iter(sorted(folder.glob(f"*-{draft.id[-KEY_DIGITS:]}.md"))), None)


def page_text(folder: Path, draft: Draft) -> str:
    """The draft's page as it is now; empty if it was removed or is not text."""
    path = page_path(folder, draft)
    try:
        return path.read_text(encoding="utf-8") if path is not None else ""
    except (OSError, UnicodeDecodeError):
        return ""


def write_page(folder: Path, draft: Draft, text: str) -> None:
    """Replace the draft's page, under the name that it has."""
    write_private(page_path(folder, draft) or folder / f"{draft.id}.md", text)


def edited(folder: Path, draft: Draft) -> bool:
    """Whether a reviewer changed, renamed or removed the page since it was written."""
    path = folder / f"{draft.id}.md"
    return not path.exists() or digest_of(path.read_text(encoding="utf-8")) != draft.page_digest


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write_private(path: Path, text: str) -> None:
    """Write a file atomically, with its folder; both are the owner's alone, as they may hold a user's question."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)
