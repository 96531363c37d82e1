"""The manifest of an index: what it was made of, and the hash of every file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.embedder import Embedder, Identity

FORMAT = 7
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


def read_manifest(folder: Path) -> Manifest:
    """The manifest of one index. Raises `StoreError` if it is missing or invalid."""
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        data["embedder"] = Identity(**data["embedder"])
        manifest = Manifest(**data)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StoreError(f"no index at {folder}", hint=REBUILD) from error
    if manifest.format != FORMAT:
        raise StoreError(f"the index at {folder} has another format", hint=REBUILD)
    return manifest


def manifest_or_none(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except StoreError:
        return None


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Write it with the hashes of the files that it does not know yet, replacing an earlier one at once."""
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    paths.pop(MANIFEST, None)
    manifest = replace(
        manifest, files={name: manifest.files.get(name) or _sha256(path) for name, path in paths.items()}
    )
    unfinished = folder.with_name(f".{folder.name}-{MANIFEST}")
    unfinished.write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
    os.replace(unfinished, folder / MANIFEST)
    return manifest


def verify(folder: Path, names: Collection[str] | None = None) -> Manifest:
    """Check files of an index, by default all, against its manifest. Raises `StoreError` naming one that differs."""
    manifest = read_manifest(folder)
    for name, digest in sorted(manifest.files.items()):
        if names is not None and name not in names:
            continue
        path = folder / name
        if not path.is_file():
            raise StoreError(f"{path} is missing", hint=REBUILD)
        if _sha256(path) != digest:
            raise StoreError(f"{path} is not what its manifest says", hint=REBUILD)
    return manifest


def verify_id(folder: Path, id: str) -> Manifest:
    """As `verify`, of the index with this id. Raises `StoreError` that says what is wrong with the folder."""
    if read_manifest(folder).id != id:
        raise StoreError(f"the index at {folder} was made for other pages or by other code", hint=REBUILD)
    return verify(folder)


def require_embedder(manifest: Manifest, embedder: Embedder) -> None:
    if manifest.embedder != embedder.identity:
        raise StoreError(
            f"the index was built with the embedder {manifest.embedder.name}, not with {embedder.identity.name}",
            hint=REBUILD,
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
