"""What arrived (bytes or text, any size, any encoding) → masked text with the user's line numbers. Never raises."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from trainmedic.kb.lazy import regex
from trainmedic.kb.mask import mask
from trainmedic.kb.memory.snapshot import read_snapshot
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.place import Source
from trainmedic.kb.parse.logs import event_files
from trainmedic.kb.parse.source import Limits, Piece
from trainmedic.kb.parse.text import compressed

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
    """One input, ready to be read. ``parts`` are its kept stretches (a long one's head and tail),
    at their own lines."""

    source: Source
    parts: tuple[Piece, ...]
    lines: int
    masked: tuple[tuple[str, int], ...] = ()
    problems: tuple[Problem, ...] = ()
    note: str = ""
    read: bool = True


def decode(content: bytes) -> tuple[str, str] | None:
    """Text and the name of its encoding, or None for binary content.

    Byte order marks decide; then UTF-16 without one (every other byte zero), UTF-8, GB18030 (the usual encoding of
    Chinese Windows consoles), and at last UTF-8 with replacement characters.
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


def _unread(name: str | None, size: int, *problems: Problem) -> Loaded:
    empty = Source(name=name, text="", byte_count=size)
    return Loaded(source=empty, parts=(), lines=0, problems=problems, note="binary", read=False)


def load(name: str | None, content: str | bytes, limits: Limits, budget: int) -> Loaded:
    """Decode, normalise line breaks, keep head and tail within ``limits`` and ``budget`` bytes, and mask secrets."""
    size = len(content) if isinstance(content, bytes) else _utf8_size(content)
    problems: list[Problem] = []
    notes: list[str] = []
    expanded = compressed.expand(content) if isinstance(content, bytes) else None
    if expanded is not None:
        content = expanded.content
        notes.append(f"decompressed ({expanded.kind})")
        if not expanded.complete:
            problems.append(Problem(code="truncated", message=f"{name} is damaged, cut off or too long to be unpacked"))
    elif isinstance(content, bytes) and (kind := compressed.kind_of(content)):
        message = f"{name} is compressed by {kind} and was not read: pip install 'trainmedic[zstd]' reads such files"
        return _unread(name, size, Problem(code="compressed", message=message))
    snapshot = read_snapshot(content) if isinstance(content, bytes) else None
    if snapshot is not None and snapshot.problem:
        message = f"{name} is a pickle and was not read: {snapshot.problem}"
        return _unread(name, size, *problems, Problem(code="binary", message=message))
    if snapshot is not None:
        content = snapshot.text
        notes.append("memory snapshot, the code that made the live tensors")
    history = event_files.read(content) if isinstance(content, bytes) else None
    if history is not None:
        content = history.text
    head, tail = min(limits.head, budget), max(0, min(limits.tail, budget - limits.head))
    pieces, lines, cut = _cut(content, head, tail)
    texts: list[tuple[str, int]] = []
    if history is not None:
        notes.append(f"{history.kind}, one line for each of {history.rows} rows")
        if not history.complete:
            message = f"{name} is damaged, cut off or too long: read up to row {history.rows}"
            problems.append(Problem(code="truncated", message=message))
    for part, line in pieces:
        decoded = (part, "text") if isinstance(part, str) else decode(part)
        if decoded is None:
            message = f"{name or 'the question'} is not text and was not read"
            return _unread(name, size, *problems, Problem(code="binary", message=message))
        text, encoding = decoded
        if encoding not in ("text", "utf-8", "utf-8-sig") and f"read as {encoding}" not in notes:
            notes.append(f"read as {encoding}")
        texts.append((_clean(text), line))
    if cut:
        notes.append(f"lines {cut[0]} to {cut[1]} of {lines} were not read")
        message = f"{name or 'the question'} is {size} bytes long: lines {cut[0]} to {cut[1]} were not read"
        problems.append(Problem(code="truncated", message=message))
    return _assemble(name, texts, size, lines, problems, notes, unread=cut)


def _assemble(
    name: str | None,
    texts: list[tuple[str, int]],
    size: int,
    lines: int,
    problems: list[Problem],
    notes: list[str],
    *,
    unread: tuple[int, int] | None,
) -> Loaded:
    counts: dict[str, int] = {}
    parts: list[Piece] = []
    whole: list[str] = []
    line = 1
    for text, first in texts:
        masked = mask(text)
        for kind, number in masked.counts.items():
            counts[kind] = counts.get(kind, 0) + number
        parts.append(Piece(source=name, text=masked.text, line=first))
        whole.append("\n" * (first - line))
        whole.append(masked.text)
        line = first + masked.text.count("\n")
    source = Source(name=name, text="".join(whole), byte_count=size, truncated=unread is not None, unread=unread)
    return Loaded(
        source=source,
        parts=tuple(parts),
        lines=lines,
        masked=tuple(sorted(counts.items())),
        problems=tuple(problems),
        note="; ".join(notes),
    )


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


def _cut(
    content: str | bytes, head: int, tail: int
) -> tuple[list[tuple[str | bytes, int]], int, tuple[int, int] | None]:
    """Kept stretches with their first line, the number of lines, and the first and last line left out.

    Both ends are cut at line breaks; the tail of one giant line is not kept, for its columns would be wrong.
    """
    if isinstance(content, bytes) and len(content) > head + tail and content.startswith(_WIDE_MARKS):
        content = content.decode("utf-16", "replace")  # bytes of two-byte characters must not be cut anywhere
    total = _lines(content)
    count = total - _ends_with_break(content)
    if len(content) <= head + tail:
        return [(content, 1)], count, None
    feed: str | bytes = "\n" if isinstance(content, str) else b"\n"
    stop = content.rfind(feed, 0, head) + 1 or head  # type: ignore[arg-type]
    start = content.find(feed, len(content) - tail) + 1 or len(content)  # type: ignore[arg-type]
    pieces: list[tuple[str | bytes, int]] = [(content[:stop], 1)]
    first_lost = _lines(content[:stop])
    last_lost = count
    if start < len(content):
        last_lost = total - _lines(content[start:])
        pieces.append((content[start:], last_lost + 1))
    return pieces, count, (first_lost, max(first_lost, last_lost))


def _ends_with_break(content: str | bytes) -> bool:
    """Whether nothing follows the last line break, so that no line begins there."""
    if isinstance(content, str):
        return not content or content.endswith(("\n", "\r"))
    return not content or content.endswith((b"\n", b"\r", b"\n\x00"))


def _lines(content: str | bytes) -> int:
    """Number of lines, counting LF, CRLF and lone CR each as one break, and what follows the last one as a line."""
    if isinstance(content, str):
        return 1 + content.count("\n") + content.count("\r") - content.count("\r\n")
    return 1 + content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")
