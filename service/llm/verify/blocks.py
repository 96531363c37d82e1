"""A model's Markdown as blocks: fenced code, headings, table rows, and paragraphs with their sentences. Pure.

Line by line and not by a Markdown parser, because the text may break off anywhere and must be put together again as the
model wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from trainmedic.kb.lazy import regex
from trainmedic.kb.sentences import sentence_ends

_LEAD = regex(r"^(\s*(?:>\s*)*(?:(?:[-*+]|\d{1,3}[.)])\s+)*)(.*)$", re.DOTALL)
_LONGEST_HEADING = 120
_CJK = "\u2e80"
"""The first code point of the scripts that put no spaces between words."""


@dataclass(frozen=True, slots=True)
class Block:
    """``lead`` precedes the text on its line: indent, list marker, quote marker."""

    kind: Literal["code", "blank", "heading", "row", "text"]
    lead: str
    body: str


def blocks(draft: str) -> Iterator[Block]:
    """The draft's blocks in order. The lines of a paragraph are one block; a fence that is never closed is closed."""
    code: list[str] = []
    fence, lead = "", ""
    paragraph: list[str] = []
    for line in draft.split("\n"):
        mark = _fence_mark(line)
        if code:
            code.append(line)
            if _closes(line, fence):
                yield Block("code", "", "\n".join(code))
                code = []
            continue
        start, body = _split_lead(line)
        kind = "code" if mark else _kind(body.strip())
        if paragraph and (kind != "text" or start.strip()):
            yield Block("text", lead, _joined(paragraph))
            paragraph = []
        if kind == "code":
            code, fence = [line], mark
        elif kind == "text":
            lead = lead if paragraph else start
            paragraph.append(body.strip())
        else:
            yield Block(kind, start, body.strip())
    if paragraph:
        yield Block("text", lead, _joined(paragraph))
    if code:
        yield Block("code", "", "\n".join([*code, fence]))


def _split_lead(line: str) -> tuple[str, str]:
    match = _LEAD.match(line)
    assert match is not None  # every part of the pattern may be empty
    return match[1], match[2]


def _fence_mark(line: str) -> str:
    """The backticks or tildes that open or close a fenced block; empty for any other line."""
    text = line.lstrip()
    if text.startswith(">"):
        text = text[1:]
        text = text[1:] if text[:1].isspace() else text
    mark = text[: len(text) - len(text.lstrip(text[:1]))] if text[:1] in ("`", "~") else ""
    return "" if len(mark) < 3 or (mark[0] == "`" and "`" in text[len(mark) :]) else mark


def _closes(line: str, fence: str) -> bool:
    return _fence_mark(line).startswith(fence) and not line.strip(" >`~\t")


def _kind(body: str) -> Literal["blank", "row", "heading", "text"]:
    if not body:
        return "blank"
    if body.startswith("|"):
        return "row"
    return "heading" if _is_heading(body) else "text"


def _is_heading(body: str) -> bool:
    """Whether a line is a heading: with ``#``, a line in bold, or a short line that ends with a colon."""
    text = body.lstrip("#")
    level = len(body) - len(text)
    if 1 <= level <= 6 and text[:1].isspace():
        return len(text.lstrip()) < _LONGEST_HEADING
    title = body[:-1] if body.endswith((":", "：")) else body
    bold = title[2:-2]
    if title.startswith("**") and title.endswith("**") and 1 <= len(bold) <= 80 and "*" not in bold:
        return True
    return title != body and 1 <= len(title) <= 60 and not set(".!?。！？") & set(title)


def _joined(lines: list[str]) -> str:
    parts = [lines[0]]
    for before, line in pairwise(lines):
        # Chinese lines are joined without a space, Latin ones with one.
        parts += ["" if before[-1:] > _CJK and line[:1] > _CJK else " ", line]
    return "".join(parts)


def complete(draft: str) -> str:
    """A draft that broke off, without its last, unfinished sentence, list item, table row or fenced block."""
    start, fence = 0, ""
    lines = draft.split("\n")
    position = 0
    for number, line in enumerate(lines):
        mark = _fence_mark(line)
        if fence:
            if _closes(line, fence):
                fence, start = "", position + len(line) + 1
        elif mark:
            fence, start = mark, position
        else:
            lead, body = _split_lead(line)
            if lead.strip() or _kind(body.strip()) != "text" or not lines[number - 1].strip():
                start = position
        position += len(line) + 1
    last = draft[start:]
    if fence or last.strip().startswith("|"):
        return draft[:start].rstrip()
    # "4." at the very end may be the beginning of 4.46.
    may_go_on = re.search(r"\d\.$", last) is not None
    ends = [end for end in sentence_ends(last) if end < len(last) or not may_go_on]
    return draft[: start + max(ends, default=0)].rstrip()
