"""Drafts and published cases that are probably about the same incident. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from trainmedic.ingest.drafts.copies import containment, shingles
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Text

NEAR = 0.35
"""Share of the shorter text that occurs in the longer; pages about different incidents share up to a quarter."""
LEAST = 300
"""Shingles of the shorter text: two short ones share the words of their subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A draft or case that may be the same. ``share`` of the shorter text is in the longer; 1 of the same source."""

    id: str
    of: Literal["draft", "case"]
    title: Text
    share: float


@dataclass(frozen=True, kw_only=True)
class Incident:
    """A draft or case, reduced to what is compared."""

    id: str
    of: Literal["draft", "case"]
    title: Text
    text: str
    addresses: frozenset[str]

    @cached_property
    def shingles(self) -> frozenset[str]:
        return shingles(self.text)


def duplicates(incident: Incident, others: Iterable[Incident]) -> tuple[Duplicate, ...]:
    """The others that are probably the same, the likest first."""
    shares = ((other, _share(incident, other)) for other in others if other.id != incident.id)
    listed = (Duplicate(id=one.id, of=one.of, title=one.title, share=share) for one, share in shares if share >= NEAR)
    return tuple(sorted(listed, key=lambda item: (-item.share, item.id)))


def _share(one: Incident, other: Incident) -> float:
    if one.addresses & other.addresses:
        return 1.0
    long_enough = min(len(one.shingles), len(other.shingles)) >= LEAST
    return round(containment(one.shingles, other.shingles), 2) if long_enough else 0.0


def incident_of_draft(draft: Draft) -> Incident:
    return Incident(
        id=draft.id,
        of="draft",
        title=Text(en=draft.title, zh=draft.title),
        text="\n".join(draft.lines),
        addresses=frozenset({address(draft.url)} if draft.url else ()),
    )


def incident_of_case(case: Case, language: str) -> Incident:
    symptoms = case.symptoms.get("zh" if language == "zh" else "en", ())
    sections = (case.section(name, language) for name in ("symptom", "cause", "fix", "confirm"))
    return Incident(
        id=case.id,
        of="case",
        title=case.title,
        text="\n".join((case.title.get(language), *symptoms, *sections)),
        addresses=frozenset(address(source.url) for source in case.sources),
    )


def address(url: str) -> str:
    """An address without what does not change the page: the scheme, a fragment, a final slash."""
    return url.partition("#")[0].partition("://")[2].rstrip("/").lower() or url
