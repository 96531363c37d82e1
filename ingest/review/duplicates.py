"""Drafts and published cases that are probably about the same incident, with the reasons. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from trainmedic.ingest.drafts.copies import containment, shingles
from trainmedic.ingest.drafts.draft import Draft
from trainmedic.kb.engine.mechanism import MechanismSet
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Text
from trainmedic.kb.parse.error_template import template

ReasonKind = Literal["source", "text", "error", "mechanism"]
WEIGHTS: Mapping[ReasonKind, float] = {"source": 4.0, "text": 3.0, "error": 2.0, "mechanism": 1.0}
NEAR = 0.35
"""Share of the shorter text that occurs in the longer; pages about different incidents share up to a quarter."""
SHORTEST_ERROR = 16
"""Characters of an error message that identify it."""
LEAST = 300
"""Shingles of the shorter text: two short ones share the words of their subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    kind: ReasonKind
    text: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A draft or case that may be the same, and why."""

    id: str
    of: Literal["draft", "case"]
    title: Text
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, kw_only=True)
class Incident:
    """What is compared of a draft or of a case. ``errors`` are templates of messages, ``lines`` of everything in which
    one may be quoted."""

    id: str
    of: Literal["draft", "case"]
    title: Text
    text: str
    addresses: frozenset[str]
    mechanisms: frozenset[str]
    errors: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()

    @cached_property
    def shingles(self) -> frozenset[str]:
        return shingles(self.text)

    @cached_property
    def lines(self) -> frozenset[str]:
        return frozenset(template(line) for line in self.quotes)


def duplicates(incident: Incident, others: Iterable[Incident]) -> tuple[Duplicate, ...]:
    """The others that are probably the same, those with the strongest reasons first."""
    pairs = [(other, tuple(_reasons(incident, other))) for other in others if other.id != incident.id]
    listed = [
        Duplicate(id=other.id, of=other.of, title=other.title, reasons=reasons)
        for other, reasons in pairs
        if any(reason.kind != "mechanism" for reason in reasons) or (reasons and other.of == "draft")
    ]
    return tuple(sorted(listed, key=lambda item: (-sum(WEIGHTS[reason.kind] for reason in item.reasons), item.id)))


def incident_of_draft(draft: Draft, mechanisms: MechanismSet) -> Incident:
    text = "\n".join(draft.lines)
    errors = (template(passage.text) for field in draft.fields if field.name == "error" for passage in field.passages)
    about = frozenset(draft.related[:1])
    return Incident(
        id=draft.id,
        of="draft",
        title=Text(en=draft.title, zh=draft.title),
        text=text,
        addresses=frozenset({address(draft.url)} if draft.url else ()),
        mechanisms=frozenset(item.id for item in mechanisms.mechanisms if about & {*item.all_cases}),
        errors=tuple(dict.fromkeys(error for error in errors if len(error) >= SHORTEST_ERROR)),
        quotes=draft.lines,
    )


def incident_of_case(case: Case, language: str, mechanisms: MechanismSet) -> Incident:
    symptoms = case.symptoms.get("zh" if language == "zh" else "en", ())
    sections = tuple(case.section(name, language) for name in ("symptom", "cause", "fix", "confirm"))
    return Incident(
        id=case.id,
        of="case",
        title=case.title,
        text="\n".join((case.title.get(language), *symptoms, *sections)),
        addresses=frozenset(address(source.url) for source in case.sources),
        mechanisms=frozenset(item.id for item in mechanisms.mechanisms if case.id in item.all_cases),
        quotes=(*case.symptoms.get("en", ()), *case.symptoms.get("zh", ()), *sections[0].splitlines()),
    )


def address(url: str) -> str:
    """An address without what does not change the page: the scheme, a fragment, a final slash."""
    return url.partition("#")[0].partition("://")[2].rstrip("/").lower() or url


def _reasons(one: Incident, other: Incident) -> Iterator[Reason]:
    for url in sorted(one.addresses & other.addresses)[:1]:
        yield Reason(kind="source", text=Text(en=f"the same source: {url}", zh=f"同一来源：{url}"))
    if min(len(one.shingles), len(other.shingles)) >= LEAST:
        share = containment(one.shingles, other.shingles)
        if share >= NEAR:
            percent = f"{share:.0%}"
            text = Text(
                en=f"{percent} of the shorter text is in the longer", zh=f"较短文本的 {percent} 出现在较长文本中"
            )
            yield Reason(kind="text", text=text)
    error = next((error for error in one.errors if any(error in line for line in other.lines)), "")
    if error:
        yield Reason(kind="error", text=Text(en=f"the same error: {error}", zh=f"同一报错：{error}"))
    for mechanism in sorted(one.mechanisms & other.mechanisms)[:1]:
        yield Reason(kind="mechanism", text=Text(en=f"the same mechanism: {mechanism}", zh=f"同一机制：{mechanism}"))
