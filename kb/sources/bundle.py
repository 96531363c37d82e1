"""Many releases in one file, for machines without internet. A bundle is not trusted: its texts must have the digests
that its lists state, and its lists are checked like names in an archive."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

from trainmedic.kb.archives import damage
from trainmedic.kb.errors import InvalidRequest, NotFound, SourceError, TrainmedicError
from trainmedic.kb.lazy import regex
from trainmedic.kb.sources.selection import LARGEST, MOST_BYTES, MOST_FILES, canonical, checked_name, parsed
from trainmedic.kb.sources.store import (
    LARGEST_BLOCK,
    Pack,
    Place,
    Store,
    packed_list,
    unpacked,
    unpacked_list,
    write_whole,
)
from trainmedic.kb.sources.tree import tree_digest

_LARGEST_LIST = 8 * 1024 * 1024
_MOST_RELEASES = 5_000
_DIGEST = regex(r"[0-9a-f]{32}|[0-9a-f]{64}")
_AGAIN = "copy it again, or export it again: trainmedic kb sources export"


def export_bundle(store: Store, target: Path, packages: Iterable[str] = ()) -> int:
    """Write the stored releases (of some packages, if any are named) to one file; how many there are."""
    wanted = tuple(map(canonical, packages)) or ("",)
    packs = [pack for package in wanted for pack in store.releases(package)]
    if not packs:
        raise NotFound("no release of these is stored", hint="trainmedic kb sources fetch PACKAGE==VERSION")
    unfinished = target.with_name(f".{target.name}.new")
    try:
        with ZipFile(unfinished, "w", ZIP_STORED) as archive:
            for package, name in sorted({(pack.package, name) for pack in packs for name in pack.chunks}):
                archive.write(store.chunk(package, name), f"{package}/{name}.chunk")
            for pack in packs:
                archive.writestr(f"{pack.package}/{pack.version}.list", packed_list(pack))
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise SourceError(f"{target} cannot be written ({error.strerror})", hint="name a file elsewhere") from error
    return len(packs)


def import_bundle(store: Store, source: Path) -> int:
    """Store the releases of a bundle; how many there are. Raises `InvalidRequest` and `SourceError`."""
    if not source.is_file():
        raise InvalidRequest(f"{source} is not a file", hint="name what trainmedic kb sources export wrote")
    damaged: tuple[type[Exception], ...] = (*damage(), TypeError, AttributeError)
    try:
        with ZipFile(source) as archive:
            names = sorted(name for name in archive.namelist() if name.endswith(".list"))
            if not names or len(names) > _MOST_RELEASES:
                raise ValueError(f"{len(names)} releases")
            for name in names:
                _import(store, archive, name)
    except TrainmedicError:
        raise
    except damaged as error:
        raise SourceError(f"{source} is not a bundle, or is damaged ({error})", hint=_AGAIN) from error
    return len(names)


def _import(store: Store, archive: ZipFile, name: str) -> None:
    pack = _checked(unpacked_list(_member(archive, name, _LARGEST_LIST)))
    chunks = {chunk: _member(archive, f"{pack.package}/{chunk}.chunk", MOST_BYTES) for chunk in sorted(pack.chunks)}
    _check_texts(pack, chunks)
    for chunk, content in chunks.items():
        if hashlib.sha256(content).hexdigest()[:32] != chunk:
            raise ValueError(f"{chunk} has different content")
        write_whole(store.chunk(pack.package, chunk), content)
    store.write(pack)


def _member(archive: ZipFile, name: str, most: int) -> bytes:
    info = archive.getinfo(name)
    if info.file_size > most or info.compress_type != ZIP_STORED:
        raise ValueError(f"{name} is too large or compressed")
    return archive.read(info)


def _checked(pack: Pack) -> Pack:
    """The list with every field of the form that we write."""
    for path in pack.files:
        suffix = checked_name(path).rpartition(".")[2]
        if f".{suffix}" not in LARGEST:
            raise ValueError(f"{path!r:.80} is not code")
    numbers = [number for place in pack.places.values() for number in place[1:]]
    if not all(type(number) is int and 0 <= number <= MOST_BYTES for number in numbers):
        raise ValueError("a place is out of bounds")
    if not all(map(_DIGEST.fullmatch, (*pack.places, *pack.chunks, *pack.files.values()))):
        raise ValueError("a digest is malformed")
    size = sum(pack.places[digest].size for digest in pack.files.values())
    if size > MOST_BYTES or len(pack.files) > MOST_FILES or tree_digest(pack.files) != pack.digest:
        raise ValueError("a list is too long, or not of its files")
    return replace(
        pack,
        package=canonical(pack.package),
        version=str(parsed(pack.version)),
        origin="bundle",
        released=str(pack.released)[:10] if pack.released else None,
        files=dict(sorted(pack.files.items())),
    )


def _check_texts(pack: Pack, chunks: Mapping[str, bytes]) -> None:
    block, content, read = ("", -1, -1), b"", 0
    for digest, place in sorted(pack.places.items(), key=_in_chunk):
        if block != (place.chunk, place.offset, place.packed):
            block = (place.chunk, place.offset, place.packed)
            content = unpacked(chunks[place.chunk][place.offset : place.offset + place.packed], LARGEST_BLOCK)
            read += len(content)
            if read > 4 * MOST_BYTES:
                raise ValueError("its blocks are too large")
        if hashlib.sha256(content[place.start : place.start + place.size]).hexdigest() != digest:
            raise ValueError("a text does not match its list")


def _in_chunk(item: tuple[str, Place]) -> Place:
    return item[1]
