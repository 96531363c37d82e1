"""Find out what is wrong with a run: trainmedic finds its command, configuration, logs and versions itself.

RUN is the run's folder (default: this one), the number of one of its processes, or job:NUMBER of Slurm. The answer is
one page: cause, evidence, patch, what does not help, what was not found. Only files below the folder, and those that
the process or the job names, are read, for five seconds at most. Nothing is changed, and nothing sent but, masked, to
the language model that you configured. With --stacks the stacks of its ranks are taken: by py-spy, or by a signal to
those whose script prints its stack on it.

Examples: trainmedic doctor outputs/sft; trainmedic doctor 12345 --symptom "loss stays at 0"
          trainmedic doctor 12345 --stacks      where each rank of a run that hangs stands
          trainmedic doctor --bundle out.zip    what was found, secrets masked, to send to someone

Exit code 0: nothing found; 1: a cause, an error or a sign of failure; 2: usage error; 3: nothing of a run was found.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from trainmedic.ui.cli import CLEAN, FINDINGS
from trainmedic.ui.cli._input import Unreadable, folders_of, language_of, read_releases, write

if TYPE_CHECKING:
    from trainmedic.service.answer.schema import Answer
    from trainmedic.ui.doctor.collect import Collected


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", default=".", metavar="RUN", help="folder, process or job:NUMBER")
    parser.add_argument("--symptom", default="", metavar="TEXT", help="what you see, in your own words")
    parser.add_argument("--json", action="store_true", help="print the page as JSON")
    parser.add_argument(
        "--bundle", metavar="FILE", help="also write the collected files, secrets masked, to a zip archive"
    )
    parser.add_argument(
        "--stacks", action="store_true", help="the run hangs: also take the stacks of the running ranks"
    )
    parser.add_argument("--quick", action="store_true", help="only rules, known defects and messages: takes a second")
    parser.add_argument("--mode", choices=("auto", "deterministic", "investigate"), default="auto", help="as for ask")
    parser.add_argument("--language", choices=("auto", "en", "zh"), default="auto", help="language of the output")


def run(options: argparse.Namespace) -> int:
    from trainmedic.ui.doctor.answering import is_failing, page
    from trainmedic.ui.doctor.bundle import bundle_of
    from trainmedic.ui.doctor.collect import collect, with_stacks
    from trainmedic.ui.doctor.target import target_of
    from trainmedic.ui.present.page import as_json, text

    collected = collect(target_of(options.target))
    if options.stacks:
        collected = with_stacks(collected)
    if not collected.of_a_run and not options.symptom:
        raise Unreadable(
            f"there is nothing of a run in {collected.target.folder}", hint="name the folder of its logs or a process"
        )
    if options.bundle:
        write(options.bundle, bundle_of(collected))
    answer, checks_only = _answer(options, collected)
    shown = page(collected, answer, checks_only=checks_only, asked=bool(options.symptom))
    sys.stdout.write(as_json(shown) + "\n" if options.json else text(shown))
    found = answer.verdict != "no_fault" and (is_failing(answer.signals) or shown.causes or shown.messages)
    return FINDINGS if found else CLEAN


def _answer(options: argparse.Namespace, collected: Collected) -> tuple[Answer, bool]:
    """The answer as `ask` gives it, or that of the rules where what it needs is not installed; which of the two."""
    from trainmedic.kb.errors import StoreError
    from trainmedic.ui.doctor.answering import checked

    read_releases()
    language = language_of(options.language)
    if not options.quick:
        try:
            from trainmedic.service.dialogue.request import Ask
            from trainmedic.ui.cli._service import answer_of

            request = Ask(
                question=options.symptom, attachments=collected.attachments, language=language, mode=options.mode
            )
            return answer_of(options, request, at_once=True), False
        except (ModuleNotFoundError, StoreError):
            pass
    return checked(options.symptom, collected.attachments, language, folders_of(())), True
