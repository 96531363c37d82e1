"""Two reports on one run, before and after it changed: which findings cleared, which are new, which are left. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Finding, Report
from trainmedic.service.dialogue.what_if import AppliedChange, RejectedChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Failures in a new log or traceback, and in what was sent before; kinds of signals and exceptions."""

    before: tuple[str, ...]
    now: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def same(self) -> bool:
        return not set(self.before).isdisjoint(self.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Fired findings: of the earlier report alone, of the later one alone, and of both (as the later has them); in
    ``differs`` those of both that now say something else.

    ``facts`` are what this message said in place of what was read, ``unknown`` what it says that is not a fact.
    ``ruled_out`` are causes whose fix was applied, ``refuted`` those of the answer before that the facts
    exclude. ``attempts`` are names of what else did not help, ``shown`` what the
    message's own log shows. ``unstarted``: the later configuration has not run yet.
    """

    facts: tuple[AppliedChange, ...] = ()
    unknown: tuple[RejectedChange, ...] = ()

    cleared: tuple[Finding, ...] = ()
    new: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    differs: tuple[Finding, ...] = ()
    ruled_out: tuple[Case, ...] = ()
    refuted: tuple[Case, ...] = ()
    attempts: tuple[str, ...] = ()
    shown: Failures | None = None
    unstarted: bool = False


def difference(earlier: Report, later: Report) -> Difference:
    before = {finding.rule_id: finding.message for finding in earlier.fired}
    after = {finding.rule_id for finding in later.fired}
    return Difference(
        cleared=tuple(finding for finding in earlier.fired if finding.rule_id not in after),
        new=tuple(finding for finding in later.fired if finding.rule_id not in before),
        left=tuple(f for f in later.fired if before.get(f.rule_id) == f.message),
        differs=tuple(f for f in later.fired if before.get(f.rule_id, f.message) != f.message),
    )
