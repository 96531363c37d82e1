"""A write-up on its way in: as fetched, and as cleaned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """One write-up as its source had it. ``format`` is text, markdown or html; ``origin`` names it for people."""

    origin: str
    content: str
    format: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something a source could not give. A run goes on without it and says so."""

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
    """One write-up without what the site put around it. ``removed`` are the lines left out, for review."""

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
