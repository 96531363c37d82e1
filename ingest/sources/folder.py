"""A folder (or one file, or a zip archive of them) of Markdown, text, saved HTML, PDF, DOCX, notebooks and tables, read
in the order of their paths."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from trainmedic.ingest.conversion import SUFFIXES as CONVERTED
from trainmedic.ingest.conversion import markdown_of
from trainmedic.ingest.document import Failure, Raw

FORMATS = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
}
MAX_BYTES = 5 * 1024 * 1024
MAX_CONVERTED = 20 * 1024 * 1024
"""Bytes of a file that is mostly pictures."""
MAX_ARCHIVE = 10_000
"""Members of an archive that are read."""
# GB18030 decodes nearly anything, so it comes last.
ENCODINGS = ("utf-8-sig", "gb18030")


def read(location: str) -> Iterator[Raw | Failure]:
    """Every write-up below the folder (or the one file) at ``location``; a file of another kind is a `Failure`."""
    root = Path(location)
    if not root.exists():
        yield Failure(origin=location, reason="no such file or folder")
        return
    paths = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    if not paths:
        yield Failure(origin=location, reason="an empty folder")
    for path in paths:
        origin = path.name if root.is_file() else path.relative_to(root).as_posix()
        if any(part.startswith(".") for part in PurePosixPath(origin).parts):
            continue  # .git and the like
        if path.suffix.lower() == ".zip":
            yield from _archive(path, origin)
        else:
            yield _file(path, origin)


def _file(path: Path, origin: str) -> Raw | Failure:
    try:
        size, most = path.stat().st_size, _most(path.suffix.lower())
        return _too_large(origin, most) if size > most else read_bytes(path.read_bytes(), origin)
    except OSError as error:
        return Failure(origin=origin, reason=error.strerror or "cannot be read")


def _archive(path: Path, origin: str) -> Iterator[Raw | Failure]:
    """The members of a zip archive; one inside it is not opened. Sizes are those that unpacking really gives."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted((item for item in archive.infolist() if not item.is_dir()), key=lambda item: item.filename)
            if len(members) > MAX_ARCHIVE:
                yield Failure(origin=origin, reason=f"more than {MAX_ARCHIVE} files; unpack it")
                return
            for item in members:
                name = f"{origin}/{item.filename}"
                most = _most(PurePosixPath(item.filename).suffix.lower())
                try:
                    with archive.open(item) as stream:
                        data = stream.read(most + 1)
                except (RuntimeError, NotImplementedError, zipfile.BadZipFile, EOFError, OSError) as error:
                    yield Failure(origin=name, reason=f"cannot be unpacked ({error})")
                    continue
                yield _too_large(name, most) if len(data) > most else read_bytes(data, name)
    except (zipfile.BadZipFile, OSError) as error:
        yield Failure(origin=origin, reason=f"no zip archive ({error})")


def read_bytes(data: bytes, origin: str) -> Raw | Failure:
    """One file by the end of its name."""
    suffix = PurePosixPath(origin).suffix.lower()
    if not data.strip():
        return Failure(origin=origin, reason="empty")
    if suffix in CONVERTED:
        try:
            return Raw(origin=origin, content=markdown_of(data, suffix), format="markdown")
        except ValueError as error:
            return Failure(origin=origin, reason=str(error))
    if suffix not in FORMATS:
        return Failure(origin=origin, reason=f"files of this kind are not read: {suffix or 'no suffix'}")
    if b"\0" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Failure(origin=origin, reason="binary")
    for encoding in ("utf-16",) if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ENCODINGS:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return Raw(origin=origin, content=text, format=FORMATS[suffix])
    return Failure(origin=origin, reason="neither UTF-8, UTF-16 nor GB18030 text")


def _most(suffix: str) -> int:
    return MAX_CONVERTED if suffix in CONVERTED else MAX_BYTES


def _too_large(origin: str, most: int) -> Failure:
    return Failure(origin=origin, reason=f"larger than {most // 1024 // 1024} MiB")
