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
    (``en/Symptom``) to its line; ``body_line`` is the line after the front matter.
    """

    name: str
    text: str = ""
    body_line: int = 1
    lines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def problem(self, message: str, part: str = "") -> PageProblem:
        """A problem at the line of ``part``, or at the first line."""
        return PageProblem(self.name, self.lines.get(part, 1), message)
