"""Check configuration, launch scripts, logs and version listings with the rules.

All files given together belong to one run: a launch script, its DeepSpeed JSON, a `pip list`, a log.
Exit code 0: no finding at or above the threshold; 1: some; 2: usage; 3: a file is missing, or none of them is text.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.ui.cli._input import STDIN_NAME, Unreadable, attachments, language_of, write

LEVELS = ("error", "warning", "info")


def arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's options."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="files of one run; - reads standard input")
    parser.add_argument("--format", choices=("text", "json", "sarif", "github"), default="text")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--diff", action="store_true", help="show the patches")
    change.add_argument("--fix", action="store_true", help="apply the fixes that are safe, in place")
    parser.add_argument("--fail-on", choices=LEVELS, default="error", help="least severity that makes the exit code 1")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 whatever is found")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto")
    parser.add_argument(
        "--kb", action="append", default=[], metavar="FOLDER", help="a folder of rule pages of your own"
    )


def run(options: argparse.Namespace) -> int:
    """Check, print, and say by the exit code whether something was found."""
    from trainmedic.service.composition.views import report_view
    from trainmedic.ui.checking import examine

    language = language_of(options.language, os.environ.get("LC_ALL") or os.environ.get("LANG", ""))
    given = attachments(tuple(dict.fromkeys(options.files)))
    folders = _folders(options.kb)
    evidence, report = examine(given, folders)
    if options.fix and (fixed := _apply(report, given)) != given:
        evidence, report = examine(fixed, folders)
    view = report_view(evidence, report, language)
    sys.stdout.write(_formatted(view, options, language))
    threshold = LEVELS.index(options.fail_on)
    found = any(LEVELS.index(finding.severity.value) <= threshold for finding in report.fired)
    if not any(each.read for each in view.receipt.inputs if each.name is not None):
        raise Unreadable("no file is text; nothing was checked")
    return 1 if found and not options.exit_zero else 0


def _formatted(view: object, options: argparse.Namespace, language: str) -> str:
    from trainmedic.service.answer import ReportView

    assert isinstance(view, ReportView)
    if options.format == "json":
        from trainmedic.kb.serialization import to_json

        return to_json(view, indent=2) + "\n"
    if options.format == "sarif":
        import json

        from trainmedic.ui.present import sarif

        return json.dumps(sarif.log(view), ensure_ascii=False, indent=2) + "\n"
    if options.format == "github":
        from trainmedic.ui.present import github

        return github.report(view)
    from trainmedic.ui.present import text

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return text.report(view, language, colour=colour, patches=options.diff)


def _folders(given: Sequence[str]) -> tuple[Path, ...]:
    configured = os.environ.get("TRAINMEDIC_KB_PATHS", "")
    return tuple(Path(part) for part in (*given, *configured.split(os.pathsep)) if part)


def _apply(report: Report, given: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
    """Write the safe edits into the files; the files as they are then. Standard input is left alone."""
    from trainmedic.kb.engine.patches import safe_edits
    from trainmedic.ui.cli import _fixing

    after = []
    for attachment in given:
        own = safe_edits(report, attachment.name)
        raw = attachment.content
        if own and isinstance(raw, bytes) and attachment.name != STDIN_NAME:
            file = _fixing.opened(raw)
            if file is None or not _fixing.changed(file, own):
                print(f"{attachment.name} was not changed: its encoding or its size does not allow it", file=sys.stderr)
            else:
                write(attachment.name, file.to_bytes())
                print(f"fixed {attachment.name}: {len(own)} edits", file=sys.stderr)
                attachment = Attachment(name=attachment.name, content=file.to_bytes())
        after.append(attachment)
    return tuple(after)
