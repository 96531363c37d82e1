"""A Markdown page of the knowledge base, and a problem of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, order=True)
class PageProblem:
    """Something wrong with a page. ``str(problem)`` is ``path:line: message``; lines count from 1."""

    page: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.message}"

    @property
    def stem(self) -> str:
        return self.page.rpartition("/")[2].removesuffix(".md")


@dataclass(frozen=True, slots=True)
class Page:
    """The text of a page and where its parts are.

    ``name`` is the path that messages show. ``lines`` maps a field of the front matter (``title``) and a section
    (``en/Symptom``) to its line; ``body_line`` is the line after the front matter. ``text`` begins after the first
    ``before`` lines of the file, for the chapter of a check.
    """

    name: str
    text: str = ""
    body_line: int = 1
    lines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    before: int = 0

    def problem(self, message: str, part: str = "") -> PageProblem:
        """A problem at the line of ``part``, or where the page (or the check) begins."""
        return PageProblem(self.name, self.lines.get(part, self.lines.get("", 1)), message)
