"""What the shell reader found wrong with the commands that a run was read from."""

from __future__ import annotations

from collections.abc import Sequence

from kb.model.evidence import Problem
from kb.rules.facts import Facts


def flaws(facts: Facts, codes: Sequence[str]) -> list[Problem]:
    """The problems of these codes that stand within, or right behind, a command of the run."""
    problems = [each for each in facts.evidence.receipt.problems if each.code in codes and each.span is not None]
    if not problems:
        return []
    places = [
        (region.source, region.start_line, region.end_line + 1)
        for region in facts.run.regions
        if region.kind == "command"
    ]
    return [
        each
        for each in problems
        for source, first, last in places
        if each.span is not None and each.span.attachment == source and first <= each.span.line <= last
    ]
