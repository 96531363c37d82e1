"""Reads what is pasted, and the releases that it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.sources.derived import Derived
from trainmedic.kb.sources.sources import Sources


@dataclass(frozen=True, slots=True)
class ReaderOfReleases:
    """Reads a release where its source is stored below ``folder`` or installed. Nothing is fetched: a request has
    little time. It can be sent to another process."""

    folder: Path
    mode: Literal["installed", "off"]

    def attach(self) -> None:
        """Let everything in this process find what is derived from these releases."""
        _attach(self)

    def read(self, question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        """As `kb.parse.pipeline.parse`."""
        self.attach()
        return parse(question, attachments)


@cache
def _attach(reader: ReaderOfReleases) -> None:
    Derived(Sources(reader.folder, reader.mode)).attach()
