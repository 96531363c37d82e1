"""Where a piece of pasted text stands. Every fact that trainmedic uses carries one of these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of one pasted text.

    Lines and columns are 1-based and count code points; ``end_column`` is exclusive.
    ``attachment`` is the attachment's name, or None for the question itself.
    ``text`` is the stretch as pasted (after masking; masking keeps every length and line break).
    ``default`` is True where nothing was pasted and a catalogue default was used: the span then
    points at the start of the command or file that the default belongs to.
    """

    attachment: str | None
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    default: bool = False

    @property
    def order(self) -> tuple[str, int, int, int, int]:
        """A sort key: by attachment, then position."""
        return (self.attachment or "", self.line, self.column, self.end_line, self.end_column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One pasted text: the question (``name`` None) or an attachment, decoded and masked.

    Lines are separated by ``\\n`` only (CRLF and CR were normalised, line numbers unchanged).
    Lines that were left out of a long one are blank in ``text``; ``truncated``: some of it was not even read.
    """

    name: str | None
    text: str
    byte_count: int
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file as it arrived: its name and its undecoded or decoded content.

    ``left_out``: so many lines of it are blank here, because a first pass over a long one did not keep them.
    """

    name: str
    content: str | bytes
    left_out: int = 0
