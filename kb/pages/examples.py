"""The examples of a check (and of a mechanism), which are run as tests. Read on demand."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.model.place import Attachment, Span
from trainmedic.kb.pages.page import CHECK, PageError, suggestion
from trainmedic.kb.pages.sections import Fence, Section, sections

KINDS = ("Fires", "Silent", "Cannot tell")
_SUFFIX = {"bash": "sh", "python": "py", "text": "txt", "console": "txt", "shell": "sh", "sh": "sh", "log": "log"}
OPEN, CLOSE = "⟦", "⟧"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One example: the pasted text without its marks, and the expected result."""

    kind: str  # Fires | Silent | Cannot tell
    sentence: str
    line: int  # of its heading, in the page
    question: str
    attachments: tuple[Attachment, ...]
    marks: tuple[Span, ...]
    missing: tuple[str, ...] = ()
    diff: str | None = None
    may_be_unknown: bool = False  # Silent: "cannot tell allowed"


def examples_of(rule: Rule) -> tuple[Example, ...]:
    """The examples of a check's chapter, whose headings are ``Kind: a sentence``. Raises `PageError`."""
    found = []
    for section in sections(rule.page, (f"{CHECK}{rule.id}",)):
        kind, _, sentence = section.heading.partition(": ")
        if kind not in KINDS:
            problem = f"{section.heading!r} must begin with 'Fires: ', 'Silent: ' or 'Cannot tell: '"
            raise PageError(PageProblem(rule.page.name, section.line, problem + suggestion(kind, KINDS)))
        found.append(example_of(rule.page, section, kind, sentence))
    return tuple(found)


def example_of(page: Page, section: Section, kind: str, sentence: str) -> Example:
    """One section's blocks and lines as an example. Raises `PageError`."""
    pasted = [fence for fence in section.fences if fence.info != "diff"]
    if not pasted:
        raise PageError(PageProblem(page.name, section.line, "an example needs a fenced block with the pasted text"))
    question = ""
    attachments: list[Attachment] = []
    marks: list[Span] = []
    for fence in pasted:
        language, _, name = fence.info.partition(" ")
        is_question = name == "question"
        name = name or f"paste.{_SUFFIX.get(language, language or 'txt')}"
        content, spans = _unmark(page, fence, None if is_question else name)
        marks += spans
        if is_question:
            question = content
        elif any(attachment.name == name for attachment in attachments):
            raise PageError(PageProblem(page.name, fence.line, f"two blocks are called {name!r}"))
        else:
            attachments.append(Attachment(name=name, content=content))
    listed = next((line.removeprefix("missing:") for line in section.prose if line.startswith("missing:")), "")
    return Example(
        kind=kind,
        sentence=sentence,
        line=section.line,
        question=question,
        attachments=tuple(attachments),
        marks=tuple(marks),
        missing=tuple(part.strip() for part in listed.split(",") if part.strip()),
        diff=next((fence.content for fence in section.fences if fence.info == "diff"), None),
        may_be_unknown="cannot tell allowed" in section.prose,
    )


def _unmark(page: Page, fence: Fence, name: str | None) -> tuple[str, list[Span]]:
    """A block's text without its marks, and the marked places."""
    spans: list[Span] = []
    clean: list[str] = []
    line = column = 1
    start: tuple[int, int, int] | None = None

    def error(message: str, number: int = fence.line) -> PageError:
        return PageError(PageProblem(page.name, number, message))

    for char in fence.content:
        if char == OPEN:
            if start is not None:
                raise error(f"{OPEN} inside {OPEN}", fence.line + line)
            start = (line, column, len(clean))
        elif char == CLOSE:
            if start is None:
                raise error(f"{CLOSE} without {OPEN}", fence.line + line)
            first, at, index = start
            text = "".join(clean[index:])
            spans.append(Span(attachment=name, line=first, column=at, end_line=line, end_column=column, text=text))
            start = None
        else:
            clean.append(char)
            line, column = (line + 1, 1) if char == "\n" else (line, column + 1)
    if start is not None:
        raise error(f"a mark {OPEN} is never closed")
    return "".join(clean), spans
