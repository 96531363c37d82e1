"""What is wrong with the text of a pasted DeepSpeed file: for modules of rules about the file itself."""

from __future__ import annotations

from collections.abc import Iterator

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.run import Region


def flaws(facts: Facts, code: str) -> Iterator[tuple[Region, Problem]]:
    """Problems of one code in DeepSpeed files that were read whole, with the file they stand in."""
    for region in facts.run.regions:
        if region.kind != "json" or region.partial or not region.options or region.options[0].scope != "deepspeed":
            continue
        for problem in facts.evidence.receipt.problems:
            span = problem.span
            if problem.code != code or span is None or span.attachment != region.source:
                continue
            if region.start_line <= span.line <= region.end_line:
                yield region, problem
