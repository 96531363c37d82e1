"""The source of releases, as the settings allow it to be read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.sources.sources import Mode, Sources

if TYPE_CHECKING:
    from trainmedic.kb.sources.index import Index


def sources_in(data_dir: Path, mode: Mode) -> Sources:
    """What is stored in a service's folder, the packages of the active environment, the index of pip."""
    # trainmedic may be installed beside the environment of the training, which is then the active one.
    active = filter(None, map(os.environ.get, ("VIRTUAL_ENV", "CONDA_PREFIX")))
    return Sources(data_dir / "sources", mode, index=_index, environments=tuple(map(Path, active)))


def learning(read: Read) -> Read:
    """A reader after which the releases that were named are known here, wherever it read."""

    def reading(question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        evidence = read(question, attachments)
        catalogue.read_releases(evidence.versions)
        return evidence

    return reading


def _index() -> Index:
    from trainmedic.kb.sources.index import index_of_pip  # takes long to load, and is asked for little

    return index_of_pip()
