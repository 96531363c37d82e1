"""Office documents, notebooks and tables to Markdown, by markitdown, of which the extra "ingest" has the parsers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markitdown import MarkItDown

SUFFIXES = (".pdf", ".docx", ".ipynb", ".csv")
LONGEST_OUTPUT = 8_000
"""Code points of one output of a notebook's cell: the end of a log says what failed."""


def markdown_of(data: bytes, suffix: str) -> str:
    """The text of a file as Markdown. Raises `ValueError` if it cannot be read as what its name says."""
    if suffix == ".ipynb":
        return "\n\n".join(_cells(data))
    from markitdown import MarkItDownException, StreamInfo

    try:
        text: str = _converter().convert_stream(io.BytesIO(data), stream_info=StreamInfo(extension=suffix)).markdown
    except (MarkItDownException, ImportError) as error:
        raise ValueError(f"no readable {suffix[1:]} ({type(error).__name__})") from error
    # A damaged file of a known kind comes back as the text of its bytes.
    if not text.strip() or text.startswith(("%PDF", "PK\x03\x04")):
        raise ValueError(f"no text in this {suffix[1:]}")
    return text


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
