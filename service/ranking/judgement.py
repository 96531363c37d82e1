"""A model's conclusion, as far as the program proved it. Values alone; the texts are in the answer's language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.model.case import Confidence, Verdict
from trainmedic.kb.model.place import Span
from trainmedic.kb.sources.library import NamedAt
from trainmedic.service.dialogue.what_if import WhatIf
from trainmedic.service.ranking.inference import Cause

Support = Literal["proven", "supported", "unproven"]
"""``proven``: a check that fired, a defect of the installed release or a change that clears a finding bears it out;
``supported``: lines or facts that exist speak for it; ``unproven``: nothing does that the program could find, or it
names a value, a version or a flag that nothing knows. Functions and classes that it names are pointed out alone: only
the source could tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A line of the user's or a computed fact that a hypothesis rests on. ``spans`` is empty for what has no place."""

    id: str
    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One explanation. ``cause`` is the candidate that it elects, None for one of the model's own.

    ``trial`` is what the checks say of its edits, None without any that can be made; ``refused`` are edits that cannot
    be made or that the framework would refuse, with the reason. ``unknown`` are names in its text that occur nowhere in
    the evidence, the knowledge, the catalogues or the source at hand; ``named`` is where that has the others.
    """

    title: str
    because: str
    change: str = ""
    command: str = ""
    verify: str = ""
    cause: Cause | None = None
    points: tuple[Point, ...] = ()
    against: tuple[Point, ...] = ()
    trial: WhatIf | None = None
    refused: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    named: tuple[NamedAt, ...] = ()
    support: Support = "unproven"
    probability: float = 0.0
    confidence: Confidence = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The model's answer to one message. ``reply`` answers what was asked of an earlier answer, or a question that is
    no incident; ``question`` is what would decide, empty if nothing need be asked. ``said`` is how sure the model says
    it is of the first, in percent."""

    model: str
    verdict: Verdict
    said: int = 0
    hypotheses: tuple[Hypothesis, ...] = ()
    reading: str = ""
    reply: str = ""
    question: str = ""
    usage: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def first(self) -> Hypothesis | None:
        return self.hypotheses[0] if self.hypotheses else None
