"""Two reports on one run, before and after it changed: which findings cleared, which are new, which are left. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Finding, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Fired findings: of the earlier report alone, of the later one alone, and of both (as the later has them).

    ``ruled_out`` are causes whose fix was applied. ``unstarted``: the later configuration has not run yet.
    """

    cleared: tuple[Finding, ...] = ()
    new: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    ruled_out: tuple[Case, ...] = ()
    unstarted: bool = False


def difference(earlier: Report, later: Report) -> Difference:
    before = {finding.rule_id for finding in earlier.fired}
    after = {finding.rule_id for finding in later.fired}
    return Difference(
        cleared=tuple(finding for finding in earlier.fired if finding.rule_id not in after),
        new=tuple(finding for finding in later.fired if finding.rule_id not in before),
        left=tuple(finding for finding in later.fired if finding.rule_id in before),
    )
