"""Releases on disk: one zip for each, with its files and what is known of it.

Each is written whole under another name first: whoever stores the same release at once does not disturb.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from threading import Lock
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from trainmedic.kb.errors import NotFound, SourceError
from trainmedic.kb.sources.selection import canonical, parsed, release_key
from trainmedic.kb.sources.tree import SourceTree

ABOUT = "release.json"
"""The member that says which release it is, and the digest of each file."""
_FORMAT = 2
DAMAGED = (
    *(BadZipFile, zlib.error, EOFError, OSError, ValueError, LookupError, TypeError, AttributeError),
    *(NotImplementedError, RuntimeError),
)
"""What reading a zip that is none, or is not as we write it, raises."""
IN_USE_S = 600.0
"""What was opened so long ago may be being read."""
_AGAIN = ("wheel", "sdist")
"""Origins that the index has again."""


class Store:
    """The releases below one folder, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()

    def releases(self, package: str = "") -> tuple[SourceTree, ...]:
        """The stored releases in the order of their names and versions; of one package, if one is named."""
        found = [_load(path) for path in self.folder.glob(f"{canonical(package) if package else '*'}/*.zip")]
        return tuple(sorted(found, key=lambda tree: (tree.package, parsed(tree.version))))

    def open(self, package: str, version: str) -> SourceTree:
        """Raises `NotFound`, and `SourceError` if what is stored is damaged."""
        path = self.path(package, version)
        if not path.is_file():
            raise NotFound(f"{package} {version} is not stored")
        mark_used(path)
        return _load(path)

    def has(self, package: str, version: str) -> bool:
        """Whether a release is stored; if so, it is in use from now on."""
        return mark_used(self.path(package, version))

    def add(self, tree: SourceTree) -> SourceTree:
        """Store a tree, and return it as stored."""
        about = {name: getattr(tree, name) for name in ("package", "version", "origin", "digest", "released")}
        members = {ABOUT: json.dumps({"format": _FORMAT, **about, "files": dict(tree.files)}).encode()}
        buffer = BytesIO()
        with ZipFile(buffer, "w") as archive:
            for name in (ABOUT, *tree.paths()):
                # Without the time, so that the same tree is the same file.
                archive.writestr(ZipInfo(name), members.get(name) or tree.read(name), ZIP_DEFLATED)
        path = self.path(tree.package, tree.version)
        write_whole(path, buffer.getvalue())
        return _load(path)

    def trim(self, most: int) -> bool:
        """Delete what can be had again, the least recently used first, until ``most`` bytes are left; whether they are.

        That is releases of the index, and what was derived. Nothing goes that may be in use.
        """
        with self._lock:
            files = {path: path.stat() for path in self.folder.glob("*/[!.]*")}
            total = sum(stat.st_size for stat in files.values())
            for path in sorted(files, key=lambda path: files[path].st_mtime):
                if total <= most or files[path].st_mtime > time.time() - IN_USE_S:
                    break
                if path.suffix == ".json" or (path.suffix == ".zip" and _load(path).origin in _AGAIN):
                    path.unlink(missing_ok=True)
                    total -= files[path].st_size
        return total <= most

    def path(self, package: str, version: str) -> Path:
        """The file of a release."""
        return self.folder / canonical(package) / f"{release_key(version)}.zip"


def _load(path: Path) -> SourceTree:
    """The release in a file, whose texts are read when they are asked for. Raises `SourceError`."""
    try:
        with ZipFile(path) as archive:
            about = json.loads(archive.read(ABOUT))
        if about.pop("format") != _FORMAT:
            raise ValueError("it is of another version of trainmedic")
        files: Mapping[str, str] = about["files"]
        opened = cache(lambda: ZipFile(path))

        def read(name: str) -> bytes:
            try:
                content = opened().read(name)
            except DAMAGED as error:
                raise _damaged(path) from error
            if hashlib.sha256(content).hexdigest() != files[name]:
                raise _damaged(path)
            return content

        return SourceTree(**about, read=read)
    except DAMAGED as error:
        raise _damaged(path) from error


def mark_used(path: Path) -> bool:
    """Note that a file is in use; False if it is not there."""
    try:
        os.utime(path)
    except OSError:
        return path.is_file()
    return True


def write_whole(path: Path, content: bytes) -> None:
    """Write a file such that others see all of it or nothing. Raises `SourceError`."""
    from tempfile import NamedTemporaryFile  # takes as long to load as all that reads

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".new", delete=False) as stream:
            try:
                stream.write(content)
                stream.close()
                os.replace(stream.name, path)
            except BaseException:
                Path(stream.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise SourceError(
            f"{path} cannot be written ({error.strerror})", hint="free space there, or set data_dir"
        ) from error


def _damaged(path: Path) -> SourceError:
    return SourceError(f"{path} is damaged", hint=f"delete the folder {path.parent}; what is in it is fetched again")
