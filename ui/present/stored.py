"""Answers decoded from JSON, from the history or from a service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from trainmedic.service.answer.schema import Answer, Section

_ANSWERS = TypeAdapter(Answer)


def answer_from(body: Mapping[str, Any]) -> Answer:
    """The answer in a decoded JSON object. Raises `pydantic.ValidationError`."""
    return with_sections(_ANSWERS.validate_python(body))


def with_sections(answer: Answer) -> Answer:
    """The answer; one of an older release has no sections, so its text becomes one."""
    return answer if answer.sections else replace(answer, sections=(Section(kind="text", body=answer.answer),))
