"""Search the cases."""

from __future__ import annotations

import argparse
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument("--top-k", type=int, default=10, choices=range(1, 51), metavar="N")
    parser.add_argument("--framework", help="only cases of this framework")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.cli._service import advisor_of

    advisor = advisor_of(options)
    filters = {"framework": options.framework} if options.framework else None
    hits = advisor.search(options.query, options.top_k, filters)
    if options.json:
        sys.stdout.write(to_json(hits, indent=2) + "\n")
        return 0
    for hit in hits:
        case = advisor.case(hit.case_id)
        title = case.title.get(options.language) if case is not None else hit.case_id
        sys.stdout.write(f"{hit.score:.4f}  {hit.case_id}  {title}\n        {'; '.join(hit.why)}\n")
    return 0
