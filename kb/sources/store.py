"""Releases on disk. Each has a list of its files, and a chunk with those that no stored release of its package has.

A chunk is a row of blocks, each compressed for itself, so that a file is read without its neighbours. Chunks and lists
are written whole under another name first: whoever packs the same release at once does not disturb.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from trainmedic.kb.errors import NotFound, SourceError
from trainmedic.kb.sources.selection import canonical, parsed, release_key
from trainmedic.kb.sources.tree import Origin, SourceTree

_FORMAT = 1
_BLOCK = 96 * 1024
"""Bytes of a block before compression; a larger file is a block of its own. LZMA would save a tenth of the disk, and
take five times as long to unpack."""
LARGEST_BLOCK = 8 * 1024 * 1024
_LARGEST_LIST = 32 * 1024 * 1024
_DAMAGED = (OSError, ValueError, LookupError, TypeError, zlib.error)
IN_USE_S = 600.0
"""Seconds for which a file that was opened counts as in use."""
_AGAIN = ("wheel", "sdist")
"""Origins that the index has again."""


class Place(NamedTuple):
    """A file's text: its block, and where in the unpacked block it is."""

    chunk: str
    offset: int
    packed: int
    start: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """The list of a release: ``places`` by digest. ``digest`` is that of the tree."""

    package: str
    version: str
    origin: Origin
    digest: str
    released: str | None
    files: Mapping[str, str] = field(repr=False)
    places: Mapping[str, Place] = field(repr=False)

    @property
    def chunks(self) -> frozenset[str]:
        return frozenset(place.chunk for place in self.places.values())


