"""Results of the client: the service's own dataclasses under short names, with the JSON as it came.

Fields that a newer service adds are ignored (``raw`` still has them); fields that an older one lacks get defaults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

from trainmedic.kb.model import report_view
from trainmedic.kb.serialization import from_json
from trainmedic.service.answer import schema as answer
from trainmedic.service.answer.schema import DiffView

T = TypeVar("T")
Step = answer.StepView
_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(answer.Answer):
    """The whole answer. Act on the first cause if ``verdict`` is ``answered``; ``raw`` is the JSON as it came."""

    raw: Mapping[str, Any] = field(default_factory=lambda: _EMPTY, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(report_view.ReportView):
    """The findings of the rules in the files of one run; ``raw`` is the JSON as it came."""

    raw: Mapping[str, Any] = field(default_factory=lambda: _EMPTY, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(answer.AuditView):
    """The known defects of an environment; ``raw`` is the JSON as it came."""

    raw: Mapping[str, Any] = field(default_factory=lambda: _EMPTY, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff(DiffView):
    """A failing run against one that works; ``raw`` is the JSON as it came."""

    raw: Mapping[str, Any] = field(default_factory=lambda: _EMPTY, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of a streamed text. The answer at the end of the stream replaces all of them."""

    text: str


def decode(kind: type[T], text: str) -> T:
    """A value from JSON. Raises `ValueError`."""
    value = from_json(kind, text)
    if isinstance(value, Answer | Audit | Diff | Report):
        return replace(value, raw=MappingProxyType(json.loads(text)))
    return value
