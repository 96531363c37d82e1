"""Build, verify or look at the search index.

build    make a new index from the pages and switch to it
verify   check every file of the index against its manifest
status   which index is in use, how large, and whether it is older than the pages
switch   go back to another index that is still there
"""

from __future__ import annotations

import argparse
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's sub-verbs."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("build", help="make a new index and switch to it")
    actions.add_parser("verify", help="check the files of the index in use")
    actions.add_parser("status", help="what is in use")
    switch = actions.add_parser("switch", help="use another index")
    switch.add_argument("name")


def run(options: argparse.Namespace) -> int:
    """Do one of them and print what is in use afterwards."""
    from trainmedic.kb.glossary.terms import load_glossary
    from trainmedic.kb.pages.case import load_cases
    from trainmedic.kb.pages.rule import load_rules
    from trainmedic.kb.serialization import to_json
    from trainmedic.kb.store import index
    from trainmedic.kb.store.embedder import make_embedder
    from trainmedic.ui.cli._service import settings_of

    settings = settings_of(options)
    root = settings.data_dir / "index"
    if options.action == "build":
        embedder = make_embedder(
            settings.embedder,
            base_url=settings.embedder_base_url,
            api_key=settings.embedder_api_key.get_secret_value(),
            query_prefix=settings.embedder_query_prefix,
            document_prefix=settings.embedder_document_prefix,
        )
        cases, rules = load_cases(settings.extra_pages), load_rules(settings.extra_pages)
        manifest = index.build(cases, rules, load_glossary(), embedder, root)
        index.switch(root, manifest.id)
    elif options.action == "switch":
        index.switch(root, options.name)
    elif options.action == "verify":
        index.verify(index.current(root))
        print("every file is as its manifest says", file=sys.stderr)
    sys.stdout.write(to_json(index.status(root), indent=2) + "\n")
    return 0
