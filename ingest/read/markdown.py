"""The structure of Markdown text, read with markdown-it-py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark").enable("table")
_BLOCKS = MarkdownIt("commonmark").enable("table").disable("inline")


def tokens(text: str) -> Sequence[Token]:
    """The block tokens; ``map`` holds their lines. Those of type ``inline`` have no children."""
    return _BLOCKS.parse(text)


@dataclass(frozen=True, slots=True)
class Parts:
    """A text taken apart: fenced blocks, code spans, and the words outside both."""

    blocks: tuple[str, ...]
    spans: tuple[str, ...]
    prose: str


def parts(text: str) -> Parts:
    blocks: list[str] = []
    spans: list[str] = []
    prose: list[str] = []
    for token in _PARSER.parse(text):
        if token.type in ("fence", "code_block"):
            blocks.append(token.content)
        for child in token.children or ():
            if child.type == "code_inline":
                spans.append(child.content)
            elif child.type in ("text", "softbreak", "hardbreak"):
                prose.append(child.content or "\n")
        prose.append("\n")
    return Parts(blocks=tuple(blocks), spans=tuple(spans), prose="".join(prose))
