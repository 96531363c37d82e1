"""The short form of an answer: the first sentences of a text, how much there is to read, and what is folded. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trainmedic.kb.fences import fence_after
from trainmedic.kb.lazy import regex
from trainmedic.kb.sentences import sentences
from trainmedic.service.answer.schema import Section

LEAD_WORDS = 120
"""Words before the fold."""
ESSENTIAL = frozenset(
    {
        "receipt",
        "files",
        "supposed",
        "changes",
        "unchanged",
        "lead",
        "likely",
        "confidence",
        "grade",
        "change",
        "fix",
        "diff",
        "ask",
        "command",
    }
)
"""Kinds of sections that stay before the fold whatever their length."""
UNCOUNTED = frozenset({"receipt", "files", "supposed", "changes"})
"""Sections on what was read and what a follow-up changed: not part of a first answer's text."""
_BAR = regex(r"(?<!\\)\|")
_CJK = "\u2e80"
_WIDE = regex(f"[{_CJK}-\U0010ffff]")
_LETTER = regex(r"[^\W_]")
_MARKER = regex(r"[.,;:()]*\[\d+\][.,;:()]*")


def word_count(*texts: str) -> int:
    """The words to read in Markdown: code blocks and citation markers do not count, two Chinese characters are one."""
    words, characters, fence = 0, 0, ""
    for line in (line for text in texts for line in text.split("\n")):
        before, fence = fence, fence_after(line, fence)
        if before or fence:
            continue
        if not line.isascii():
            characters += sum(map(str.isalnum, _WIDE.findall(line)))
            line = _WIDE.sub(" ", line)
        words += sum(1 for part in line.split() if _LETTER.search(part) and not _MARKER.fullmatch(part))
    return words + (characters + 1) // 2


def split(text: str, most: int) -> tuple[str, str]:
    """The first sentences of a text, and the text after them.

    One sentence, then as many of the first paragraph or list entry as fit in ``most`` words. A line of code before them
    begins the first sentence; longer code belongs to the text after it.
    """
    code, text = _leading_code(text.strip())
    entry, rest = _first_entry(text)
    block = [line.strip() for line in code.split("\n")[1:-1] if line.strip() and "`" not in line]
    if block and (len(block) == 1 or entry[:1].islower()):  # the sentence goes on from the code
        code, entry = code if len(block) > 1 else "", f"`{block[0]}` {entry}".strip()
    parts = list(sentences(entry))
    taken = 1
    while taken < len(parts) and word_count(" ".join(parts[: taken + 1])) <= most:
        taken += 1
    head = _joined(parts[:taken])
    if head.endswith((":", "：")) and rest:  # it announces the list after it
        following, rest = _first_entry(rest)
        head = f"{head} {following}"
    return head, "\n\n".join(part for part in (code, _joined(parts[taken:]), rest) if part)


def _leading_code(text: str) -> tuple[str, str]:
    """The code block that a text begins with, and the text after it."""
    lines = text.split("\n")
    fence = fence_after(lines[0], "")
    end = 1
    while fence and end < len(lines):
        fence = fence_after(lines[end], fence)
        end += 1
    return ("\n".join(lines[:end]), "\n".join(lines[end:])) if end > 1 else ("", text)


def _first_entry(text: str) -> tuple[str, str]:
    """The first paragraph or list entry on one line, without its bullet, and the text after it."""
    lines = text.strip().split("\n")
    ends = (
        number
        for number, line in enumerate(lines)
        if number and (not line.strip() or _is_entry(line) or fence_after(line, ""))
    )
    end = next(ends, len(lines))
    entry = lines[:end]
    if entry and _is_entry(entry[0]):
        entry[0] = entry[0].split(" ", 1)[1]
    return _joined([line.strip() for line in entry]), "\n".join(lines[end:]).strip()


def _is_entry(line: str) -> bool:
    bullet, _, rest = line.partition(" ")
    return bool(rest) and (bullet in ("-", "*") or (bullet.endswith(".") and bullet[:-1].isdecimal()))


