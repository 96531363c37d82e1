"""Compare a run that works with one that fails: what differs, and what each difference does.

GOOD and BAD are a file or a folder of one run each: configuration, launch script, log, pip list or lock file. Further
files of a side follow with --good and --bad. Differences that explain the failure come first.
Exit code 0: nothing explains the failure; 1: a difference does; 2: usage error; 3: nothing could be read.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from trainmedic.ui.cli import CLEAN, FINDINGS
from trainmedic.ui.cli._input import (
    Unreadable,
    attachments,
    folders_of,
    language_of,
    read_releases,
    run_files,
    use_colour,
)

if TYPE_CHECKING:
    from trainmedic.service.answer.schema import DiffView

FREES_NOTHING = True


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("works", metavar="GOOD", help="file or folder of the run that works")
    parser.add_argument("fails", metavar="BAD", help="file or folder of the run that fails")
    parser.add_argument(
        "--good", action="append", default=[], metavar="FILE", help="additional file of the run that works"
    )
    parser.add_argument(
        "--bad", action="append", default=[], metavar="FILE", help="additional file of the run that fails"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 even if a difference explains the failure")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto", help="language of the output")
    parser.add_argument("--kb", action="append", default=[], metavar="FOLDER", help="folder with your own pages")


def run(options: argparse.Namespace) -> int:
    from trainmedic.ui.diffing import examine
    from trainmedic.ui.releases import library_here

    read_releases()
    language = language_of(options.language)
    good = attachments((*run_files(options.works), *options.good))
    bad = attachments((*run_files(options.fails), *options.bad))
    view = examine(good, bad, language, folders_of(options.kb), library_here())
    sys.stdout.write(_formatted(view, options, language))
    for name, receipt in ((options.works, view.good_receipt), (options.fails, view.bad_receipt)):
        if not any(item.read for item in receipt.inputs if item.name is not None):
            raise Unreadable(f"{name} has no readable text")
    explained = any(difference.explains for difference in view.differences)
    return FINDINGS if explained and not options.exit_zero else CLEAN


def _formatted(view: DiffView, options: argparse.Namespace, language: str) -> str:
    if options.format == "json":
        from trainmedic.kb.serialization import to_json

        return to_json(view, indent=2) + "\n"
    from trainmedic.ui.present import diff_text

    return diff_text.report(view, language, colour=use_colour())
