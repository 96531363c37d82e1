"""Archives (zip, tar, compressed tar) → their files, as attachments. Bounded, and nothing is written anywhere.

An archive is not trusted: what counts is what was read of it, not what it says. Links, devices and archives within it
are not followed.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO

from trainmedic.kb.archives import damage
from trainmedic.kb.mask import mask
from trainmedic.kb.model.evidence import InputReceipt, Problem
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.text.compressed import kind_of, start_of, unpacked
from trainmedic.kb.parse.text.condense import ROOM, bounded

MOST_MEMBERS = 2_000
"""Members that are looked at; those read are as many as attachments may be."""
MOST_UNPACKED = 256 * 1024 * 1024
MOST_KEPT = 8 * 1024 * 1024
"""Bytes up to which a member is kept as it is until it is parsed."""
LARGEST_DIRECTORY = 4 * 1024 * 1024
_PIECE = 256 * 1024
_ZIP, _END_OF_ZIP = b"PK\x03\x04", b"PK\x05\x06"
_TAR_MARK = slice(257, 262)
_OFFICE = (b"[Content_Types].xml", b"mimetype", b"META-INF/")
_LEFT_ALONE = ("__MACOSX/", ".DS_Store", ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".npz", ".parquet")
"""Leftovers of file managers; weights, optimizer states and data."""
_HARMLESS = str.maketrans("`<>[]", "'‹›()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The files of an archive in its order, and the receipt of the archive itself."""

    files: tuple[Attachment, ...]
    receipt: InputReceipt
    problems: tuple[Problem, ...]


def is_archive(content: bytes) -> bool:
    if content.startswith(_ZIP):
        return not any(content[30:60].startswith(first) for first in _OFFICE)
    return _is_tar(content) or (bool(kind_of(content)) and _is_tar(start_of(content, 512) or b""))


def open_archive(name: str, content: bytes, most: int) -> Contents:
    """The first ``most`` files. Never raises: what cannot be read is among the problems."""
    files: list[Attachment] = []
    problems: list[Problem] = []
    names: Counter[str] = Counter()
    budget, seen = MOST_UNPACKED, 0
    try:
        for path, stream in _zip(content) if content.startswith(_ZIP) else _tar(content):
            seen += 1
            if path.endswith(_LEFT_ALONE) or path.startswith(_LEFT_ALONE) or stream is None:
                continue
            if len(files) == most or budget <= 0 or seen > MOST_MEMBERS:
                message = f"{name} was not read as a whole: {path} and what follows are too many or too large"
                problems.append(Problem(code="truncated", message=message))
                break
            reader = _Metered(stream, budget)
            read, left_out = bounded(reader, MOST_KEPT, ROOM)
            budget -= reader.count
            if kind_of(read) == "" and is_archive(read):
                problems.append(Problem(code="archive", message=f"{name}/{path} is an archive within one: not read"))
            else:
                names[path] += 1
                again = f" ({names[path]})" if names[path] > 1 else ""
                files.append(Attachment(name=f"{name}/{path}{again}", content=read, left_out=left_out))
    except damage() as error:
        message = f"{name} could not be read further: {str(error)[:80] or type(error).__name__}"
        problems.append(Problem(code="archive", message=message))
    receipt = InputReceipt(
        name=name,
        kind="archive",
        bytes=len(content),
        lines=0,
        read=bool(files),
        truncated=bool(problems),
        note=f"{len(files)} of {seen} files",
    )
    return Contents(files=tuple(files), receipt=receipt, problems=tuple(problems))


class _Metered:
    """The pieces of a stream, at most ``most`` bytes; ``count`` is how many there were."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream = stream
        self._most = most
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in iter(partial(self._stream.read, _PIECE), b""):
            self.count += len(piece)
            yield piece
            if self.count > self._most:
                return


def _zip(content: bytes) -> Iterator[tuple[str, IO[bytes] | None]]:
    from zipfile import ZipFile  # takes its time to load, and few inputs are archives

    end = content.rfind(_END_OF_ZIP)
    if end >= 0 and int.from_bytes(content[end + 12 : end + 16], "little") > LARGEST_DIRECTORY:
        raise ValueError("its directory is huge")
    with ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            is_link = info.external_attr >> 28 == 0o12
            if is_link:
                yield _shown(info.filename), None
            else:
                with archive.open(info) as stream:
                    yield _shown(info.filename), stream


def _tar(content: bytes) -> Iterator[tuple[str, IO[bytes] | None]]:
    import tarfile

    whole = (content[at : at + _PIECE] for at in range(0, len(content), _PIECE))
    source = unpacked(content) if kind_of(content) else whole
    with tarfile.open(fileobj=_Stream(source), mode="r|") as archive:
        for info in archive:
            if not info.isdir():
                yield _shown(info.name), archive.extractfile(info) if info.isreg() else None


class _Stream(io.RawIOBase):
    """What a tar is read from, at most `MOST_UNPACKED` bytes of it, whatever its headers say."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""
        self._count = 0

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
            self._count += len(piece)
            if self._count > MOST_UNPACKED:
                raise ValueError(f"over {MOST_UNPACKED // 1024**2} MiB")
        content, self._rest = self._rest[:size], self._rest[size:]
        return content


def _is_tar(content: bytes) -> bool:
    return content[_TAR_MARK] == b"ustar"


def _shown(path: str) -> str:
    """A member's path as part of a name, which Markdown shows: printable, and without roots, parents and secrets."""
    plain = "".join(character if character.isprintable() else " " for character in path.replace("\\", "/"))
    path = "/".join(part for part in plain.split("/") if part not in ("", ".", ".."))
    return mask(path[-200:].translate(_HARMLESS)).text or "file"
