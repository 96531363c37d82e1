"""A model's Markdown in pieces: fenced blocks, headings, table rows, and the sentences of paragraphs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

_FENCE = re.compile(r"^\s*(?:>\s?)?(`{3,}(?=[^`]*$)|~{3,})")
_LEAD = re.compile(r"^(\s*(?:>\s*)*(?:(?:[-*+]|\d{1,3}[.)])\s+)*)(.*)$", re.DOTALL)
_HEADING = re.compile(r"^(?:#{1,6}\s+\S.{0,118}|\*\*[^*\n]{1,80}\*\*[:：]?|[^.!?。！？]{1,60}[:：])$")
_END = re.compile(
    r"(?:[.!?]{1,8}[\"'”’)*_]{0,4}(?=\s|\[\d|$)|[。！？]{1,8}[”’」』）\"*_]{0,4})"
    r"(?:[ \t]{0,4}\[\d{1,4}(?:[ ,，、]{1,3}\d{1,4}){0,20}\]){0,20}\s*"
)
_SHORT = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|vs|cf|approx|Fig|Figs|No|resp|ca|Eq|Sec|al|a\.k\.a|w\.r\.t|Dr|St)$")


@dataclass(frozen=True, slots=True)
class Piece:
    """``lead`` is what stands before the text (indent, list mark, quote mark)."""

    kind: Literal["code", "blank", "heading", "row", "text"]
    lead: str
    body: str


def pieces(draft: str) -> Iterator[Piece]:
    """The draft's pieces in order. Lines of one paragraph are one piece; a block that never closes is closed."""
    block: list[str] = []
    fence, lead = "", ""
    paragraph: list[str] = []
    for line in draft.split("\n"):
        mark = _FENCE.match(line)
        if block:
            block.append(line)
            if mark and mark[1].startswith(fence) and not line.strip(" >`~\t"):
                yield Piece("code", "", "\n".join(block))
                block = []
            continue
        start, body = _LEAD.match(line).groups()  # type: ignore[union-attr]  # it matches every line
        kind = "code" if mark else _kind(body.strip())
        if paragraph and (kind != "text" or start.strip()):
            yield Piece("text", lead, _joined(paragraph))
            paragraph = []
        if mark:
            block, fence = [line], mark[1]
        elif kind == "text":
            lead = lead if paragraph else start
            paragraph.append(body.strip())
        else:
            yield Piece(kind, start, body.strip())  # type: ignore[arg-type]  # "code" is out by now
    if paragraph:
        yield Piece("text", lead, _joined(paragraph))
    if block:
        yield Piece("code", "", "\n".join([*block, fence]))


def _kind(body: str) -> str:
    if not body:
        return "blank"
    if body.startswith("|"):
        return "row"
    return "heading" if _HEADING.match(body) else "text"


def _joined(lines: list[str]) -> str:
    parts = [lines[0]]
    for before, line in pairwise(lines):
        parts += ["" if before[-1:] > "\u2e80" and line[:1] > "\u2e80" else " ", line]
    return "".join(parts)


def sentences(body: str) -> Iterator[str]:
    """The sentences of a paragraph, each with the markers behind it. Code, decimals, versions, file names and
    abbreviations end none."""
    last = 0
    for end in _ends(body):
        yield body[last:end].strip()
        last = end
    if rest := body[last:].strip():
        yield rest


def complete(draft: str) -> str:
    """A draft that broke off, without its last, unfinished sentence, list item, table row or fenced block."""
    begins, fence = 0, ""
    lines = draft.split("\n")
    at = 0
    for number, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip(" >`~\t"):
                fence, begins = "", at + len(line) + 1
        elif mark:
            fence, begins = mark[1], at
        else:
            lead, body = _LEAD.match(line).groups()  # type: ignore[union-attr]  # it matches every line
            if lead.strip() or _kind(body.strip()) != "text" or not lines[number - 1].strip():
                begins = at
        at += len(line) + 1
    if fence:
        return draft[:begins].rstrip()
    last = draft[begins:]
    if _kind(last.strip()) == "row":
        return draft[:begins].rstrip()
    # "4." at the very end may be the beginning of 4.46.
    ends = [end for end in _ends(last) if end < len(last) or not re.search(r"\d\.$", last)]
    return (draft[:begins] + last[: max(ends, default=0)]).rstrip()


def _ends(body: str) -> Iterator[int]:
    """Where the sentences of a paragraph end, but for the last where nothing ends it."""
    last = looked = ticks = 0
    for match in _END.finditer(body):
        ticks += body.count("`", looked, match.start())
        looked = match.start()
        if ticks % 2 or (body[looked] == "." and _SHORT.search(body[max(last, looked - 8) : looked])):
            continue
        last = match.end()
        yield last
