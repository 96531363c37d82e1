"""Ask why a run is broken, with the files that belong to it.

Example: trainmedic ask "loss is nan from the first step" -f train.sh -f train.log
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from trainmedic.ui.cli._input import attachments, question

if TYPE_CHECKING:
    from trainmedic.service.answer import StepView


MODES = "deterministic: no model; investigate: the model looks things up first (its steps go to standard error)"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", metavar="QUESTION", help="what you see; - reads it from standard input")
    parser.add_argument("-f", "--file", action="append", default=[], metavar="FILE", help="config, log, pip list …")
    parser.add_argument("--json", action="store_true", help="the whole answer object")
    parser.add_argument("--why", action="store_true", help="also print what was considered, for and against each")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto")
    parser.add_argument("--mode", choices=("auto", "deterministic", "investigate"), default="auto", help=MODES)
    parser.add_argument("--top-k", type=int, default=5, choices=range(1, 21), metavar="N", help="causes listed (1–20)")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.serialization import to_json
    from trainmedic.service.question.request import Ask
    from trainmedic.ui.cli._service import answer_of

    request = Ask(
        question=question(options.question),
        attachments=attachments(options.file),
        language=options.language,
        top_k=options.top_k,
        mode=options.mode,
    )
    answer = answer_of(options, request, _print_step)
    sys.stdout.write(to_json(answer, indent=2) + "\n" if options.json else answer.answer + "\n")
    if options.why and not options.json:
        from trainmedic.ui.present.text import differential

        sys.stdout.write(f"\n{differential(answer.differential, answer.language)}")
    return 0


def _print_step(step: StepView) -> None:
    print(f"{step.number}. {step.what}", file=sys.stderr, flush=True)
