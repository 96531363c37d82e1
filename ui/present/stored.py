"""Answers out of the history."""

from __future__ import annotations

from dataclasses import replace

from pydantic import TypeAdapter

from trainmedic.service.answer import Answer, Section
from trainmedic.service.history import StoredAnswer

_ANSWERS = TypeAdapter(Answer)


def answer_of(stored: StoredAnswer) -> Answer:
    """The stored answer. One of an older release has no sections: its text becomes one."""
    answer = _ANSWERS.validate_python(stored.answer)
    return answer if answer.sections else replace(answer, sections=(Section(kind="text", body=answer.answer),))
