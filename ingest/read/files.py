"""The files of a folder, of one file, or of a zip archive (an archive inside it is opened too), in a stable order."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from trainmedic.ingest.items import Failure
from trainmedic.kb.archives import damage

MAX_ARCHIVE = 10_000
"""Members of an archive that are read."""
MAX_NESTED = 512 * 1024 * 1024
"""Bytes of an archive inside an archive."""
MAX_LINE = 64 * 1024 * 1024
"""Bytes of a line: an issue with all that was said about it has some."""
# GB18030 decodes nearly anything, so it comes last.
ENCODINGS = ("utf-8-sig", "gb18030")


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file. ``origin`` is its path below the location, with the archive's name where it is in one; ``open`` opens
    it for reading."""

    origin: str
    open: Callable[[], IO[bytes]]

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.origin).suffix.lower()

    def head(self, most: int) -> bytes:
        """At most the first ``most`` bytes. Raises `OSError` if the file cannot be read or unpacked."""
        with self._opened() as stream:
            return stream.read(most)

    def content(self, most: int) -> bytes | Failure:
        """All bytes, or why not: more than ``most``, unreadable."""
        try:
            data = self.head(most + 1)
        except OSError as error:
            return self._unreadable(error)
        return too_large(self.origin, most) if len(data) > most else data

    def json(self, most: int) -> Any:
        """The value of its JSON, or a `Failure`."""
        data = self.content(most)
        return data if isinstance(data, Failure) else json_of(self.origin, data)

    def lines(self, most: int = MAX_LINE) -> Iterator[tuple[str, bytes] | Failure]:
        """Where each line is that is not blank, and its bytes: one line in memory at a time, however large the file.

        A line of more than ``most`` bytes is a `Failure`, and so is what ends the reading.
        """
        number = 0
        try:
            with self._opened() as stream:
                while line := stream.readline(most + 1):
                    number += 1
                    place = f"{self.origin}:{number}"
                    if len(line) > most:
                        yield too_large(place, most)
                        while line and not line.endswith(b"\n"):
                            line = stream.readline(most)
                    elif line.strip():
                        yield place, line
        except OSError as error:
            yield self._unreadable(error)

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        try:
            with self.open() as stream:
                yield stream
        except OSError:
            raise
        except damage() as error:
            raise OSError(f"cannot be unpacked ({error})") from error

    def _unreadable(self, error: OSError) -> Failure:
        return Failure(origin=self.origin, reason=error.strerror or str(error) or "cannot be read")


def files(location: str) -> Iterator[File | Failure]:
    """Every file below a folder, the members of an archive, or the one file; hidden ones are left out."""
    root = Path(location)
    if not root.exists():
        yield Failure(origin=location, reason="no such file or folder")
        return
    paths = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    if not paths:
        yield Failure(origin=location, reason="an empty folder")
    for path in paths:
        origin = path.name if root.is_file() else path.relative_to(root).as_posix()
        if _hidden(origin):
            continue  # .git and the like
        if path.suffix.lower() == ".zip":
            yield from _archive(path, origin, nested=True)
        else:
            yield File(origin=origin, open=partial(_binary, path))


def json_of(origin: str, data: bytes) -> Any:
    """The value of JSON, or a `Failure`."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        return Failure(origin=origin, reason=f"no JSON ({error})")


def text_of(data: bytes) -> str | None:
    """UTF-8, UTF-16 or GB18030 text; None if it is neither."""
    marked = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\0" in data[:4096] and not marked:
        return None
    for encoding in ("utf-16",) if marked else ENCODINGS:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def too_large(origin: str, most: int) -> Failure:
    return Failure(origin=origin, reason=f"larger than {most // 1024 // 1024} MiB")


def _binary(path: Path) -> IO[bytes]:
    return path.open("rb")


def _hidden(origin: str) -> bool:
    parts = PurePosixPath(origin).parts
    return any(part.startswith(".") or part == "__MACOSX" for part in parts)


def _archive(file: Path | io.BytesIO, origin: str, *, nested: bool) -> Iterator[File | Failure]:
    """Sizes are those that unpacking really gives, whatever the archive claims."""
    try:
        archive = zipfile.ZipFile(file)
        members = sorted((item for item in archive.infolist() if not item.is_dir()), key=lambda item: item.filename)
    except damage() as error:
        yield Failure(origin=origin, reason=f"no zip archive ({error})")
        return
    if len(members) > MAX_ARCHIVE:
        yield Failure(origin=origin, reason=f"more than {MAX_ARCHIVE} files; unpack it")
        return
    for item in members:
        name = f"{origin}/{item.filename}"
        if _hidden(item.filename):
            continue
        member = File(origin=name, open=partial(archive.open, item))
        if nested and member.suffix == ".zip":
            data = member.content(MAX_NESTED)
            yield from [data] if isinstance(data, Failure) else _archive(io.BytesIO(data), name, nested=False)
        else:
            yield member
