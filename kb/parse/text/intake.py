"""Input (bytes or text, any size, any encoding) → masked text with the user's line numbers. Never raises."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from trainmedic.kb.lazy import regex
from trainmedic.kb.mask import mask
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.place import Source
from trainmedic.kb.parse.run_folder import told
from trainmedic.kb.parse.source import Limits, Piece
from trainmedic.kb.parse.text import compressed, pictures
from trainmedic.kb.parse.text.condense import condense, spread
from trainmedic.kb.parse.text.opening import opened

_MAGIC = (
    b"\x7fELF",
    b"PK\x03\x04",
    b"%PDF-",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    *compressed.MAGIC,
    b"GGUF",
    b"\xfd7zXZ",
)
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SURROGATES = regex("[\ud800-\udfff]")
_CONTROL = regex("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_TERMINAL = regex(  # colours, cursor moves, links: what a terminal shows nothing of
    r"\x1b(?:\[[0-?]{0,40}+[ -/]{0,4}+[@-~]|\][^\x07\x1b\n]{0,2000}+(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78DEHM])"
)
_SAMPLE = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """One input, ready to be read."""

    source: Source
    piece: Piece
    lines: int
    masked: tuple[tuple[str, int], ...] = ()
    problems: tuple[Problem, ...] = ()
    note: str = ""
    kind: str = ""
    read: bool = True
    writing: int = 0


def decode(content: bytes) -> tuple[str, str] | None:
    """Text and the name of its encoding, or None for binary content.

    Byte order marks decide; then UTF-16 without one (every other byte zero), UTF-8, GB18030 (the usual encoding of
    Chinese Windows consoles), and finally UTF-8 with replacement characters.
    """
    if content.startswith(codecs.BOM_UTF8):
        return content.decode("utf-8-sig", "replace"), "utf-8-sig"
    if content.startswith(_WIDE_MARKS):
        return content.decode("utf-16", "replace"), "utf-16"
    sample = content[:_SAMPLE]
    if sample.startswith(_MAGIC):
        return None
    if b"\x00" in sample:
        return _wide(content, sample)
    try:
        return content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        if error.start >= len(content) - 3:  # a character cut at the very end
            return content[: error.start].decode("utf-8"), "utf-8"
    try:
        return content.decode("gb18030"), "gb18030"
    except UnicodeDecodeError:
        return _damaged(content)


def _damaged(content: bytes) -> tuple[str, str] | None:
    """Text with a few characters replaced; None if there are too many for it to be text."""
    text = content.decode("utf-8", "replace")
    bad = text[:_SAMPLE].count("\ufffd") + len(_CONTROL.findall(text[:_SAMPLE]))
    return None if bad * 10 > len(text[:_SAMPLE]) else (text, "utf-8 with replacements")


def _wide(content: bytes, sample: bytes) -> tuple[str, str] | None:
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = max(1, len(sample) // 2)
    if odd * 3 > half and even * 20 < half:
        return content.decode("utf-16-le", "replace"), "utf-16-le"
    if even * 3 > half and odd * 20 < half:
        return content.decode("utf-16-be", "replace"), "utf-16-be"
    if (even + odd) * 100 < len(sample):  # a stray NUL or two, as a killed process leaves in its log
        return _damaged(content)
    return None


def _unread(name: str | None, size: int, kind: str, *problems: Problem) -> Loaded:
    empty = Source(name=name, text="", byte_count=size)
    piece = Piece(source=name, text="")
    return Loaded(source=empty, piece=piece, lines=0, problems=problems, note=kind, kind=kind, read=False)


def load(
    name: str | None,
    content: str | bytes,
    limits: Limits,
    budget: int,
    left_out: int = 0,
    writing: int = pictures.MOST_WRITING,
) -> Loaded:
    """Open, decode, normalise line breaks, keep what matters within ``limits`` and ``budget`` bytes, mask secrets.

    ``left_out`` lines are blank in ``content`` since an earlier pass; so much ``writing`` is read from a picture.
    """
    size = len(content) if isinstance(content, bytes) else _utf8_size(content)
    problems, notes, written = list[Problem](), list[str](), 0
    if isinstance(content, bytes):
        file = opened(name or "the question", content, left_out, writing)
        problems, notes = [*file.problems], [*file.notes]
        if file.unread:
            return _unread(name, size, file.unread, *problems)
        content, left_out, written = file.content, file.left_out, file.writing
        name = name and name + file.mark
    decoded = (content, "text") if isinstance(content, str) else decode(content[:_SAMPLE])
    if decoded is None:
        message = f"{name or 'the question'} is not text and was not read"
        return _unread(name, size, "binary", *problems, Problem(code="binary", message=message))
    room = limits.room.within(budget)
    numbers: tuple[int, ...] = ()
    cut = False
    if len(content) > room.total:
        if isinstance(content, bytes) and decoded[1].startswith("utf-16"):
            content = (decode(content) or decoded)[0]
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        condensed = condense((data,), room)
        content, numbers, cut = condensed.text, condensed.numbers, not condensed.whole or not room.total
        left_out += condensed.left_out
    text, encoding = (content, "text") if isinstance(content, str) else decode(content) or ("", "")
    if encoding not in ("text", "utf-8", "utf-8-sig"):
        notes.append(f"read as {encoding}")
    lines = numbers[-1] - 1 if numbers else _lines(text)
    if cut:
        notes.append("of its longest lines only the beginning was read" if room.total else "not read")
        message = f"{name or 'the question'} is {size} bytes long and was not read as a whole"
        problems.append(Problem(code="truncated", message=message))
    elif left_out:
        notes.append(f"all {lines} lines were read; {left_out} that are like others were left out")
    text = _as_told(_clean(text), notes)
    masked = mask(text)
    piece = Piece(source=name, text=masked.text, line=numbers[0] if numbers else 1, numbers=numbers)
    whole = spread(piece.text.split("\n"), numbers, "\n") if numbers else piece.text
    source = Source(name=name, text=whole, byte_count=size, truncated=cut)
    return Loaded(
        source=source,
        piece=piece,
        lines=lines,
        masked=tuple(sorted(masked.counts.items())),
        problems=tuple(problems),
        note="; ".join(notes),
        writing=written,
    )


def _as_told(text: str, notes: list[str]) -> str:
    """The text, of a record of a run what it tells of it."""
    if (record := told(text)) is not text:
        notes.append("a record of the run, read as what it tells")
    return record


def _clean(text: str) -> str:
    """``\\n`` line breaks; a lone surrogate becomes U+FFFD and a NUL a blank, so that nothing later can choke on it.

    A terminal's control sequences go: columns are those of what the user sees.
    """
    if "\x1b" in text:
        text = _TERMINAL.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x00" in text:
        text = text.replace("\x00", " ")
    if text.startswith("\ufeff"):
        text = text[1:]
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _lines(text: str) -> int:
    """Number of lines, counting LF, CRLF and lone CR each as one break; none begins behind the last break."""
    breaks = text.count("\n") + text.count("\r") - text.count("\r\n")
    return breaks + (bool(text) and not text.endswith(("\n", "\r")))
