"""Check configuration, launch scripts, logs and version listings with the rules.

All files given together belong to one run: a launch script, its DeepSpeed JSON, a `pip list`, a log.
Exit code 0: no finding at or above the threshold; 1: some; 2: usage error; 3: a file is missing, or none is text.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.ui.cli import CLEAN, FINDINGS
from trainmedic.ui.cli._input import Unreadable, attachments, folders_of, language_of, read_releases, use_colour
from trainmedic.ui.cli._rendering import rendered

if TYPE_CHECKING:
    from trainmedic.kb.model.report_view import ReportView

FREES_NOTHING = True
LEVELS = ("error", "warning", "info")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="files of one run; - reads standard input")
    parser.add_argument(
        "--with",
        dest="beside",
        action="append",
        default=[],
        metavar="FILE",
        help="additional file of the run, such as requirements.txt when only changed files are given; may be missing",
    )
    parser.add_argument("--format", default="text", help="text, json, sarif, github, or an installed plugin's")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--diff", action="store_true", help="show the patches")
    change.add_argument("--fix", action="store_true", help="apply the safe fixes in place")
    parser.add_argument("--fail-on", choices=LEVELS, default="error", help="lowest severity that makes the exit code 1")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 even if there are findings")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto", help="language of the output")
    parser.add_argument("--kb", action="append", default=[], metavar="FOLDER", help="folder with your own pages")


def run(options: argparse.Namespace) -> int:
    # A tenth of the time: collecting looks at the rules again and again while they are loaded.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _check(options)
    finally:
        if collects:
            gc.enable()


def _check(options: argparse.Namespace) -> int:
    from trainmedic.kb.hang.judge import read
    from trainmedic.kb.hang.table import table
    from trainmedic.service.answer.views import report_view
    from trainmedic.ui.checking import examine

    read_releases()
    language = language_of(options.language)
    beside = [name for name in options.beside if Path(name).is_file()]
    files = attachments(tuple(dict.fromkeys((*options.files, *beside))))
    folders = folders_of(options.kb)
    evidence, report = examine(files, folders)
    # Checked again after fixing: the exit code is about what is left.
    if options.fix and (fixed := _fixed(report, files)) != files:
        evidence, report = examine(fixed, folders)
    view = report_view(evidence, report, language)
    ranks = table(read(evidence.sources)) if options.format == "text" else ""
    sys.stdout.write(_formatted(view, options, language, ranks))
    threshold = LEVELS.index(options.fail_on)
    failing = any(LEVELS.index(finding.severity.value) <= threshold for finding in report.fired)
    # Last, after the report: a pipeline that passes on garbage must not look like a clean one.
    if not any(item.read for item in view.receipt.inputs if item.name is not None):
        raise Unreadable("none of the given files is readable text")
    return FINDINGS if failing and not options.exit_zero else CLEAN


def _fixed(report: Report, files: Sequence[Attachment]) -> tuple[Attachment, ...]:
    from trainmedic.kb.engine.patches import safe_edits
    from trainmedic.ui.cli._fixing import in_place

    return in_place(files, lambda name: safe_edits(report, name))


def _formatted(view: ReportView, options: argparse.Namespace, language: str, ranks: str) -> str:
    if options.format != "text":
        return rendered(view, options.format)
    from trainmedic.ui.present import text

    return text.report(view, language, ranks=ranks, colour=use_colour(), patches=options.diff)
