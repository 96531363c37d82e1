"""``trainmedic kb sources``: the stored source of packages."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from trainmedic.kb.errors import InvalidRequest
from trainmedic.ui.cli._input import sources


def arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb_of_sources", required=True, metavar="ACTION")
    listing = verbs.add_parser("list", help="list what is stored")
    listing.add_argument("package", nargs="?", default="")
    fetch = verbs.add_parser("fetch", help="store releases from the package index or from files")
    what = "PACKAGE==VERSION, PACKAGE (its newest release), or a wheel or sdist"
    fetch.add_argument("release", nargs="+", metavar="RELEASE", help=what)
    place = fetch.add_mutually_exclusive_group()
    place.add_argument("--installed", action="store_true", help="store the installed releases of these packages")
    place.add_argument("--checkout", type=Path, metavar="FOLDER", help="store PACKAGE==VERSION from a git checkout")
    fetch.add_argument("--tag", help="tag or commit of the checkout")
    fetch.add_argument("--below", default="", metavar="FOLDER", help="folder of the project in the checkout")
    export = verbs.add_parser("export", help="export what is stored to one file")
    export.add_argument("file", type=Path)
    export.add_argument("package", nargs="*", help="only these packages")
    importing = verbs.add_parser("import", help="import the releases from such a file")
    importing.add_argument("file", nargs="+", type=Path)


def run(options: argparse.Namespace) -> int:
    actions = {"list": _list, "fetch": _fetch, "export": _export, "import": _import}
    return actions[options.verb_of_sources](options)


def _list(options: argparse.Namespace) -> int:
    for pack in sources().store.releases(options.package):
        size = sum(pack.places[digest].size for digest in pack.files.values())
        about = f"{pack.origin}  {pack.released or 'no date'}  {len(pack.files)} files  {size / 1e6:.1f} MB"
        sys.stdout.write(f"{pack.package}=={pack.version}  {about}\n")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    from trainmedic.kb.sources.archives import archive_tree
    from trainmedic.kb.sources.checkout import checkout_tree

    found = sources()
    for text in options.release:
        package, _, version = text.partition("==")
        if options.checkout:
            if not version or not options.tag:
                raise InvalidRequest(
                    "a checkout needs PACKAGE==VERSION and --tag", hint="such as trl==1.16.0 --tag v1.16.0"
                )
            tree = found.store.add(checkout_tree(options.checkout, options.tag, package, version, below=options.below))
        elif options.installed:
            tree = found.store.add(found.here(package))
        elif Path(text).is_file():
            tree = found.store.add(archive_tree(Path(text)))
        else:
            tree = found.fetch(package, version or found.newest(package))
        print(f"{tree.package}=={tree.version}  {len(tree.paths())} files", file=sys.stderr)
    return 0


def _export(options: argparse.Namespace) -> int:
    from trainmedic.kb.sources.bundle import export_bundle

    print(f"{export_bundle(sources().store, options.file, options.package)} releases", file=sys.stderr)
    return 0


def _import(options: argparse.Namespace) -> int:
    from trainmedic.kb.sources.bundle import import_bundle

    store = sources().store
    for file in options.file:
        print(f"{file}: {import_bundle(store, file)} releases", file=sys.stderr)
    return 0
