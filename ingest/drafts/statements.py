"""A write-up sentence by sentence, each with its line and the section that it is in. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainmedic.ingest.drafts.draft import Draft, Passage
from trainmedic.ingest.drafts.sections import section_of
from trainmedic.ingest.items import Block
from trainmedic.ingest.threads.summary import sentences

LEAST = 4
"""Letters and digits of a sentence: items of Chinese lists are short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence, or one whole block of code. ``section`` is symptom, cause, fix, no_help or confirm."""

    passage: Passage
    section: str
    kind: str

    @property
    def text(self) -> str:
        return self.passage.text


def statements(draft: Draft) -> tuple[Statement, ...]:
    return tuple(_statements(draft.blocks))


def _statements(blocks: tuple[Block, ...]) -> Iterator[Statement]:
    line = 2  # the title is line 1
    section = "symptom"
    for block in blocks:
        lines = block.text.splitlines() or [""]
        if block.kind == "heading":
            section = section_of(block.text) or section
            line += 1
        elif block.kind == "code":
            last = line + len(lines)
            yield Statement(
                passage=Passage(first_line=line + 1, last_line=last, text=block.text), section=section, kind="code"
            )
            line = last + 2
        else:
            whole = [" ".join(lines)] if block.kind == "item" else lines
            for text in whole:
                for sentence in sentences(text, LEAST):
                    passage = Passage(first_line=line, last_line=line, text=sentence)
                    yield Statement(passage=passage, section=section, kind=block.kind)
                line += 1
