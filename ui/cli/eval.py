"""Measure the answers over a set of questions: right cause first, in the first three, verdicts, false answers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument(
        "--set", type=Path, default=Path("tests/eval"), metavar="PATH", help="JSONL of questions, or a folder of them"
    )
    parser.add_argument("--split", choices=("all", "tune", "held_out"), default="all")
    parser.add_argument("--misses", action="store_true", help="list what was not answered as it should be")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fit", type=Path, metavar="FILE", help="fit the ranking on the split tune; write it to FILE")


def run(options: argparse.Namespace) -> int:
    """Print the figures."""
    from service.evaluate import evaluate, misses, read_items, table
    from service.wire import to_json
    from ui.cli._input import Unreadable
    from ui.cli._service import advisor_of

    if not options.set.exists():
        raise Unreadable(f"{options.set} does not exist")
    items = [i for i in read_items(options.set) if options.split in ("all", i.split)]
    advisor = advisor_of(options)
    if options.fit is not None:
        from service.fit import fitted

        tuning = [item for item in items if item.split == "tune"]
        note = f"{len(tuning)} questions of {options.set.name} (split tune), cases {advisor.knowledge.cases.version}"
        options.fit.write_text(fitted(tuning, advisor, note), encoding="utf-8")
        print(f"{options.fit}: fitted on {len(tuning)} questions", file=sys.stderr)
        return 0
    evaluation = evaluate(items, advisor.ask)
    if options.json:
        shown = {"overall": evaluation.overall, "groups": evaluation.groups}
        sys.stdout.write(to_json(shown, indent=2) + "\n")
    else:
        sys.stdout.write(table(evaluation))
    if options.misses:
        sys.stdout.write(misses(evaluation))
    return 0
