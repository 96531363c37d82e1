"""The manifest of an index: what it was made of, and the hash of every file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.embedder import Identity

FORMAT = 7
SAME_VECTORS = (4, 5, 6, FORMAT)
"""Formats with the same files of texts and vectors."""
MANIFEST = "manifest.json"
REBUILD = "trainmedic index build"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The inputs and files of an index. ``files`` maps name → sha256; ``code`` is the `code_version` that made it."""

    id: str
    format: int
    embedder: Identity
    kb_version: str
    ruleset_version: str
    glossary_version: str
    chunks: int
    cases: int
    files: Mapping[str, str]
    code: str = ""


def read_manifest(folder: Path, formats: Collection[int] = (FORMAT,)) -> Manifest:
    """The manifest of one index. Raises `StoreError` if it is missing or invalid."""
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        data["embedder"] = Identity(**data["embedder"])
        manifest = Manifest(**data)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StoreError(f"no index at {folder}", hint=REBUILD) from error
    if manifest.format not in formats:
        raise StoreError(f"the index at {folder} has another format", hint=REBUILD)
    return manifest


def verify(folder: Path, names: Collection[str] | None = None, formats: Collection[int] = (FORMAT,)) -> Manifest:
    """Check files of an index, by default all, against its manifest. Raises `StoreError` naming one that differs."""
    manifest = read_manifest(folder, formats)
    for name, digest in sorted(manifest.files.items()):
        if names is not None and name not in names:
            continue
        path = folder / name
        if not path.is_file():
            raise StoreError(f"{path} is missing", hint=REBUILD)
        if sha256_of(path) != digest:
            raise StoreError(f"{path} is not what its manifest says", hint=REBUILD)
    return manifest


def manifest_or_none(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except StoreError:
        return None


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
