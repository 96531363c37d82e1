"""Identifiers of people and machines in a write-up → ``x``, as everywhere (`kb.identities`), and the persons whom
only the words around them show. An account or machine found in one place is hidden wherever the write-up names it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainmedic.ingest.items import Discussion, Document, masked_texts
from trainmedic.kb.data_files import load_table
from trainmedic.kb.fences import fence_after
from trainmedic.kb.identities import NOBODY, Identities, identities_of, mask_identities
from trainmedic.kb.lazy import regex

_PERSONS = [(shape, regex(shape["pattern"])) for shape in load_table("identities.toml")["persons"]]
_VISIBLE = regex(r"\S")


def without_persons(document: Document) -> Document:
    # Once more without secrets: in the raw text, markup may have stood between a key and its value.
    title, *texts = masked_texts((document.title, *(block.text for block in document.blocks)))
    known = identities_of((title, *texts))
    blocks = tuple(
        replace(block, text=hidden(text, known, code=block.kind == "code"))
        for block, text in zip(document.blocks, texts, strict=True)
    )
    return replace(document, title=hidden(title, known), blocks=blocks)


def discussion_without_persons(discussion: Discussion) -> Discussion:
    """The same of a discussion, whose messages are Markdown."""
    known = identities_of((discussion.title, *(message.text for message in discussion.messages)))
    messages = tuple(replace(message, text=hidden_markdown(message.text, known)) for message in discussion.messages)
    return replace(discussion, title=hidden(discussion.title, known), messages=messages)


def hidden(text: str, known: Identities = NOBODY, *, code: bool = False) -> str:
    """``known`` are names that other texts told."""
    text = mask_identities(text, known)
    for shape, pattern in _PERSONS:
        if not (code and shape.get("prose")) and any(map(text.__contains__, shape["needs"])):
            text = pattern.sub(_replacement, text)
    return text


def hidden_markdown(text: str, known: Identities = NOBODY) -> str:
    """The same of Markdown: what is between fences is code."""
    return "\n".join(hidden("\n".join(lines), known, code=code) for lines, code in _stretches(text))


def _stretches(text: str) -> Iterator[tuple[Sequence[str], bool]]:
    """The lines inside and outside of fences, and whether they are code."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        before, fence = fence, fence_after(line, fence)
        if bool(before) != bool(fence) and lines:
            yield lines, bool(before)
            lines = []
        lines.append(line)
    yield lines, bool(fence)


def _replacement(match: re.Match[str]) -> str:
    lead = match.groupdict().get("lead") or ""
    return lead + _VISIBLE.sub("x", match[0][len(lead) :])
