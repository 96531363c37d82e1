"""A resumed run whose checkpoint has done all the steps that are planned."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.log_text import lines
from trainmedic.kb.engine.outcome import CLEAR, NOT_SHOWN, Outcome, fires
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span

MOST = 200
"""Runs of one log that are looked at; the last of them decides."""
_TOTAL = regex(r"Total optimization steps = (?P<steps>[0-9,]{1,15})")
_DONE = (
    (
        "Continuing training from global step",
        regex(r"Continuing training from global step (?P<steps>[0-9,]{1,15})"),
    ),
    (
        "Resuming training from checkpoint with epoch",
        regex(r"Resuming training from checkpoint with epoch [0-9]{1,9} and global step (?P<steps>[0-9,]{1,15})"),
    ),
)


def check(facts: Facts) -> Outcome:
    """Fires where the step to continue from is not below the number planned by the same run of the log."""
    outcome = NOT_SHOWN
    totals = {span.attachment: span for span in lines(facts.evidence, "Total optimization steps", _TOTAL, MOST)}
    for literal, pattern in _DONE:
        done = {span.attachment: span for span in lines(facts.evidence, literal, pattern, MOST)}
        for name, reached in done.items():
            total = totals.get(name)
            if total is None or reached.line < total.line:
                continue
            outcome = _compared(total, reached)
            if outcome.value is True:
                return outcome
    return outcome


def _compared(total: Span, done: Span) -> Outcome:
    planned, reached = _steps(total.text), _steps(done.text)
    if reached < planned:
        return CLEAR
    return fires(total, done, total=str(planned), step=str(reached))


def _steps(text: str) -> int:
    return int("0" + "".join(character for character in text.split()[-1] if character in "0123456789"))
