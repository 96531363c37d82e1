"""Run the rules on the files of one run, patches included. Imports no embedder, web framework or pydantic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from trainmedic.kb.engine.checker import check as run_rules
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.kb.model.report_view import ReportView
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.answer.views import report_view


def check(
    *inputs: str | Path | Attachment, language: Literal["en", "zh"] = "en", pages: Sequence[Path] = ()
) -> ReportView:
    """Run the rules, in this process, on everything that belongs to one training run.

    A `Path` is read as a file; a string is the text itself, such as a launch command. ``pages`` are folders of your own
    pages. Raises `OSError` for a file that cannot be read; nothing inside a text raises.
    """
    evidence, report = examine([attachment_of(number, item) for number, item in enumerate(inputs, start=1)], pages)
    return report_view(evidence, report, language)


def examine(attachments: Sequence[Attachment], folders: Sequence[Path]) -> tuple[Evidence, Report]:
    """The parsed files and the rules' findings, patches included. ``folders`` hold further pages."""
    evidence = parse("", tuple(attachments))
    frameworks = {run.framework.value if run.framework else None for run in evidence.runs or (evidence.run,)}
    rules = load_rules(tuple(folders), frameworks)
    report = run_rules(evidence, rules)
    return evidence, with_patches(report, evidence, rules, parse) if report.fired else report


def attachment_of(number: int, item: str | Path | Attachment) -> Attachment:
    if isinstance(item, Attachment):
        return item
    if isinstance(item, Path):
        return Attachment(name=str(item), content=item.read_bytes())
    return Attachment(name=f"text-{number}", content=item)
