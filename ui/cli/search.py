"""Search the cases."""

from __future__ import annotations

import argparse
import sys

from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.suggest import closest


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument("--top-k", type=int, default=10, choices=range(1, 51), metavar="N")
    parser.add_argument("--framework", help="only cases of this framework")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto", help="language of the output")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.language import language_of
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.cli._service import advisor_of

    if not options.query.strip():
        raise InvalidRequest("nothing to search for")
    advisor = advisor_of(options)
    frameworks = sorted({name for case in advisor.knowledge.cases.published for name in case.frameworks})
    if options.framework and options.framework not in frameworks:
        near = closest(options.framework, frameworks)
        hint = f"did you mean {near}?" if near else f"known: {', '.join(frameworks)}"
        raise InvalidRequest(f"no case is about {options.framework!r}", hint=hint)
    language = language_of(options.query) if options.language == "auto" else options.language
    filters = {"framework": options.framework} if options.framework else None
    hits = advisor.search(options.query, options.top_k, filters)
    if options.json:
        sys.stdout.write(to_json(hits, indent=2) + "\n")
        return 0
    if not hits:
        print("trainmedic: no case is near this text", file=sys.stderr)
    for hit in hits:
        case = advisor.case(hit.case_id)
        title = case.title.get(language) if case is not None else hit.case_id
        sys.stdout.write(f"{hit.score:.4f}  {hit.case_id}  {title}\n        {'; '.join(hit.why)}\n")
    return 0