def _joined(parts: Sequence[str]) -> str:
    text = ""
    for part in parts:
        text += part if not text or (text[-1] > _CJK and part[:1] > _CJK) else f" {part}"
    return text


def fold(sections: Iterable[Section], most: int = LEAD_WORDS) -> tuple[Section, ...]:
    """The sections with at most ``most`` words before the fold, and everything else behind it, in the same order.

    Sections that are folded already stay so. Essential ones have room first. Of a list that does not fit, the entries
    that do stay before the fold.
    """
    shown: list[Section] = []
    hidden: list[Section] = []
    sections = tuple(sections)
    sizes = [0 if section.folded else _size(section) for section in sections]
    left = most - sum(
        size for section, size in zip(sections, sizes, strict=True) if section.kind in ESSENTIAL and not section.folded
    )
    for section, size in zip(sections, sizes, strict=True):
        if section.folded:
            hidden.append(section)
            continue
        if section.kind in ESSENTIAL:
            shown.append(section)
            continue
        if size <= left:
            shown.append(section)
            left -= size
            continue
        before, after = _split_list(section, left)
        shown += before
        left -= sum(word_count(part.heading, part.body) for part in before)
        hidden += (replace(part, folded=True) for part in after)
    return (*shown, *hidden)


def _size(section: Section) -> int:
    return 0 if section.kind in UNCOUNTED else word_count(section.heading, section.body)


def _split_list(section: Section, most: int) -> tuple[Sequence[Section], Sequence[Section]]:
    """The entries of a list that fit in ``most`` words, and the others under the same heading."""
    entries = list(_entries(section.body))
    count = 0
    heading = word_count(section.heading)
    while count < len(entries) and heading + word_count("\n".join(entries[: count + 1])) <= most:
        count += 1
    return part((section,), count)


def part(sections: Sequence[Section], count: int) -> tuple[Sequence[Section], Sequence[Section]]:
    """The first ``count`` entries of a list, if it is one, and the others under the same heading."""
    if len(sections) != 1:
        return sections, ()
    section = sections[0]
    entries = list(_entries(section.body))
    if len(entries) != len(section.items) or count <= 0:
        return (), sections
    if count >= len(entries):
        return sections, ()
    first, others = (
        replace(
            section,
            body="\n".join(entries[place]),
            items=section.items[place],
            markers=tuple(marker for marker in section.markers if f"[{marker}]" in "\n".join(entries[place])),
        )
        for place in (slice(count), slice(count, None))
    )
    return (first,), (others,)


def without_tables(text: str) -> str:
    """Markdown with its tables as lists: what is read in a chat, a terminal or a thread shows no tables."""
    lines: list[str] = []
    head: list[str] = []
    rows = text.split("\n")
    for number, line in enumerate(rows):
        cells = [cell.strip() for cell in _BAR.split(line.strip().strip("|"))] if line.startswith("|") else []
        if not cells:
            head = []
            lines.append(line)
        elif not head:
            head = cells
            lines += [] if _is_rule(rows[number + 1 : number + 2]) else [line]
        elif not _is_rule([line]):
            named = (f"{name}: {cell}" for name, cell in zip(head[1:], cells[1:], strict=False) if cell)
            lines.append(f"- {'; '.join((cells[0], *named))}")
    return "\n".join(lines)


def _is_rule(lines: Sequence[str]) -> bool:
    """Whether it is the line below the head of a table."""
    return bool(lines) and "-" in lines[0] and set(lines[0]) <= set("|-: ")


def _entries(body: str) -> Iterator[str]:
    """The entries of a Markdown list, each with the lines below it."""
    entry: list[str] = []
    for line in body.split("\n"):
        if _is_entry(line) and entry:
            yield "\n".join(entry)
            entry = []
        entry.append(line)
    if entry:
        yield "\n".join(entry)
