"""The body of a rule page: documentation in two languages, and the examples that are run as tests. Read on demand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.model.place import Attachment, Span

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "en": ("What it finds", "Why it matters", "What to do"),
    "zh": ("检查什么", "为什么重要", "怎么改"),
}
KINDS = ("Fires", "Silent", "Cannot tell")
_FENCE = re.compile(r"^(`{3,})[ \t]*([^`\n]*)$")
_SUFFIX = {"bash": "sh", "python": "py", "text": "txt", "console": "txt", "shell": "sh", "sh": "sh", "log": "log"}
OPEN, CLOSE = "⟦", "⟧"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One example: what is pasted (marks removed), and what must come of it."""

    kind: str  # Fires | Silent | Cannot tell
    sentence: str
    line: int  # of its heading, in the page
    question: str
    attachments: tuple[Attachment, ...]
    marks: tuple[Span, ...]
    missing: tuple[str, ...] = ()
    diff: str | None = None
    may_be_unknown: bool = False  # Silent: "cannot tell allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Sections by language and heading (Markdown, stripped), and the examples in order."""

    sections: Mapping[str, Mapping[str, str]]
    examples: tuple[Example, ...]


def read_body(rule: Rule) -> Body:
    """The body of a page. Raises `InvalidPage` with page name and line where it does not follow the format."""
    reader = _Reader(rule.path.name, rule.text.split("\n"), rule.body_line)
    return reader.read()


@dataclass(frozen=True, slots=True)
class _Block:
    info: str
    content: str
    line: int


class _Reader:
    def __init__(self, name: str, lines: Sequence[str], start: int) -> None:
        self.name, self.lines, self.at = name, lines, start - 1
        self.sections: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
        self.examples: list[Example] = []

    def wrong(self, line: int, reason: str) -> InvalidPage:
        return InvalidPage(f"{self.name}:{line}: {reason}")

    def read(self) -> Body:
        chapter = heading = ""
        begin = self.at
        text: list[str] = []
        blocks: list[_Block] = []
        while self.at <= len(self.lines):
            line = self.lines[self.at] if self.at < len(self.lines) else "## "
            fence = _FENCE.match(line)
            if fence is not None:
                block = self.block(fence)
                blocks.append(block)
                text.extend(self.lines[block.line - 1 : self.at])
                continue
            if line.startswith(("## ", "### ")):
                self.close(chapter, heading, begin + 1, text, blocks)
                begin, text, blocks = self.at, [], []
                if line.startswith("## "):
                    chapter, heading = line[3:].strip(), ""
                    if chapter and chapter not in (*self.sections, *KINDS):
                        raise self.wrong(
                            self.at + 1, f"there is no chapter {chapter!r}; write en, zh, {', '.join(KINDS)}"
                        )
                else:
                    heading = line[4:].strip()
            else:
                text.append(line)
            self.at += 1
        return Body(sections=self.sections, examples=tuple(self.examples))

    def block(self, fence: re.Match[str]) -> _Block:
        """A fenced block; leaves the reader behind its closing fence."""
        start = self.at
        for end in range(start + 1, len(self.lines)):
            if re.fullmatch(f"`{{{len(fence[1])},}}[ \t]*", self.lines[end]):
                self.at = end + 1
                return _Block(fence[2].strip(), "\n".join((*self.lines[start + 1 : end], "")), start + 1)
        raise self.wrong(start + 1, "this fenced block is never closed")

    def close(self, chapter: str, heading: str, line: int, text: list[str], blocks: list[_Block]) -> None:
        """File what stood under one heading."""
        content = "\n".join(text).strip()
        if chapter in self.sections and heading:
            if heading in self.sections[chapter]:
                raise self.wrong(line, f"the section {heading!r} stands twice")
            self.sections[chapter][heading] = content
        elif chapter in KINDS and heading:
            self.examples.append(self.example(chapter, heading, line, text, blocks))
        elif content:
            raise self.wrong(line, "text stands outside any section")

    def example(self, kind: str, sentence: str, line: int, text: list[str], blocks: list[_Block]) -> Example:
        pasted = [block for block in blocks if block.info != "diff"]
        diffs = [block.content for block in blocks if block.info == "diff"]
        if not pasted:
            raise self.wrong(line, "an example needs a fenced block with what is pasted")
        question = ""
        attachments: list[Attachment] = []
        marks: list[Span] = []
        for block in pasted:
            language, _, name = block.info.partition(" ")
            asked = name == "question"
            name = name or f"paste.{_SUFFIX.get(language, language or 'txt')}"
            content, found = self.unmark(block, None if asked else name)
            marks += found
            if asked:
                question = content
            elif any(attachment.name == name for attachment in attachments):
                raise self.wrong(block.line, f"two blocks are called {name!r}")
            else:
                attachments.append(Attachment(name=name, content=content))
        said = [entry.strip() for entry in text]
        listed = next((entry[len("missing:") :] for entry in said if entry.startswith("missing:")), "")
        return Example(
            kind=kind,
            sentence=sentence,
            line=line,
            question=question,
            attachments=tuple(attachments),
            marks=tuple(marks),
            missing=tuple(part.strip() for part in listed.split(",") if part.strip()),
            diff=diffs[0] if diffs else None,
            may_be_unknown="cannot tell allowed" in said,
        )

    def unmark(self, block: _Block, name: str | None) -> tuple[str, list[Span]]:
        """A block's text without marks, and the places they stood around."""
        spans: list[Span] = []
        clean: list[str] = []
        line = column = 1
        start: tuple[int, int, int] | None = None
        for char in block.content:
            if char == OPEN:
                if start is not None:
                    raise self.wrong(block.line + line, f"{OPEN} inside {OPEN}")
                start = (line, column, len(clean))
            elif char == CLOSE:
                if start is None:
                    raise self.wrong(block.line + line, f"{CLOSE} without {OPEN}")
                first, at, index = start
                spans.append(
                    Span(
                        attachment=name,
                        line=first,
                        column=at,
                        end_line=line,
                        end_column=column,
                        text="".join(clean[index:]),
                    )
                )
                start = None
            else:
                clean.append(char)
                line, column = (line + 1, 1) if char == "\n" else (line, column + 1)
        if start is not None:
            raise self.wrong(block.line, f"a mark {OPEN} is never closed")
        return "".join(clean), spans
