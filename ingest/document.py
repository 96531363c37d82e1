"""A write-up as fetched, and as cleaned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """One write-up as fetched. ``format`` is text, markdown or html; ``origin`` names it in messages."""

    origin: str
    content: str
    format: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something that a source could not read."""

    origin: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a write-up. ``kind`` is heading, item, code or text; ``level`` is a heading's (1 to 6)."""

    kind: str
    text: str
    level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One write-up without the site's boilerplate. ``removed`` are the lines left out, for review."""

    origin: str
    title: str
    blocks: tuple[Block, ...]
    language: str
    url: str = ""
    removed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole article as plain lines."""
        return "\n".join(block.text for block in self.blocks)
