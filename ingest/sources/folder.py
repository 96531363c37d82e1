"""A folder, one file or a zip archive: Markdown, text, saved HTML, PDF, DOCX, notebooks, tables, JSON of issues and
records, and exports of Slack. Each file is read as what it is, in the order of their paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from trainmedic.ingest.items import Discussion, Failure, Item, Options, Raw
from trainmedic.ingest.read.conversion import SUFFIXES as CONVERTED
from trainmedic.ingest.read.conversion import markdown_of
from trainmedic.ingest.read.files import files, text_of
from trainmedic.ingest.sources import records, slack

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


def read(options: Options) -> Iterator[Item]:
    """Everything below the location; a file of a kind that is not read is a `Failure`."""
    listed = list(files(options.location))
    exports = slack.exports(listed)
    for export in exports.values():
        yield from slack.threads(export)
    of_exports = {file.origin for export in exports.values() for file in export}
    for file in listed:
        if isinstance(file, Failure):
            yield file
        elif file.suffix in records.SUFFIXES:
            yield from records.read_file(file) if file.origin not in of_exports else ()
        else:
            data = file.content(most_bytes(file.suffix))
            yield data if isinstance(data, Failure) else read_bytes(data, file.origin)


def read_bytes(data: bytes, origin: str) -> Raw | Discussion | Failure:
    """One file by the end of its name; a chat that was copied as text is a discussion."""
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
    text = text_of(data)
    if text is None:
        binary = b"\0" in data[:4096]
        return Failure(origin=origin, reason="binary" if binary else "neither UTF-8, UTF-16 nor GB18030 text")
    thread = slack.copied(text, origin) if suffix in (".txt", ".md") else None
    return thread or Raw(origin=origin, content=text, format=FORMATS[suffix])


def most_bytes(suffix: str) -> int:
    return MAX_CONVERTED if suffix in CONVERTED else MAX_BYTES
