"""Checks of rules about problems that the readers found in pasted shell commands."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.place import Span
from trainmedic.kb.parse.readers.shell_options import DASHES

_OMITTED = ("...", "…")
_MARKS = "“”„‘’＂＇" + DASHES[1:]
_CUTS = ("blank_after_backslash", "comment_in_command", "missing_backslash")


def typographic_characters(facts: Facts) -> Outcome:
    """Silent where the marks stand only beside the command, as in the text of an ``echo``."""
    problems = shell_problems(facts, ("typographic",))
    in_command = any(mark in text for text in _commands(facts) for mark in _MARKS)
    return fires(*(span for _, span in problems)) if problems and in_command else CLEAR


def _commands(facts: Facts) -> Iterator[str]:
    texts = {source.name: source.text.split("\n") for source in facts.evidence.sources}
    for region in facts.run.regions:
        if region.kind == "command" and region.entry is not None:
            yield "\n".join(texts.get(region.source, ())[region.start_line - 1 : region.end_line])


def command_cut_short(facts: Facts) -> Outcome:
    """The message may use ``{lost}``, the text that the shell skips."""
    mark = "lost to it: "
    problems = [(problem, span) for problem, span in shell_problems(facts, _CUTS) if mark in problem.message]
    lost = dict.fromkeys(problem.message.partition(mark)[2] for problem, _ in problems)
    return fires(*(span for _, span in problems), lost="; ".join(lost)) if problems else CLEAR


def shell_problems(facts: Facts, codes: Collection[str]) -> list[tuple[Problem, Span]]:
    """The problems of these codes inside a command of the run that starts a program, or on the lines next to it.

    An empty line between counts as next to it: it ends a continued command.
    Skips places where the text itself says that something is omitted (a line of three dots).
    """
    commands = [
        (region.source, region.start_line - 1, region.end_line + 2)
        for region in facts.run.regions
        if region.kind == "command" and region.entry is not None
    ]
    return [
        (problem, span)
        for problem in facts.evidence.receipt.problems
        if problem.code in codes and (span := problem.span) is not None
        if any(span.attachment == name and first <= span.line <= last for name, first, last in commands)
        if not _is_omission(span, facts)
    ]


def _is_omission(span: Span, facts: Facts) -> bool:
    if any(sign in span.text for sign in _OMITTED):
        return True
    for source in facts.evidence.sources:
        if source.name == span.attachment:
            before = source.text.split("\n")[: span.line - 1]
            last = next((line.strip(" \t\\#") for line in reversed(before) if line.strip(" \t\\#")), "")
            return last.endswith(_OMITTED)
    return False