class Store:
    """The releases below one folder, which need not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = Lock()

    def releases(self, package: str = "") -> tuple[Pack, ...]:
        """The stored releases in the order of their names and versions; of one package, if one is named."""
        found = [self.load(path) for path in self.folder.glob(f"{canonical(package) if package else '*'}/*.list")]
        return tuple(sorted(found, key=lambda pack: (pack.package, parsed(pack.version))))

    def open(self, package: str, version: str) -> SourceTree:
        """Raises `NotFound`, and `SourceError` if what is stored is damaged."""
        path = self._list(package, version)
        if not path.is_file():
            raise NotFound(f"{package} {version} is not stored")
        mark_used(path)
        return self.tree(self.load(path))

    def has(self, package: str, version: str) -> bool:
        """Whether a release is stored; if so, it is in use from now on."""
        return mark_used(self._list(package, version))

    def add(self, tree: SourceTree) -> SourceTree:
        """Store a tree, and return it as stored."""
        with self._lock:
            return self.tree(self._added(tree))

    def _added(self, tree: SourceTree) -> Pack:
        places: dict[str, Place] = {}
        for pack in self.releases(tree.package):
            places.update(pack.places)
        new = {digest: path for path, digest in tree.files.items() if digest not in places}
        places.update(self._write_chunk(tree.package, {digest: tree.read(path) for digest, path in new.items()}))
        pack = Pack(
            package=tree.package,
            version=tree.version,
            origin=tree.origin,
            digest=tree.digest,
            released=tree.released,
            files=tree.files,
            places={digest: places[digest] for digest in sorted(set(tree.files.values()))},
        )
        self.write(pack)
        return pack

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
                for gone in self._alone(path):
                    gone.unlink(missing_ok=True)
                    total -= files[gone].st_size if gone in files else 0
        return total <= most

    def _alone(self, path: Path) -> Iterator[Path]:
        """What can go with a file: with the list of a release that the index has, the chunks that no other list has."""
        if path.suffix == ".json":
            yield path
        elif path.suffix == ".list" and (pack := self.load(path)).origin in _AGAIN:
            yield path
            others = [each.chunks for each in self.releases(pack.package) if each.version != pack.version]
            yield from (self.chunk(pack.package, name) for name in pack.chunks.difference(*others))

    def write(self, pack: Pack) -> None:
        """Store the list of a release whose chunks are stored."""
        write_whole(self._list(pack.package, pack.version), packed_list(pack))

    def chunk(self, package: str, name: str) -> Path:
        """The file of a chunk."""
        return self.folder / canonical(package) / f"{name}.chunk"

    def tree(self, pack: Pack) -> SourceTree:
        """The tree of a stored release."""
        block = lru_cache(maxsize=8)(lambda chunk, offset, size: self._block(pack.package, chunk, offset, size))

        def read(path: str) -> bytes:
            digest = pack.files[path]
            place = pack.places[digest]
            content: bytes = block(place.chunk, place.offset, place.packed)[place.start : place.start + place.size]
            if hashlib.sha256(content).hexdigest() != digest:
                raise _damaged(self.chunk(pack.package, place.chunk))
            return content

        return SourceTree(
            package=pack.package,
            version=pack.version,
            origin=pack.origin,
            digest=pack.digest,
            released=pack.released,
            files=pack.files,
            read=read,
        )

    def load(self, path: Path) -> Pack:
        """The list in a file. Raises `SourceError`."""
        try:
            return unpacked_list(path.read_bytes())
        except _DAMAGED as error:
            raise _damaged(path) from error

    def _list(self, package: str, version: str) -> Path:
        return self.folder / canonical(package) / f"{release_key(version)}.list"

    def _write_chunk(self, package: str, contents: Mapping[str, bytes]) -> dict[str, Place]:
        """The new texts in blocks. Texts come in the order of their paths, so neighbours share words."""
        packed, placed = bytearray(), []
        for digests in _blocks(contents):
            data = zlib.compress(b"".join(contents[digest] for digest in digests))
            start = 0
            for digest in digests:
                placed.append((digest, len(packed), len(data), start, len(contents[digest])))
                start += len(contents[digest])
            packed += data
        if not placed:
            return {}
        name = hashlib.sha256(packed).hexdigest()[:32]
        write_whole(self.chunk(package, name), bytes(packed))
        return {digest: Place(name, *place) for digest, *place in placed}

    def _block(self, package: str, chunk: str, offset: int, size: int) -> bytes:
        path = self.chunk(package, chunk)
        try:
            with path.open("rb") as stream:
                stream.seek(offset)
                return unpacked(stream.read(size), LARGEST_BLOCK)
        except _DAMAGED as error:
            raise _damaged(path) from error


def mark_used(path: Path) -> bool:
    """Note that a file is in use; False if it is not there."""
    try:
        os.utime(path)
    except OSError:
        return path.is_file()
    return True


def unpacked(data: bytes, most: int) -> bytes:
    """Raises `ValueError` and `zlib.error`."""
    reader = zlib.decompressobj()
    content = reader.decompress(data, most)
    if not reader.eof or reader.unused_data:
        raise ValueError("what was packed is too large or cut off")
    return content


def packed_list(pack: Pack) -> bytes:
    """A list as written: places refer to chunks by number."""
    chunks = sorted(pack.chunks)
    digests = sorted(pack.places)
    number = {digest: index for index, digest in enumerate(digests)}
    data = {
        "format": _FORMAT,
        **{"package": pack.package, "version": pack.version, "origin": pack.origin},
        **{"digest": pack.digest, "released": pack.released},
        "chunks": chunks,
        "texts": [
            [digest, chunks.index(place.chunk), place.offset, place.packed, place.start, place.size]
            for digest, place in ((digest, pack.places[digest]) for digest in digests)
        ],
        "files": {path: number[digest] for path, digest in sorted(pack.files.items())},
    }
    return zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)


def unpacked_list(data: bytes) -> Pack:
    """The list that these bytes are, its fields unchecked. Raises `ValueError`, `LookupError` and the like."""
    listed: Any = json.loads(unpacked(data, _LARGEST_LIST))
    if listed["format"] != _FORMAT:
        raise ValueError("the list is of another version of trainmedic")
    chunks, digests = listed["chunks"], [text[0] for text in listed["texts"]]
    return Pack(
        package=listed["package"],
        version=listed["version"],
        origin=listed["origin"],
        digest=listed["digest"],
        released=listed["released"],
        files={path: digests[number] for path, number in listed["files"].items()},
        places={digest: Place(chunks[chunk], *numbers) for digest, chunk, *numbers in listed["texts"]},
    )


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


def _blocks(contents: Mapping[str, bytes]) -> Iterator[tuple[str, ...]]:
    block: list[str] = []
    size = 0
    for digest, content in contents.items():
        if block and size + len(content) > _BLOCK:
            yield tuple(block)
            block, size = [], 0
        block.append(digest)
        size += len(content)
    if block:
        yield tuple(block)


def _damaged(path: Path) -> SourceError:
    return SourceError(f"{path} is damaged", hint=f"delete the folder {path.parent}; what is in it is fetched again")
