"""The rules over files of one run, with their patches: what `check` and `watch` share. Loads no embedder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kb.model.evidence import Evidence
from kb.model.place import Attachment
from kb.model.report import Report


def examine(given: Sequence[Attachment], folders: Sequence[Path]) -> tuple[Evidence, Report]:
    """What was read and what the rules find in it, patches included. ``folders`` hold rule pages beside the shipped."""
    from kb.parse import parse
    from kb.rules.engine import check
    from kb.rules.page import load_rules
    from kb.rules.patch import with_patches

    evidence = parse("", tuple(given))
    frameworks = {run.framework.value if run.framework else None for run in evidence.runs or (evidence.run,)}
    rules = load_rules(tuple(folders), frameworks)
    report = check(evidence, rules)
    return evidence, with_patches(report, evidence, rules, parse) if report.fired else report
