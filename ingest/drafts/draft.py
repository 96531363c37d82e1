"""A draft case: the cleaned write-up, the facts that the parser read in it, and what of it contradicts the knowledge.

Line numbers are those of `Draft.lines`: the title is line 1, and code stands between fences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from trainmedic.ingest.authoring.new_cause import NewCheck
from trainmedic.ingest.items import Block
from trainmedic.kb.model.report import Text

FieldName = Literal["framework", "algorithm", "model_family", "model", "version", "setting", "signal", "error"]
PREFIX = "draft-"
"""How the id of a draft begins, and that of a published page does not."""
FIELDS: tuple[FieldName, ...] = get_args(FieldName)
"""In the order in which a reviewer reads them. All but the first four may occur several times."""
SourceState = Literal["current", "changed", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Words of the write-up and the lines that they are on, 1-based and inclusive."""

    first_line: int
    last_line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftField:
    """One value, never without a passage."""

    name: FieldName
    value: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A claim of the write-up that the knowledge contradicts. ``page`` is the id of a case that refutes it, in the
    words of ``statement``, or ``option:<framework>:<name>`` for advice to set an option that its framework lacks."""

    kind: Literal["refuted", "option"]
    claim: Passage
    page: str
    why: Text
    statement: Text | None = None

    def reason(self, language: str) -> str:
        refutes = f' refutes "{self.statement.get(language)}"' if self.statement is not None else ""
        return f"{self.page}{refutes}: {self.why.get(language)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One draft.

    ``source`` and ``key`` identify the write-up, ``digest`` its content. ``source_state``: the write-up has changed
    since a reviewer edited the page (`changed`), or is no longer there (`gone`). ``page_digest`` is that of the page as
    it was written: a page with another one was edited. ``related`` are the ids of the cases that it is probably about,
    the best first. ``check`` is the one that it proposes.
    """

    id: str
    title: str
    origin: str
    source: str
    key: str
    url: str
    language: str
    digest: str
    blocks: tuple[Block, ...]
    fields: tuple[DraftField, ...] = ()
    marks: tuple[Mark, ...] = ()
    related: tuple[str, ...] = ()
    source_state: SourceState = "current"
    page_digest: str = ""
    check: NewCheck | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """The cleaned write-up as Markdown, line by line."""
        return tuple(article_lines(self.title, self.blocks))

    def values(self, name: FieldName) -> tuple[str, ...]:
        return tuple(field.value for field in self.fields if field.name == name)


def article_lines(title: str, blocks: Sequence[Block]) -> Iterator[str]:
    yield title
    for block in blocks:
        yield from block_lines(block)


def block_lines(block: Block) -> list[str]:
    text = block.text.splitlines() or [""]
    if block.kind == "code":
        return ["```", *text, "```"]
    if block.kind == "heading":
        return [f"{'#' * max(2, block.level)} {' '.join(text)}"]
    return [f"- {' '.join(text)}"] if block.kind == "item" else text
