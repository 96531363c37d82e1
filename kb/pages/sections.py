"""The body of a page: ``##`` chapters, ``###`` sections and their fenced blocks.

A line scanner instead of a Markdown library: start-up and `trainmedic check` read hundreds of bodies, and parsing them
all with markdown-it-py takes longer than everything else that loading does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.pages.page import PageError, suggestion


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block; ``content`` ends with a line break."""

    info: str
    content: str
    line: int


@dataclass(frozen=True, slots=True)
class Section:
    """The text below one ``###`` heading, fences included. ``prose`` holds the stripped lines outside them."""

    chapter: str
    heading: str
    line: int
    text: str
    prose: tuple[str, ...]
    fences: tuple[Fence, ...]


def sections(page: Page, chapters: Collection[str]) -> Iterator[Section]:
    """The sections in order. Raises `PageError` for an unknown chapter, a fence left open, and text in no section."""
    lines = page.text.split("\n")
    first = page.before + 1  # the line of the file that is lines[0]
    chapter = heading = ""
    start = at = page.body_line - first
    prose: list[str] = []
    fences: list[Fence] = []
    while at <= len(lines):
        line = lines[at] if at < len(lines) else "## "
        mark = _fence(line) if "```" in line or "~~~" in line else ""
        if mark:
            end = _closing(lines, at, mark)
            if end is None:
                raise PageError(PageProblem(page.name, at + first, "this fenced block is never closed"))
            content = "".join(f"{inside}\n" for inside in lines[at + 1 : end])
            fences.append(Fence(line.strip()[len(mark) :].strip(), content, at + first))
            at = end
        elif line.startswith(("## ", "### ")):
            if heading:
                text = "\n".join(lines[start + 1 : at]).strip()
                yield Section(chapter, heading, start + first, text, tuple(prose), tuple(fences))
            elif any(prose) or fences:
                raise PageError(PageProblem(page.name, start + first, "text outside any section"))
            start, prose, fences = at, [], []
            level, _, title = line.partition(" ")
            if level == "###":
                heading = title.strip()
            else:
                chapter, heading = title.strip(), ""
                if chapter and chapter not in chapters:
                    problem = f"unknown chapter {chapter!r}{suggestion(chapter, chapters)}"
                    raise PageError(PageProblem(page.name, at + first, problem))
        else:
            prose.append(line.strip())
        at += 1


def _fence(line: str) -> str:
    """The backticks or tildes that open a fenced block."""
    stripped = line.lstrip()
    mark = stripped[: len(stripped) - len(stripped.lstrip(stripped[:1]))]
    return mark if len(mark) >= 3 and mark[0] in "`~" and "`" not in stripped[len(mark) :] else ""


def _closing(lines: list[str], opening: int, mark: str) -> int | None:
    for at in range(opening + 1, len(lines)):
        stripped = lines[at].strip()
        if len(stripped) >= len(mark) and not stripped.strip(mark[0]):
            return at
    return None


def documentation(
    page: Page, found: Iterator[Section] | list[Section], headings: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, dict[str, str]], dict[str, int]]:
    """Language → section name → text, and the line of each section as ``language/heading``.

    ``headings`` maps language → heading on the page → section name. Raises `PageError` for any other heading.
    """
    texts: dict[str, dict[str, str]] = {language: {} for language in headings}
    lines: dict[str, int] = {}
    for section in found:
        known = headings[section.chapter]
        if section.heading not in known:
            problem = f"unknown section {section.heading!r}{suggestion(section.heading, known)}"
            raise PageError(PageProblem(page.name, section.line, problem))
        name = known[section.heading]
        if name in texts[section.chapter]:
            raise PageError(PageProblem(page.name, section.line, f"the section {section.heading!r} occurs twice"))
        texts[section.chapter][name] = section.text
        lines[f"{section.chapter}/{section.heading}"] = section.line
    return texts, lines
