"""Build, verify, inspect or exchange the search index and its versions.

build     make an index of the pages as they are and switch to it; only changed texts are embedded
verify    check every file of the index against its manifest, and those of the package's own index
status    which indexes there are, their size, and whether they are older than the pages
versions  the versions that are kept, newest first, with the one in use
diff      the pages that one version adds, changes and removes against another
rollback  serve an earlier version until --release, whatever the pages say
export    write a version into one file, with the checksum of every member
import    add the version in such a file

The package has an index of its own pages; another is needed, and built at the start, for your own pages or another
embedder. A build that is killed continues where it was.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmedic.service.settings import Settings


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build", help="make an index of the pages as they are and switch to it")
    build.add_argument(
        "--package",
        action="store_true",
        help="make the package's own index instead: its pages alone, by the default embedder, if it does not fit",
    )
    actions.add_parser("verify", help="check the files of the index in use")
    actions.add_parser("status", help="show the index in use and whether it is older than the pages")
    versions = actions.add_parser("versions", help="list the versions that are kept")
    versions.add_argument("--json", action="store_true")
    diff = actions.add_parser("diff", help="the pages in which two versions differ")
    diff.add_argument("before", metavar="A", help="id of a version, or its beginning")
    diff.add_argument("after", metavar="B")
    diff.add_argument("--language", choices=("en", "zh"), default="en")
    diff.add_argument("--json", action="store_true")
    for name in ("rollback", "switch"):
        rollback = actions.add_parser(name, help="serve another version")
        rollback.add_argument("name", nargs="?", metavar="ID", help="id of a version, or its beginning")
        rollback.add_argument("--release", action="store_true", help="serve the pages as they are again")
    export = actions.add_parser("export", help="write a version into one file")
    export.add_argument("file", type=Path, metavar="FILE")
    export.add_argument("name", nargs="?", metavar="ID", help="default: the version in use")
    import_ = actions.add_parser("import", help="add the version in such a file")
    import_.add_argument("file", type=Path, metavar="FILE")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.cli._service import settings_of

    if options.action == "build" and options.package:
        from trainmedic.ui.loading import prebuild

        sys.stdout.write(to_json(prebuild(), indent=2) + "\n")
        return 0
    settings = settings_of(options)
    if options.action == "build":
        from trainmedic.ui.versions import build_index

        sys.stdout.write(to_json(build_index(settings), indent=2) + "\n")
        return 0
    actions = {
        "verify": _verify,
        "rollback": _rollback,
        "switch": _rollback,
        "versions": _versions,
        "diff": _diff,
        "export": _export,
        "import": _import,
    }
    if options.action != "status":
        actions[options.action](options, settings)
    if options.action in ("verify", "status", "rollback", "switch"):
        from trainmedic.ui.versions import index_status

        sys.stdout.write(to_json(index_status(settings), indent=2) + "\n")
    return 0


def _verify(options: argparse.Namespace, settings: Settings) -> None:
    from trainmedic.kb.store import index
    from trainmedic.kb.store.manifest import verify
    from trainmedic.ui.loading import index_root

    root = index_root(settings)
    status = index.status(root, index.PREBUILT)
    if status.prebuilt:
        verify(index.PREBUILT)
    if status.current or not status.prebuilt:
        verify(index.current(root))
    print("every file matches the manifest", file=sys.stderr)


def _rollback(options: argparse.Namespace, settings: Settings) -> None:
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.ui.versions import roll_back

    if bool(options.name) == options.release:
        raise InvalidRequest("rollback needs either the id of a version or --release")
    pinned = roll_back(settings, options.name).pinned
    served = f"the version {pinned} is served until `trainmedic index rollback --release`"
    print(served if pinned else "the pages are served as they are", file=sys.stderr)


def _versions(options: argparse.Namespace, settings: Settings) -> None:
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.versions import list_versions

    versions = list_versions(settings)
    if options.json:
        sys.stdout.write(to_json(versions, indent=2) + "\n")
        return
    for version in versions:
        marks = [word for word in ("in_use", "pinned", "package") if getattr(version, word)]
        note = f"  {', '.join(marks).replace('_', ' ')}" if marks else ""
        print(f"{version.id}  {version.made}  {version.pages} pages  {version.embedder}{note}")


def _diff(options: argparse.Namespace, settings: Settings) -> None:
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.versions import page_changes

    changes = page_changes(settings, options.before, options.after)
    if options.json:
        sys.stdout.write(to_json(changes, indent=2) + "\n")
        return
    for mark, entries in (("+", changes.added), ("~", changes.changed), ("-", changes.removed)):
        for entry in entries:
            print(f"{mark} {entry.kind} {entry.id}  {getattr(entry, options.language)}")


def _export(options: argparse.Namespace, settings: Settings) -> None:
    from trainmedic.kb.store import index
    from trainmedic.kb.store.bundle import export
    from trainmedic.ui.loading import index_root
    from trainmedic.ui.versions import version_in_use

    name = options.name or version_in_use(settings)
    manifest = export(index.version_folder(index_root(settings), name, index.PREBUILT), options.file)
    print(f"{options.file}: the version {manifest.id}, {manifest.chunks} chunks", file=sys.stderr)


def _import(options: argparse.Namespace, settings: Settings) -> None:
    from trainmedic.kb.store.bundle import import_
    from trainmedic.ui.loading import embedder_of, index_root

    manifest = import_(options.file, index_root(settings), embedder_of(settings).identity)
    print(
        f"the version {manifest.id} is kept; it is used if it fits the pages, "
        f"otherwise after `trainmedic index rollback {manifest.id}`",
        file=sys.stderr,
    )
