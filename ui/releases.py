"""The source of releases, as the settings allow it to be read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainmedic.kb.data_files import default_data_dir
from trainmedic.kb.error_messages.explain import releases_in_use
from trainmedic.kb.errors import InvalidSettings
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.frameworks.tables import read_so_far
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.sources import MODES, Mode, Sources
from trainmedic.ui.plain_settings import setting

if TYPE_CHECKING:
    from trainmedic.kb.sources.index import Index


WAIT_S = 10.0
"""The longest that a request waits for a release of the index."""


def sources_in(data_dir: Path, mode: Mode, mebibytes: int, wait_s: float | None = None) -> Sources:
    """The sources in a service's folder, the packages of the active environment, the index of pip.

    Of the index, as much is stored on demand as ``mebibytes``, and a release is waited for as long as ``wait_s``.
    """
    # trainmedic may be installed beside the environment of the training, which is then the active one.
    active = tuple(map(Path, filter(None, map(os.environ.get, ("VIRTUAL_ENV", "CONDA_PREFIX")))))
    room = mebibytes * 1024**2
    return Sources(data_dir / "sources", mode, index=_index, environments=active, wait_s=wait_s, room=room)


def sources_here() -> Sources:
    """Those of the settings ``sources…``, read without the packages of a service. Raises `InvalidSettings`."""
    mode, room = setting("sources") or "installed", setting("sources_mib") or "2048"
    if mode not in MODES:
        raise InvalidSettings(f"sources is {mode!r}", hint=f"one of {', '.join(MODES)}")
    if not room.isdecimal():
        raise InvalidSettings(f"sources_mib is {room!r}", hint="a number of MiB")
    return sources_in(Path(setting("data_dir") or default_data_dir()), MODES[mode], int(room))


def library_here() -> Library:
    """Library over the sources of this machine."""
    return Library(sources_here())


def learning(read: Read, sources: Sources) -> Read:
    """A reader that fetches the releases that are named and not at hand, all at once, and then reads again; in this
    process they are known afterwards, wherever it reads."""

    def reading(question: str, attachments: Sequence[Attachment] = ()) -> Evidence:
        evidence, before = read(question, attachments), read_so_far()
        if sources.mode == "index":
            unread = [(profiles()[name].package, version) for name, version in catalogue.unread(evidence.versions)]
            for package, version in (*unread, *releases_in_use(evidence)):
                sources.order(package, version)
        catalogue.read_releases(evidence.versions)
        return evidence if read_so_far() == before else read(question, attachments)

    return reading


def _index() -> Index:
    from trainmedic.kb.sources.index import index_of_pip  # takes long to load, and is asked for little

    return index_of_pip()
