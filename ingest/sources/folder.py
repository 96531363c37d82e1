"""A folder of Markdown, text and saved HTML files, read in the order of their paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
# GB18030 decodes nearly anything, so it comes last.
ENCODINGS = ("utf-8-sig", "gb18030")


def read(location: str) -> Iterator[Raw | Failure]:
    """Every write-up below the folder (or the one file) at ``location``."""
    root = Path(location)
    if not root.exists():
        yield Failure(origin=location, reason="no such file or folder")
        return
    paths = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    for path in paths:
        if path.suffix.lower() in FORMATS:
            yield read_file(path, path.name if root.is_file() else path.relative_to(root).as_posix())


def read_file(path: Path, origin: str) -> Raw | Failure:
    try:
        if path.stat().st_size > MAX_BYTES:
            return Failure(origin=origin, reason=f"larger than {MAX_BYTES // 1024 // 1024} MiB")
        data = path.read_bytes()
    except OSError as error:
        return Failure(origin=origin, reason=error.strerror or "cannot be read")
    if not data.strip():
        return Failure(origin=origin, reason="empty")
    if b"\0" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Failure(origin=origin, reason="binary")
    for encoding in ("utf-16",) if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ENCODINGS:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return Raw(origin=origin, content=text, format=FORMATS[path.suffix.lower()])
    return Failure(origin=origin, reason="neither UTF-8, UTF-16 nor GB18030 text")
