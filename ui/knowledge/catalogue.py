"""The knowledge as a list that a reader searches, by kind and by framework. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Text
from trainmedic.service.ranking.knowledge import Knowledge

Kind = Literal["cases", "mechanisms", "rules", "defects"]
KINDS: tuple[Kind, ...] = ("cases", "mechanisms", "rules", "defects")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One page in the list. ``group`` is its class of failure, ``text`` all that is searched, in lower case."""

    kind: Kind
    id: str
    title: Text
    text: str
    group: str = ""
    packages: tuple[str, ...] = ()
    badge: str = ""
    """The grade of a case, the severity of a rule, the effect of a defect."""
    affected: str = ""
    """The releases with a defect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Query of the address; an empty field asks for everything."""

    kind: str = ""
    query: str = ""
    package: str = ""


class Catalogue:
    """All entries of one version of the knowledge, in the order of their kinds and ids."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.entries = tuple(_entries(knowledge))
        self.counts: Mapping[str, int] = Counter(entry.kind for entry in self.entries)
        self.packages = tuple(sorted({name for entry in self.entries for name in entry.packages}))

    def selected(self, selection: Selection, near: Sequence[str] = ()) -> list[Entry]:
        """The entries with every word searched for, the best first; without any, those of the ids in ``near``."""
        fitting = [entry for entry in self.entries if _fits(entry, selection)]
        terms = selection.query.casefold().split()
        if not terms:
            return fitting
        places = {id: place for place, id in enumerate(near)}
        literal = [entry for entry in fitting if all(term in entry.text for term in terms)]
        literal.sort(key=lambda entry: (-_in_title(entry, terms), places.get(entry.id, len(places))))
        return literal or sorted((entry for entry in fitting if entry.id in places), key=lambda e: places[e.id])


def _fits(entry: Entry, selection: Selection) -> bool:
    return selection.kind in ("", entry.kind) and (not selection.package or selection.package in entry.packages)


def _in_title(entry: Entry, terms: Iterable[str]) -> int:
    title = f"{entry.id} {entry.title.en} {entry.title.zh}".casefold()
    return sum(term in title for term in terms)


def _entries(knowledge: Knowledge) -> Iterator[Entry]:
    causes = sorted(knowledge.published.values(), key=lambda cause: cause.id)
    families = {cause.id: cause.family for cause in causes}
    yield from (_of_cause(cause, "cases") for cause in causes if cause.level == "case")
    yield from (_of_cause(cause, "mechanisms") for cause in causes if cause.level == "mechanism")
    yield from (_of_rule(rule, families) for rule in sorted(knowledge.rules.rules, key=lambda rule: rule.id))
    yield from (_of_defect(defect, knowledge.published.get(defect.id)) for defect in knowledge.defects.all)


def _of_cause(cause: Case, kind: Literal["cases", "mechanisms"]) -> Entry:
    return Entry(
        kind=kind,
        id=cause.id,
        title=cause.title,
        group=cause.family,
        packages=cause.frameworks if kind == "cases" else (),
        text=_text(cause.id, cause.title, cause.frameworks, cause.settings, *cause.symptoms.values()),
        badge=cause.evidence if kind == "cases" else "",
    )


def _of_rule(rule: Rule, families: Mapping[str, str]) -> Entry:
    return Entry(
        kind="rules",
        id=rule.id,
        title=rule.title,
        group=next((families[case] for case in rule.cases if case in families), ""),
        packages=tuple(rule.applies.get("framework", ())),
        text=_text(rule.id, rule.title, (rule.when,)),
        badge=rule.severity.value,
    )


def _of_defect(defect: Defect, cause: Case | None) -> Entry:
    symptoms = (cause or defect).symptoms
    return Entry(
        kind="defects",
        id=defect.id,
        title=defect.title,
        packages=(defect.package,),
        text=_text(defect.id, defect.title, (defect.package, defect.message), defect.touches, *symptoms.values()),
        badge=defect.effect.value,
        affected=defect.affected,
    )


def _text(identifier: str, title: Text, *parts: Iterable[str]) -> str:
    return "\n".join((identifier, title.en, title.zh, *(text for part in parts for text in part))).casefold()
