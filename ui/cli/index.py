"""Build, verify or inspect the search index.

build    make a new index from the pages and switch to it
verify   check every file of the index against its manifest, and those of the package's own index
status   which indexes there are and their size
switch   use another existing index

The package has an index of its own pages; another is needed, and built at the start, for your own pages or another
embedder.
"""

from __future__ import annotations

import argparse
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build", help="make a new index and switch to it")
    build.add_argument(
        "--package",
        action="store_true",
        help="make the package's own index instead: its pages alone, by the default embedder, if it does not fit",
    )
    actions.add_parser("verify", help="check the files of the index in use")
    actions.add_parser("status", help="show the index in use")
    switch = actions.add_parser("switch", help="use another index")
    switch.add_argument("name")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.glossary.terms import load_glossary
    from trainmedic.kb.pages.rule import load_rules
    from trainmedic.kb.serialization import to_json
    from trainmedic.kb.store import index
    from trainmedic.ui.app import embedder_of, load_causes, prebuild
    from trainmedic.ui.cli._service import settings_of

    if options.action == "build" and options.package:
        sys.stdout.write(to_json(prebuild(), indent=2) + "\n")
        return 0
    settings = settings_of(options)
    root, package = settings.data_dir / "index", index.PREBUILT
    if options.action == "build":
        cases, _, _ = load_causes(settings.extra_pages)
        rules = load_rules(settings.extra_pages)
        manifest = index.build(cases, rules, load_glossary(), embedder_of(settings), root)
        index.switch(root, manifest.id)
    elif options.action == "switch":
        index.switch(root, options.name)
    elif options.action == "verify":
        status = index.status(root, package)
        if status.prebuilt:
            index.verify(package)
        if status.current or not status.prebuilt:
            index.verify(index.current(root))
        print("every file matches the manifest", file=sys.stderr)
    sys.stdout.write(to_json(index.status(root, package), indent=2) + "\n")
    return 0
