"""An index version as one file, for a machine without network: a zip archive with the checksum of every member."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store.embedder import Identity
from trainmedic.kb.store.index import BUILDING, adopt, locked
from trainmedic.kb.store.manifest import FORMAT, MANIFEST, Manifest, verify
from trainmedic.kb.store.sources import require_inside
from trainmedic.kb.store.words import READABLE_FOLDER

BUNDLE = "bundle.json"
BUNDLE_FORMAT = 1
_NOT_WHOLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What `zipfile` raises for damaged archives."""


def export(folder: Path, file: Path) -> Manifest:
    """Write a version into ``file``. Raises `StoreError` if it is damaged or the file cannot be written."""
    manifest = verify(folder)
    members = {**manifest.files, MANIFEST: _sha256((folder / MANIFEST).read_bytes())}
    head = {
        "bundle": BUNDLE_FORMAT,
        "format": manifest.format,
        "id": manifest.id,
        "embedder": asdict(manifest.embedder),
        "members": members,
    }
    unfinished = file.with_name(f".{file.name}.unfinished")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo(BUNDLE), json.dumps(head, indent=2), zipfile.ZIP_DEFLATED)
            for name in sorted(members):
                archive.writestr(zipfile.ZipInfo(name), (folder / name).read_bytes(), zipfile.ZIP_DEFLATED)
        os.replace(unfinished, file)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise StoreError(f"{file} cannot be written ({error.strerror or error})") from error
    return manifest


def import_(file: Path, root: Path, embedder: Identity) -> Manifest:
    """Add the version in ``file`` to those below ``root``; it is not switched to.

    Raises `StoreError` if the file is damaged, is of another format, or was made with another embedder.
    """
    try:
        with zipfile.ZipFile(file) as archive, locked(root):
            members = _members(archive, file, embedder)
            aside = Path(tempfile.mkdtemp(prefix=BUILDING, dir=root))
            aside.chmod(READABLE_FOLDER)
            try:
                for name, digest in members.items():
                    content = archive.read(name)
                    if _sha256(content) != digest:
                        raise StoreError(f"{file} is damaged: {name} has another checksum")
                    (aside / name).parent.mkdir(exist_ok=True)
                    (aside / name).write_bytes(content)
                manifest = adopt(aside, root)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    except _NOT_WHOLE as error:
        reason = str(error)
        raise StoreError(f"{file} is no index bundle, or is damaged ({reason})") from error
    except OSError as error:
        raise StoreError(f"{file} cannot be imported ({error.strerror or error})") from error
    return manifest


def _members(archive: zipfile.ZipFile, file: Path, embedder: Identity) -> dict[str, str]:
    """The checksums by the names of the members, if the bundle is for this installation and whole."""
    names = archive.namelist()
    if BUNDLE not in names:
        raise StoreError(f"{file} is no index bundle: it has no {BUNDLE}")
    try:
        head = json.loads(archive.read(BUNDLE))
        bundle, index_format, identity = head["bundle"], head["format"], Identity(**head["embedder"])
        members = {str(name): str(digest) for name, digest in head["members"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{file} is damaged: {BUNDLE} cannot be read") from error
    if (bundle, index_format) != (BUNDLE_FORMAT, FORMAT):
        raise StoreError(
            f"{file} has the format {bundle}.{index_format}, this release reads {BUNDLE_FORMAT}.{FORMAT}",
            hint="export it again with the same release of trainmedic",
        )
    if identity != embedder:
        raise StoreError(
            f"{file} was made with the embedder {identity.name} ({identity.digest}), "
            f"this installation uses {embedder.name} ({embedder.digest})",
            hint="set TRAINMEDIC_EMBEDDER to the embedder of the bundle",
        )
    for name in (*members, *names):
        require_inside(name, file)
    for problem, differing in (
        ("is missing", set(members) - set(names)),
        ("is unknown", set(names) - {BUNDLE, *members}),
    ):
        if differing:
            raise StoreError(f"{file} is damaged: {min(differing)} {problem}")
    return members


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
