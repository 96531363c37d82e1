"""What the shell reader found wrong with the commands that a run was read from."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.place import Span

_OMITTED = ("...", "…")


def flaws(facts: Facts, codes: Sequence[str]) -> list[Problem]:
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


def told(found: Sequence[Problem]) -> Outcome:
    """The outcome of a rule about these problems; the message may use ``{lost}``, what the shell does not read."""
    if not found:
        return Outcome(value=False)
    said = "; ".join(dict.fromkeys(each.message.partition("lost to it: ")[2] for each in found))
    return Outcome(
        value=True,
        evidence=tuple(dict.fromkeys(each.span for each in found if each.span is not None)),
        user_provided=True,
        values={"lost": said},
    )


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
