"""A resolved report of someone else: what was seen and what resolved it, in its own words. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Role = Literal["reporter", "maintainer", "author", "other"]
"""Who wrote a passage; ``author`` of a write-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A passage as it is written; ``message`` counts the messages of the thread from 1."""

    text: str
    role: Role
    message: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One write-up or issue thread. ``key`` identifies it within its ``source``, ``digest`` its text; ``origin`` says
    where in the source it was read.

    ``resolution`` is empty and ``resolved_by`` None if no one said what resolved it. ``versions`` maps package →
    version. ``mechanisms`` says what the curated knowledge takes its resolution for: mechanism → probability.
    """

    source: str
    key: str
    url: str
    title: str
    language: Literal["en", "zh"]
    digest: str
    updated: str = ""
    origin: str = ""
    symptom: tuple[Quote, ...] = ()
    resolution: tuple[Quote, ...] = ()
    resolved_by: Role | None = None
    framework: str = ""
    algorithm: str = ""
    model_family: str = ""
    signals: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    mechanisms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def id(self) -> str:
        return f"{self.source}:{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarThread:
    """A thread like a question; ``likeness`` is from 0 to 1."""

    thread: Thread
    likeness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """How much resolved threads speak for a cause or mechanism, from 0 to 1, and which."""

    weight: float
    threads: tuple[Thread, ...]


def from_text(text: str) -> Thread:
    """A thread from its JSON (`kb.serialization.to_json`)."""
    data: dict[str, Any] = json.loads(text)
    for name in ("symptom", "resolution"):
        data[name] = tuple(Quote(**quote) for quote in data[name])
    for name in ("versions", "mechanisms"):
        data[name] = MappingProxyType(data[name])
    return Thread(**{**data, "signals": tuple(data["signals"])})
