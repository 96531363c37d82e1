"""Problems that the readers found in pasted files, for rules about the files themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Region

_OMITTED = ("...", "…")


def shell_problems(facts: Facts, codes: Sequence[str]) -> list[Problem]:
    """The problems of these codes within, or right before or behind, a command of the run that starts a program.

    Left out are places where the text itself says that something is omitted (a line of three dots).
    """
    problems = [each for each in facts.evidence.receipt.problems if each.code in codes]
    places = [
        (region.source, region.start_line - 1, region.end_line + 1)
        for region in facts.run.regions
        if region.kind == "command" and region.entry is not None
    ]
    return [
        each
        for each in problems
        if each.span is not None
        if any(each.span.attachment == name and first <= each.span.line <= last for name, first, last in places)
        if not _omission(each.span, facts)
    ]


def shell_outcome(problems: Sequence[Problem]) -> Outcome:
    """The outcome of a rule about these problems; the message may use ``{lost}``, the text that the shell skips."""
    if not problems:
        return CLEAR
    lost = "; ".join(dict.fromkeys(problem.message.partition("lost to it: ")[2] for problem in problems))
    return fires(*(problem.span for problem in problems if problem.span is not None), lost=lost)


def _omission(span: Span, facts: Facts) -> bool:
    """Whether the stretch or the line before it stands for something that was left out."""
    if any(sign in span.text for sign in _OMITTED):
        return True
    for source in facts.evidence.sources:
        if source.name == span.attachment:
            before = source.text.split("\n")[: span.line - 1]
            last = next((line.strip(" \t\\#") for line in reversed(before) if line.strip(" \t\\#")), "")
            return last.endswith(_OMITTED)
    return False


def deepspeed_problems(facts: Facts, code: str) -> Iterator[tuple[Region, Problem]]:
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
