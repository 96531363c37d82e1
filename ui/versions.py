"""The versions of the knowledge: which are kept, which is served, how they differ, going back to one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from trainmedic.kb.errors import StoreError
from trainmedic.kb.store import index
from trainmedic.kb.store.embedder import name_of_setting
from trainmedic.kb.store.index import StoreStatus, entries_of, kept, version_folder
from trainmedic.kb.store.manifest import MANIFEST, REBUILD, read_manifest
from trainmedic.kb.store.sources import PageChanges, changes, collect
from trainmedic.service.api.resources import IndexVersion
from trainmedic.service.settings import Settings
from trainmedic.ui.loading import Pages, embedder_of, index_root, load_version, read_pages
from trainmedic.ui.progress import bar


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus(StoreStatus):
    """``in_use`` is the version that is served or None; ``older_than_pages``: a start would build another one."""

    in_use: str | None
    older_than_pages: bool


def build_index(settings: Settings) -> IndexStatus:
    """Make the index of the pages as they are and use it, also if another version was pinned."""
    root, pages = index_root(settings), read_pages(settings.extra_pages)
    with bar("building the search index") as progress:
        manifest = index.build(
            pages.cases,
            pages.rules,
            pages.glossary,
            embedder_of(settings),
            root,
            index.PREBUILT,
            sources=partial(collect, settings.extra_pages),
            progress=progress,
        )
    index.switch(root, manifest.id)
    index.pin(root, None)
    return index_status(settings, pages)


def index_status(settings: Settings, pages: Pages | None = None) -> IndexStatus:
    """The state of the index; ``pages`` are those of the settings, if they are read already."""
    root = index_root(settings)
    status = index.status(root, index.PREBUILT)
    fitting = _fitting(settings, pages or read_pages(settings.extra_pages))
    return IndexStatus(
        root=status.root,
        current=status.current,
        manifest=status.manifest,
        available=status.available,
        bytes=status.bytes,
        prebuilt=status.prebuilt,
        pinned=status.pinned,
        in_use=status.pinned or fitting or status.current,
        older_than_pages=fitting is None,
    )


def list_versions(settings: Settings) -> tuple[IndexVersion, ...]:
    """The versions that are kept, newest first."""
    root = index_root(settings)
    in_use, pinned = index_status(settings).in_use, index.pinned(root)
    versions = []
    for id, folder in kept(root, index.PREBUILT).items():
        manifest = read_manifest(folder)
        versions.append(
            IndexVersion(
                id=id,
                made=_made(folder),
                pages=len(entries_of(folder)),
                embedder=manifest.embedder.name,
                kb_version=manifest.kb_version,
                ruleset_version=manifest.ruleset_version,
                in_use=id == in_use,
                pinned=id == pinned,
                package=folder == index.PREBUILT,
            )
        )
    return tuple(sorted(versions, key=lambda version: version.made, reverse=True))


def version_in_use(settings: Settings) -> str:
    """The id of the version that is served. Raises `StoreError` if there is none yet."""
    id = index_status(settings).in_use
    if id is None:
        raise StoreError("there is no index yet", hint=REBUILD)
    return id


def page_changes(settings: Settings, before: str, after: str) -> PageChanges:
    """What the version ``after`` changed. Raises `NotFound`."""
    root = index_root(settings)
    return changes(*(entries_of(version_folder(root, name, index.PREBUILT)) for name in (before, after)))


def roll_back(settings: Settings, name: str | None) -> IndexStatus:
    """Serve the version ``name`` from now on; None: the pages as they are.

    Raises `NotFound`, or `StoreError` if the version cannot be served any more.
    """
    root = index_root(settings)
    if name is not None:
        id = read_manifest(version_folder(root, name, index.PREBUILT)).id
        fitting = _fitting(settings, read_pages(settings.extra_pages))
        if id == fitting:
            name = None
        else:
            load_version(settings, id)
            name = id
    index.pin(root, name)
    return index_status(settings)


def version_of_answer(settings: Settings, answer: Mapping[str, object]) -> str | None:
    """The id of the version that gave an answer, or None if it is not kept."""
    root = index_root(settings)
    for id, folder in kept(root, index.PREBUILT).items():
        manifest = read_manifest(folder)
        if (manifest.kb_version, manifest.ruleset_version) == (answer.get("kb_version"), answer.get("ruleset_version")):
            return id
    return None


def _fitting(settings: Settings, pages: Pages) -> str | None:
    """The id of the version that is made of these pages by the embedder of the settings."""
    name = name_of_setting(settings.embedder)
    for id, folder in kept(index_root(settings), index.PREBUILT).items():
        embedder = read_manifest(folder).embedder
        if embedder.name == name and pages.index_id(embedder) == id:
            return id
    return None


def _made(folder: Path) -> str:
    return datetime.fromtimestamp((folder / MANIFEST).stat().st_mtime, UTC).isoformat(timespec="seconds")
