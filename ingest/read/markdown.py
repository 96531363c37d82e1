"""The structure of Markdown text, read with markdown-it-py."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

_BLOCKS = MarkdownIt("commonmark").enable("table").disable("inline")


def tokens(text: str) -> Sequence[Token]:
    """The block tokens; ``map`` holds their lines. Those of type ``inline`` have no children."""
    return _BLOCKS.parse(text)
