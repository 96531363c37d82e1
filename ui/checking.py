"""The rules over files of one run, with their patches: what `check` and `watch` share. Loads no embedder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Report
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse import parse


def examine(attachments: Sequence[Attachment], folders: Sequence[Path]) -> tuple[Evidence, Report]:
    """The evidence and the findings of the rules, patches included. ``folders`` hold further rule pages."""
    evidence = parse("", tuple(attachments))
    frameworks = {run.framework.value if run.framework else None for run in evidence.runs or (evidence.run,)}
    rules = load_rules(tuple(folders), frameworks)
    report = check(evidence, rules)
    return evidence, with_patches(report, evidence, rules, parse) if report.fired else report
