"""Mechanism pages: front matter and a body in English and Chinese → `kb.engine.mechanism.Mechanism`.

See kb/mechanisms/README.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from trainmedic.kb.engine.mechanism import (
    COMMONNESS,
    WEAK,
    WEIGHTS,
    Mechanism,
    MechanismSet,
    Observation,
    Origin,
    causes_of,
)
from trainmedic.kb.engine.vocabulary import Vocabulary, vocabulary
from trainmedic.kb.model.page import Page
from trainmedic.kb.pages.case import CaseSet, is_cause, symptom_lines
from trainmedic.kb.pages.condition import condition, signal_kinds
from trainmedic.kb.pages.examples import Example, example_of
from trainmedic.kb.pages.page import KNOWLEDGE, Field, Kind, load, one_id, page_id
from trainmedic.kb.pages.sections import Section, documentation, sections

HEADINGS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": MappingProxyType({"What happens": "cause", "How to confirm": "confirm"}),
        "zh": MappingProxyType({"发生了什么": "cause", "如何确认": "confirm"}),
    }
)
"""Heading on the page → section name, per language."""
EXAMPLES = ("Explained", "Excluded")
REQUIRED = ("id", "title", "family", "predicts", "symptoms", "explains", "origins", "sources")
OPTIONAL = ("against", "excludes", "cases")


def load_mechanisms(paths: Iterable[Path] = (), builtin: Path = KNOWLEDGE) -> MechanismSet:
    """The built-in mechanisms and those under ``paths`` (folders or single pages), in the order of their ids."""
    loaded = load(MECHANISMS, paths, builtin=builtin)
    return MechanismSet(
        mechanisms=tuple(loaded.entries.values()),
        failures=loaded.problems,
        version=loaded.version,
        pages=loaded.pages,
    )


def read_mechanism(path: Path, page: Page, front: Field, words: Vocabulary | None = None) -> tuple[Mechanism, Page]:
    """One page's mechanism, and the page with the lines of its sections. Raises `PageError`."""
    words = words or vocabulary()
    fields = front.fields(REQUIRED, OPTIONAL)
    texts, lines = documentation(page, [part for part in body(page) if part.chapter in HEADINGS], HEADINGS)
    mechanism = Mechanism(
        id=page_id(fields, path),
        title=fields["title"].both(),
        family=fields.text("family"),
        predicts=signal_kinds(fields, "predicts", words),
        symptoms=symptom_lines(fields["symptoms"]),
        explains=tuple(_observation(item, words) for item in fields.items("explains")),
        against=tuple(_observation(item, words) for item in fields.items("against")),
        excludes=tuple(_observation(item, words) for item in fields.items("excludes")),
        origins=_origins(fields["origins"], words),
        cases=fields.texts("cases"),
        sections=MappingProxyType({language: MappingProxyType(parts) for language, parts in texts.items()}),
        sources=tuple(item.reference() for item in fields.items("sources")),
    )
    if mechanism.family != path.parent.name:
        raise fields["family"].error(f"{mechanism.family!r} must be the folder's name {path.parent.name!r}")
    return mechanism, replace(page, lines=MappingProxyType({**page.lines, **lines}))


MECHANISMS = Kind(
    name="mechanisms",
    folder=KNOWLEDGE / "mechanisms",
    is_one=lambda content: not is_cause(content),
    read=read_mechanism,
)


def with_mechanisms(cases: CaseSet, mechanisms: MechanismSet) -> CaseSet:
    """The cases, and the mechanisms with their origins as causes beside them."""
    causes = [cause for mechanism in mechanisms.mechanisms for cause in causes_of(mechanism)]
    versions = hashlib.sha256(f"{cases.version}\0{mechanisms.version}".encode()).hexdigest()[:12]
    return replace(
        cases,
        cases=tuple(sorted((*cases.cases, *causes), key=lambda cause: cause.id)),
        failures=(*cases.failures, *mechanisms.failures),
        version=versions,
    )


def body(page: Page) -> list[Section]:
    return list(sections(page, (*HEADINGS, *EXAMPLES)))


def examples(page: Page) -> tuple[tuple[Example, str], ...]:
    """The examples with the origin that each names (empty: none). Raises `PageError`."""
    return tuple(
        (example_of(page, section, section.chapter, section.heading), _named_origin(section))
        for section in body(page)
        if section.chapter in EXAMPLES
    )


def _named_origin(section: Section) -> str:
    return next((line.removeprefix("origin:").strip() for line in section.prose if line.startswith("origin:")), "")


def _observation(item: Field, words: Vocabulary) -> Observation:
    fields = item.fields(("when", "says"), ("weight",))
    return Observation(
        when=condition(fields["when"], words),
        text=fields.text("when"),
        says=fields["says"].both(),
        weight=fields.choice("weight", tuple(WEIGHTS), WEAK),
    )


def _origins(field: Field, words: Vocabulary) -> tuple[Origin, ...]:
    origins: dict[str, Origin] = {}
    for item in field.items():
        fields = item.fields(("id", "title", "fix"), ("when", "common", "cases", "rules", "symptoms"))
        name = one_id(fields["id"])
        if name in origins:
            raise fields["id"].error(f"the origin {name!r} occurs twice")
        origins[name] = Origin(
            id=name,
            title=fields["title"].both(),
            fix=fields["fix"].both(),
            when=condition(fields["when"], words) if "when" in fields else None,
            text=fields.text("when"),
            common=fields.choice("common", tuple(COMMONNESS), "sometimes"),
            cases=fields.texts("cases"),
            rules=fields.texts("rules"),
            symptoms=symptom_lines(fields["symptoms"]) if "symptoms" in fields else MappingProxyType({}),
        )
    if not origins:
        raise field.error("name at least one")
    return tuple(origins.values())
