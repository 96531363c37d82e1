"""Build, verify or inspect the search index.

build   make the index of the pages as they are; only changed texts are embedded
verify  check every file of the index against its manifest, and those of the index in trainmedic-data
status  the index in use, its size, and whether it is older than the pages

The package trainmedic-data has the index of the shipped pages; another is needed, and built at the start, for your own
pages or another embedder. A build that is killed continues where it was.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmedic.kb.store.manifest import Manifest
    from trainmedic.service.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """``manifest`` is that of the index in use, or null; ``bytes`` what there is below ``root``.

    ``older_than_pages``: a start would build another index.
    """

    root: str
    in_use: str | None
    prebuilt: str | None
    older_than_pages: bool
    bytes: int
    manifest: Manifest | None


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build", help="build the index of the current pages")
    build.add_argument(
        "--package",
        action="store_true",
        help="build the one in trainmedic-data instead (shipped pages, default embedder), unless it is up to date",
    )
    actions.add_parser("verify", help="check the files of the index in use")
    actions.add_parser("status", help="show the index in use and whether it is older than the pages")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.cli._service import settings_of

    if options.action == "build" and options.package:
        from trainmedic.ui.loading import prebuild

        sys.stdout.write(to_json(prebuild(), indent=2) + "\n")
        return 0
    settings = settings_of(options)
    if options.action == "build":
        _build(settings)
    elif options.action == "verify":
        _verify(settings)
    sys.stdout.write(to_json(_status(settings), indent=2) + "\n")
    return 0


def _build(settings: Settings) -> None:
    from trainmedic.kb.store import build, shipped
    from trainmedic.ui.loading import embedder_of, index_root, read_pages
    from trainmedic.ui.progress import bar

    pages = read_pages(settings.extra_pages)
    with bar("building the search index") as progress:
        build.build(
            pages.cases,
            pages.rules,
            pages.glossary,
            embedder_of(settings),
            index_root(settings),
            shipped.index(),
            progress=progress,
        )


def _verify(settings: Settings) -> None:
    from trainmedic.kb.store import build, shipped
    from trainmedic.kb.store.manifest import manifest_or_none, verify
    from trainmedic.ui.loading import index_root

    own, packaged = build.indexes(index_root(settings)), shipped.index()
    for folder in (*own, packaged):
        if folder != packaged or not own or manifest_or_none(folder) is not None:
            verify(folder)
    print("every file matches the manifest", file=sys.stderr)


def _status(settings: Settings) -> IndexStatus:
    from trainmedic.kb.store import build, shipped
    from trainmedic.kb.store.embedder import name_of_setting
    from trainmedic.kb.store.manifest import manifest_or_none, read_manifest
    from trainmedic.ui.loading import index_root, read_pages

    root, name = index_root(settings), name_of_setting(settings.embedder.name)
    own, packaged = [read_manifest(folder) for folder in build.indexes(root)], manifest_or_none(shipped.index())
    pages = read_pages(settings.extra_pages)
    available = own if packaged is None else [packaged, *own]
    fitting = [each for each in available if each.embedder.name == name and each.id == pages.index_id(each.embedder)]
    in_use = next(iter((*fitting, *own)), None)
    return IndexStatus(
        root=str(root),
        in_use=in_use.id if in_use else None,
        prebuilt=packaged.id if packaged else None,
        older_than_pages=not fitting,
        bytes=sum(file.stat().st_size for file in root.rglob("*") if file.is_file()),
        manifest=in_use,
    )
