"""Answers that come as JSON, from the history or from a service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from trainmedic.service.answer import Answer, Section

_ANSWERS = TypeAdapter(Answer)


def answer_from(body: Mapping[str, Any]) -> Answer:
    """The answer of a decoded JSON object. One of an older release has no sections: its text becomes one."""
    answer = _ANSWERS.validate_python(body)
    return answer if answer.sections else replace(answer, sections=(Section(kind="text", body=answer.answer),))
