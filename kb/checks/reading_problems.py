"""Checks of rules about problems that the readers found in pasted shell commands and DeepSpeed files."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.frameworks.profiles import BESIDE, HF_TRAINERS
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Region

_OMITTED = ("...", "…")
_CUTS = ("blank_after_backslash", "comment_in_command", "missing_backslash")


def typographic_characters(facts: Facts) -> Outcome:
    problems = shell_problems(facts, ("typographic",))
    return fires(*(span for _, span in problems)) if problems else CLEAR


def command_cut_short(facts: Facts) -> Outcome:
    """The message may use ``{lost}``, the text that the shell skips."""
    mark = "lost to it: "
    problems = [(problem, span) for problem, span in shell_problems(facts, _CUTS) if mark in problem.message]
    lost = dict.fromkeys(problem.message.partition(mark)[2] for problem, _ in problems)
    return fires(*(span for _, span in problems), lost="; ".join(lost)) if problems else CLEAR


def duplicate_key(facts: Facts) -> Outcome:
    for _, problem, span in _deepspeed_problems(facts, "duplicate_key"):
        return fires(span, key=problem.message.split(" ", 1)[0])
    return CLEAR


def json_not_strict(facts: Facts) -> Outcome:
    """Fires if a Hugging Face trainer gets the file: DeepSpeed's own reader is lenient."""
    framework = facts.run.framework
    if framework is None or framework.value not in HF_TRAINERS:
        return CLEAR
    for region, problem, _ in _deepspeed_problems(facts, "json_error"):
        if "not strict JSON" in problem.message:
            return fires(region.options[0].key_span)
    return CLEAR


def shell_problems(facts: Facts, codes: Collection[str]) -> list[tuple[Problem, Span]]:
    """The problems of these codes inside, or on the lines next to, a command of the run that starts a program.

    Skips places where the text itself says that something is omitted (a line of three dots).
    """
    commands = [
        (region.source, region.start_line - 1, region.end_line + 1)
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


def _deepspeed_problems(facts: Facts, code: str) -> Iterator[tuple[Region, Problem, Span]]:
    """Problems of one code in DeepSpeed files that were read whole."""
    for region in facts.run.regions:
        file = BESIDE.get(region.options[0].scope) if region.options else None
        if region.kind != "json" or region.partial or file is None or not file.json:
            continue
        for problem in facts.evidence.receipt.problems:
            span = problem.span
            if problem.code != code or span is None or span.attachment != region.source:
                continue
            if region.start_line <= span.line <= region.end_line:
                yield region, problem, span
