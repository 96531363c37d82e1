"""Show every setting that decides a run, with its value and where that comes from; and what is silently ignored.

All files given together belong to one run: a launch script, its YAML, a DeepSpeed JSON, a `pip list`.
Exit code 0: a run was recognised; 2: usage error; 3: a file is missing, or nothing configures a run.
"""

from __future__ import annotations

import argparse
import sys

from trainmedic.ui.cli import CLEAN
from trainmedic.ui.cli._input import Unreadable, attachments, derived, language_of, read_releases, use_colour

FREES_NOTHING = True


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="files of one run; - reads standard input")
    parser.add_argument("--all", action="store_true", help="also list defaults that no rule mentions")
    parser.add_argument("--json", action="store_true", help="print JSON, always with all options")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto", help="language of the output")


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.effective.code import by_source
    from trainmedic.kb.effective.table import effective
    from trainmedic.kb.parse.pipeline import parse
    from trainmedic.kb.serialization import to_json
    from trainmedic.ui.present import effective_text

    read_releases()
    evidence = parse("", attachments(tuple(dict.fromkeys(options.files))))
    if not any(run.options for run in evidence.runs):
        raise Unreadable("none of the given files configures a run")
    found = [effective(evidence, run, by_source(derived().tree)) for run in evidence.runs if run.options]
    if options.json:
        sys.stdout.write(to_json(found, indent=2) + "\n")
        return CLEAN
    language = language_of(options.language)
    reports = (effective_text.report(one, language, everything=options.all, colour=use_colour()) for one in found)
    sys.stdout.write("\n".join(reports))
    return CLEAN
