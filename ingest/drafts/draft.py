"""A draft case: the cleaned write-up, the fields read from it, and its statements that the knowledge contradicts.

Line numbers are those of `Draft.lines`: the title is line 1, and code stands between fences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from trainmedic.ingest.items import Block
from trainmedic.kb.model.report import Text

FieldName = Literal[
    "framework",
    "algorithm",
    "model_family",
    "model",
    "version",
    "setting",
    "signal",
    "error",
    "symptom",
    "cause",
    "fix",
    "no_help",
]
FIELDS: tuple[FieldName, ...] = get_args(FieldName)
"""The fields in the order in which a reviewer reads them. All but the first four may occur several times."""
MarkKind = Literal["refuted", "option", "value"]
"""What contradicts the statement: a case's refutation; its framework has no such option; the option does not take the
value."""
SourceState = Literal["current", "changed", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Words of the write-up and the lines that they are on, 1-based and inclusive."""

    first_line: int
    last_line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftField:
    """One value. ``by``: read from the ``text`` by program, or quoted by the ``model``. Never without a passage."""

    name: FieldName
    value: str
    passages: tuple[Passage, ...]
    by: Literal["text", "model"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A statement of the write-up that the knowledge contradicts.

    ``page`` is the id of the case, or ``option:<framework>:<name>`` for an option catalogue. ``statement`` is what it
    says, ``why`` the reason. ``outdated``: the statement holds for other releases only.
    """

    kind: MarkKind
    claim: Passage
    page: str
    statement: Text
    why: Text
    outdated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One draft.

    ``source`` and ``key`` identify the write-up, ``digest`` its content. ``source_state``: the write-up has changed
    since a reviewer edited the page (`changed`), or is no longer there (`gone`). ``page_digest`` is that of the page as
    it was written: a page with another one was edited. ``related`` are the ids of the cases that it is probably about,
    the best first.
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

    @property
    def lines(self) -> tuple[str, ...]:
        """The cleaned write-up as Markdown, line by line."""
        return tuple(article_lines(self.title, self.blocks))

    def values(self, name: FieldName) -> tuple[str, ...]:
        return tuple(field.value for field in self.fields if field.name == name)


def article_lines(title: str, blocks: Sequence[Block]) -> Iterator[str]:
    yield title
    for block in blocks:
        text = block.text.splitlines() or [""]
        if block.kind == "code":
            yield from ("```", *text, "```")
        elif block.kind == "heading":
            yield f"{'#' * max(2, block.level)} {' '.join(text)}"
        else:
            yield from ([f"- {' '.join(text)}"] if block.kind == "item" else text)
