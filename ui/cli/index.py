"""Build, verify or inspect the search index.

build    make a new index from the pages and switch to it
verify   check every file of the index against its manifest
status   which index is in use, its size, and whether it is older than the pages
switch   use another existing index
"""

from __future__ import annotations

import argparse
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("build", help="make a new index and switch to it")
    actions.add_parser("verify", help="check the files of the index in use")
    actions.add_parser("status", help="show the index in use")
    switch = actions.add_parser("switch", help="use another index")
    switch.add_argument("name")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.glossary.terms import load_glossary
    from trainmedic.kb.pages.rule import load_rules
    from trainmedic.kb.serialization import to_json
    from trainmedic.kb.store import index
    from trainmedic.ui.app import embedder_of, load_causes
    from trainmedic.ui.cli._service import settings_of

    settings = settings_of(options)
    root = settings.data_dir / "index"
    if options.action == "build":
        cases, _, _ = load_causes(settings)
        rules = load_rules(settings.extra_pages)
        manifest = index.build(cases, rules, load_glossary(), embedder_of(settings), root)
        index.switch(root, manifest.id)
    elif options.action == "switch":
        index.switch(root, options.name)
    elif options.action == "verify":
        index.verify(index.current(root))
        print("every file matches the manifest", file=sys.stderr)
    sys.stdout.write(to_json(index.status(root), indent=2) + "\n")
    return 0
