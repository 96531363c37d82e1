"""Find the known defects of installed packages, and the versions without them.

FILE lists packages: pip list or freeze, requirements, uv.lock, poetry.lock, pdm.lock, pylock.toml, conda list or
environment.yml, a bill of materials. The configuration, launch script or log of a run among the files decides the
defects that only some runs meet. With --good the environment is compared with one that works.
Exit code 0: no certain defect at or above the threshold; 1: some; 2: usage error; 3: nothing could be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainmedic.kb.model.place import Attachment
from trainmedic.ui.cli import CLEAN, FINDINGS
from trainmedic.ui.cli._input import (
    Unreadable,
    attachments,
    folders_of,
    language_of,
    question,
    read_releases,
    use_colour,
)
from trainmedic.ui.cli._rendering import rendered

if TYPE_CHECKING:
    from trainmedic.kb.model.report import Edit
    from trainmedic.service.answer.schema import AuditView

FREES_NOTHING = True
EFFECTS = ("silent", "hang", "crash", "save", "resume", "memory", "slow", "log")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="package lists and files of the run; - reads standard input"
    )
    parser.add_argument("--installed", action="store_true", help="audit the packages installed in this Python")
    parser.add_argument("--good", action="append", default=[], metavar="FILE", help="packages of a run that works")
    parser.add_argument("--bad", action="append", default=[], metavar="FILE", help="packages of the run that fails")
    parser.add_argument("--question", default="", metavar="TEXT", help="what you see; orders the defects by it")
    parser.add_argument("--format", default="text", help="text, json, sarif, github, or an installed plugin's")
    parser.add_argument("--all", action="store_true", help="also list and clear defects that may be there")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--diff", action="store_true", help="show the changes to the requirement files")
    change.add_argument("--fix", action="store_true", help="edit the requirement files in place")
    levels = (*EFFECTS, "never")
    parser.add_argument(
        "--fail-on", choices=levels, default="crash", help="least harmful effect that makes the exit code 1"
    )
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 even if there are defects")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto", help="language of the output")
    parser.add_argument(
        "--kb", action="append", default=[], metavar="FOLDER", help="folder with your own lists of defects"
    )


def run(options: argparse.Namespace) -> int:
    from trainmedic.kb.errors import InvalidRequest
    from trainmedic.ui.auditing import examine, installed_packages
    from trainmedic.ui.releases import library_here

    if not (options.files or options.bad or options.installed):
        raise InvalidRequest("nothing to audit", hint="name a list of packages, or --installed")
    read_releases()
    language = language_of(options.language)
    files = attachments(tuple(dict.fromkeys((*options.bad, *options.files))))
    if options.installed:
        files = (installed_packages(), *files)
    good = attachments(tuple(dict.fromkeys(options.good)))
    text, folders = question(options.question), folders_of(options.kb)
    library = library_here() if good else None
    view, edits = examine(files, good, text, language, folders, with_possible=options.all, library=library)
    # Audited again after the change: the exit code is about what is left.
    if options.fix and (fixed := _fixed(edits, files)) != files:
        view, _ = examine(fixed, good, text, language, folders, with_possible=options.all, library=library)
    sys.stdout.write(_formatted(view, options, language))
    if not any(item.read for item in view.receipt.inputs if item.name is not None):
        raise Unreadable("none of the given files is readable text")
    failing = options.fail_on != "never" and any(
        defect.certain and EFFECTS.index(defect.effect) <= EFFECTS.index(options.fail_on) for defect in view.defects
    )
    return FINDINGS if failing and not options.exit_zero else CLEAN


def _fixed(edits: Sequence[Edit], files: Sequence[Attachment]) -> tuple[Attachment, ...]:
    from trainmedic.ui.cli._fixing import in_place

    return in_place(files, lambda name: [edit for edit in edits if edit.span.attachment == name])


def _formatted(view: AuditView, options: argparse.Namespace, language: str) -> str:
    if options.format != "text":
        return rendered(view, options.format, with_possible=options.all)
    from trainmedic.ui.present import audit_text

    return audit_text.report(view, language, colour=use_colour(), patches=options.diff, with_possible=options.all)
