"""Names of verdicts in the channels: an uncertain one, and one about a config alone, are named differently."""

from __future__ import annotations

from trainmedic.service.answer.schema import Answer


def shown_verdict(answer: Answer) -> str:
    """``likely``, ``faults``, or the verdict itself."""
    if any(section.kind == "problems" for section in answer.sections):
        return "faults"
    if answer.verdict == "answered" and answer.causes and answer.causes[0].confidence == "low":
        return "likely"
    return answer.verdict
