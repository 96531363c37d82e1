"""The code in a wheel or sdist. Archives are not trusted: bounds hold for what is read, not what is said."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
from collections.abc import Callable, Collection, Mapping
from email import message_from_bytes
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename

from trainmedic.kb.archives import damage
from trainmedic.kb.errors import InvalidRequest, SourceError
from trainmedic.kb.sources.selection import (
    LARGEST,
    MEBIBYTE,
    UNSAFE,
    Budget,
    checked_name,
    in_project,
    in_wheel,
    suffix_of,
)
from trainmedic.kb.sources.tree import SourceTree, tree_of

LARGEST_ARCHIVE = 512 * MEBIBYTE
_MOST_UNPACKED = 2048 * MEBIBYTE
"""Of a compressed tar, which cannot be read in part."""
_MOST_MEMBERS = 100_000
_LARGEST_DIRECTORY = 400 * _MOST_MEMBERS
"""Bytes of the directory of a zip, all of which is read before its members can be counted."""
_END_OF_ZIP = 22 + 65_535
_LARGEST_HEADER = 4 * MEBIBYTE
_HEADER = "/PKG-INFO"


def archive_tree(path: Path, released: str | None = None) -> SourceTree:
    """The code in a wheel or sdist, named as the index names it. Raises `InvalidRequest` and `SourceError`."""
    package, version, is_wheel = file_release(path.name)
    if path.stat().st_size > LARGEST_ARCHIVE:
        raise SourceError(f"{path.name} is over {LARGEST_ARCHIVE // MEBIBYTE} MiB", hint="install it and read that")
    try:
        contents = _wheel(path) if is_wheel else _sdist(path)
    except damage() as error:
        raise SourceError(f"{path.name} is damaged ({error})", hint="get it again") from error
    if not contents:
        raise SourceError(f"{path.name} has no Python code", hint="name another release of it, or its checkout")
    return tree_of(package, version, "wheel" if is_wheel else "sdist", contents, released)


def archive_requirements(path: Path) -> tuple[str, ...]:
    """The requirements of the release in a wheel or sdist, each as its header says. Raises as `archive_tree`."""
    _, _, is_wheel = file_release(path.name)
    try:
        header = _wheel_header(path) if is_wheel else _sdist_header(path)
    except damage() as error:
        raise SourceError(f"{path.name} is damaged ({error})", hint="get it again") from error
    return tuple(map(str, message_from_bytes(header).get_all("Requires-Dist", ())))


def _wheel_header(path: Path) -> bytes:
    with _zip(path) as archive:
        members = _zip_members(archive)
        found = next((name for name in members if name.endswith(".dist-info/METADATA") and name.count("/") == 1), None)
        return _zip_bytes(archive, members[found], _LARGEST_HEADER) if found else b""


def _sdist_header(path: Path) -> bytes:
    return next(
        (text for name, text in _tar_texts(path).items() if name.count("/") == 1 and name.endswith(_HEADER)), b""
    )


def file_release(name: str) -> tuple[str, str, bool]:
    """Package, version and whether it is a wheel. Raises `InvalidRequest` for a name of something else."""
    try:
        if name.endswith(".whl"):
            package, version, *_ = parse_wheel_filename(name)
        else:
            package, version = parse_sdist_filename(name)
    except (InvalidWheelFilename, InvalidSdistFilename):
        raise InvalidRequest(
            f"{name!r} is not a wheel or sdist", hint="name-1.0.tar.gz, name-1.0-py3-none-any.whl"
        ) from None
    return package, str(version), name.endswith(".whl")


def _wheel(path: Path) -> dict[str, bytes]:
    with _zip(path) as archive:
        members = _zip_members(archive)
        return _zip_contents(archive, members, in_wheel(members))


def _sdist(path: Path) -> dict[str, bytes]:
    if path.name.endswith(".zip"):
        with _zip(path) as archive:
            members = _zip_members(archive)

            def read(name: str) -> bytes:
                return _zip_bytes(archive, members[name], _LARGEST_HEADER)

            return _zip_contents(archive, members, _project(members, read))
    return _tar_contents(path)


def _zip(path: Path) -> ZipFile:
    """An archive whose directory is small enough to be read."""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _END_OF_ZIP))
        tail = stream.read()
    at = tail.find(b"PK\x05\x06")
    while at >= 0:
        directory = int.from_bytes(tail[at + 12 : at + 16], "little")
        if directory > _LARGEST_DIRECTORY or tail[max(0, at - 20) :].startswith(b"PK\x06\x07"):
            raise SourceError("the directory of the archive is huge", hint=UNSAFE)
        at = tail.find(b"PK\x05\x06", at + 1)
    return ZipFile(path)


def _zip_members(archive: ZipFile) -> dict[str, ZipInfo]:
    infos = archive.infolist()
    if len(infos) > _MOST_MEMBERS:
        raise SourceError(f"the archive has {len(infos)} members", hint=UNSAFE)
    members: dict[str, ZipInfo] = {}
    for info in infos:
        name = checked_name(info.orig_filename)
        # A link is not followed: what it means is not in the archive, or is there under its own name.
        if info.is_dir() or stat.S_ISLNK(info.external_attr >> 16):
            continue
        if name in members and suffix_of(name) in LARGEST:
            raise SourceError(f"the archive has {name} twice", hint=UNSAFE)
        members[name] = info
    return members


def _zip_contents(archive: ZipFile, members: Mapping[str, ZipInfo], chosen: Mapping[str, str]) -> dict[str, bytes]:
    budget, contents = Budget(), {}
    for path, name in chosen.items():
        info, most = members[name], LARGEST[suffix_of(path)]
        if info.file_size <= most:
            contents[path] = _zip_bytes(archive, info, most)
            budget.take(len(contents[path]))
    return contents


def _zip_bytes(archive: ZipFile, info: ZipInfo, most: int) -> bytes:
    if info.flag_bits & 0x1:
        raise SourceError(f"{info.filename} is encrypted", hint=UNSAFE)
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise SourceError(f"{info.filename} is compressed with a method that wheels do not use", hint=UNSAFE)
    with archive.open(info) as stream:
        content = stream.read(most + 1)
    if len(content) > most or len(content) != info.file_size:
        raise SourceError(f"{info.filename} is larger than its header says", hint=UNSAFE)
    return content


def _project(names: Collection[str], read: Callable[[str], bytes]) -> dict[str, str]:
    """The code of an sdist, whose one top folder and ``top_level.txt`` say what is installed."""
    tops = {name.partition("/")[0] for name in names}
    top = f"{tops.pop()}/" if len(tops) == 1 else ""
    listed = sorted(name for name in names if name.endswith(".egg-info/top_level.txt"))
    roots = read(listed[0]).decode("utf-8", "replace").split() if listed else ()
    return in_project(names, top, frozenset(roots))


def _tar_contents(path: Path) -> dict[str, bytes]:
    kept = _tar_texts(path)
    return {path: kept[name] for path, name in _project(kept, kept.__getitem__).items()}


def _tar_texts(path: Path) -> dict[str, bytes]:
    """The code of a tar, and what says how it is installed."""
    kept: dict[str, bytes] = {}
    budget, count = Budget(), 0
    with gzip.open(path) as stream, tarfile.open(fileobj=(bounded := _Bounded(stream)), mode="r:") as archive:
        for info in archive:
            count += 1
            if count > _MOST_MEMBERS:
                raise SourceError(f"the archive has over {_MOST_MEMBERS} members", hint=UNSAFE)
            name = checked_name(info.name)
            if info.ischr() or info.isblk() or info.isfifo():
                raise SourceError(f"the archive has a device: {name}", hint=UNSAFE)
            most = LARGEST.get(suffix_of(name), 0)
            if name.endswith((".egg-info/top_level.txt", _HEADER)):
                most = _LARGEST_HEADER
            # Links are not followed, see above.
            if not info.isreg() or info.size > most:
                continue
            if name in kept:
                raise SourceError(f"the archive has {name} twice", hint=UNSAFE)
            member = archive.extractfile(info)
            content = member.read(most + 1) if member else b""
            if len(content) != info.size:
                raise SourceError(f"{name} is cut off", hint="get the file again")
            budget.take(len(content))
            kept[name] = content
        while bounded.read(_LARGEST_HEADER):  # to the end, where the checksum is
            pass
    return kept


class _Bounded(io.RawIOBase):
    """A stream of which only so much can be read: at once, because a header says how long it is, and in all."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= 2 * _LARGEST_HEADER:
            raise SourceError("a header of the archive claims a huge size", hint=UNSAFE)
        self._check(self._stream.tell() + size)
        return self._stream.read(size)

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        self._check(position)
        return self._stream.seek(position, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def _check(self, position: int) -> None:
        if position > _MOST_UNPACKED:
            raise SourceError(f"the archive unpacks to over {_MOST_UNPACKED // MEBIBYTE} MiB", hint=UNSAFE)
