"""Office documents, notebooks and tables to Markdown, by markitdown, of which the extra "ingest" has the parsers.

Their parsers are as good as their authors, and files come from anywhere: they run in a process with bounds, and what
a document unpacks to is measured first.
"""

from __future__ import annotations

import atexit
import io
import json
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from trainmedic.kb.archives import damage
from trainmedic.kb.confined import Confined, Exceeded

if TYPE_CHECKING:
    from markitdown import MarkItDown

SUFFIXES = (".pdf", ".docx", ".ipynb", ".csv")
PACKED = (".docx",)
"""Those that are zip archives of XML."""
LONGEST_OUTPUT = 8_000
"""Code points of one output of a notebook's cell: the end of a log says what failed."""
DEADLINE_S = 60.0
"""Seconds for one document; a PDF of 300 pages takes 40."""
MOST_UNPACKED = 20 * 1024 * 1024
MOST_XML = 2 * 1024 * 1024
"""Bytes of one XML part, which becomes a tree fifty times as large. A hundred pages of text are half of it."""
MOST_MEMBERS = 2_000


def markdown_of(data: bytes, suffix: str) -> str:
    """The text of a file as Markdown. Raises `ValueError` if it cannot be read as what its name says."""
    try:
        return _processes().run(_markdown_of, data, suffix)
    except Exceeded as error:
        raise ValueError(str(error)) from error


@cache
def _processes() -> Confined:
    confined = Confined(DEADLINE_S)
    atexit.register(confined.close)
    return confined


def _markdown_of(data: bytes, suffix: str) -> str:
    if suffix == ".ipynb":
        return "\n\n".join(_cells(data))
    if suffix in PACKED:
        _check_archive(data)
    from markitdown import MarkItDownException, StreamInfo

    try:
        text: str = _converter().convert_stream(io.BytesIO(data), stream_info=StreamInfo(extension=suffix)).markdown
    except (MarkItDownException, ImportError) as error:
        raise ValueError(f"no readable {suffix[1:]} ({type(error).__name__})") from error
    # A damaged file of a known kind comes back as the text of its bytes.
    if not text.strip() or text.startswith(("%PDF", "PK\x03\x04")):
        raise ValueError(f"no text in this {suffix[1:]}")
    return text


def _check_archive(data: bytes) -> None:
    """Raise `ValueError` if the members unpack to too much, whatever the archive claims, or declare entities."""
    left = MOST_UNPACKED
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > MOST_MEMBERS:
                raise ValueError(f"more than {MOST_MEMBERS} parts")
            for member in members:
                is_xml = PurePosixPath(member.filename).suffix.lower() in (".xml", ".rels")
                with archive.open(member) as stream:
                    content = stream.read(min(left, MOST_XML if is_xml else left) + 1)
                left -= len(content)
                if left < 0 or (is_xml and len(content) > MOST_XML):
                    raise ValueError(f"unpacks to too much ({member.filename})")
                # Without the zero bytes, UTF-16 reads like ASCII.
                if is_xml and any(mark in content.replace(b"\0", b"") for mark in (b"<!DOCTYPE", b"<!ENTITY")):
                    raise ValueError(f"declares entities ({member.filename})")
    except damage() as error:
        raise ValueError(f"cannot be unpacked: {error}") from error


@cache
def _converter() -> MarkItDown:
    from markitdown import MarkItDown

    return MarkItDown(enable_plugins=False)


def _cells(data: bytes) -> Iterator[str]:
    """The cells of a notebook with their text outputs, which hold the log and the traceback."""
    try:
        cells = json.loads(data)["cells"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("no readable notebook") from error
    for cell in cells if isinstance(cells, list) else ():
        if not isinstance(cell, dict):
            continue
        text = _joined(cell.get("source"))
        if cell.get("cell_type") != "code":
            yield text
            continue
        yield _fenced(text)
        for output in cell.get("outputs") or ():
            printed = _printed(output) if isinstance(output, dict) else ""
            if printed.strip():
                yield _fenced(printed[-LONGEST_OUTPUT:])


def _printed(output: dict[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    data = output.get("data")
    return _joined(output.get("text")) or (_joined(data.get("text/plain")) if isinstance(data, dict) else "")


def _joined(source: object) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def _fenced(text: str) -> str:
    return f"```\n{text.strip()}\n```" if text.strip() else ""
