"""The knowledge as a list that a reader searches, filters by package and release, and reads by groups. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

from packaging.version import Version

from trainmedic.kb.audit.defect import Defect, Effect
from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Text
from trainmedic.kb.versions import Interval, interval_holds, parse_range, parse_version
from trainmedic.service.ranking.knowledge import Knowledge

Kind = Literal["cases", "mechanisms", "rules", "defects"]
KINDS: tuple[Kind, ...] = ("cases", "mechanisms", "rules", "defects")
SNIPPET = 170
"""Characters of a snippet."""
SHORTEST_PART = 3
"""Letters from which on a word is marked within longer ones."""
NEAR = 8
"""Entries that are near in meaning but contain other words than those searched for."""
_CJK = ("\u3400", "\u9fff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One page in the list. ``group`` is its class of failure, of a defect its effect. ``lines`` are what it says in a
    user's words, by language; ``text`` all that is searched, in lower case. ``affected`` maps a package to a range."""

    kind: Kind
    id: str
    title: Text
    group: str
    packages: tuple[str, ...]
    lines: Mapping[str, tuple[str, ...]]
    text: str
    badge: str
    affected: Mapping[str, str]
    is_bounded: bool = True
    """False if nobody knows which release brought the defect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the address asks for; an empty field asks for everything. ``version`` is a release (``0.19.1``) or the
    beginning of some (``0.19``)."""

    kind: str = ""
    query: str = ""
    package: str = ""
    group: str = ""
    version: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.kind or self.query or self.package or self.group or self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a snippet; ``mark``: it is one of the words searched for."""

    text: str
    mark: bool = False


class Catalogue:
    """All entries of one version of the knowledge, in the order of their kinds and ids."""

    def __init__(self, knowledge: Knowledge) -> None:
        causes = sorted(knowledge.published.values(), key=lambda cause: cause.id)
        families = {cause.id: cause.family for cause in causes}
        entries = [
            *(_of_case(cause) for cause in causes if cause.level == "case"),
            *(_of_mechanism(cause) for cause in causes if cause.level == "mechanism"),
            *(_of_rule(rule, families) for rule in sorted(knowledge.rules.rules, key=lambda rule: rule.id)),
            *(_of_defect(defect, knowledge.published.get(defect.id)) for defect in knowledge.defects.all),
        ]
        self.entries = tuple(entries)
        self.by_id = MappingProxyType({(entry.kind, entry.id): entry for entry in entries})

    def counts(self) -> Mapping[str, int]:
        """How many entries of each kind there are."""
        return Counter(entry.kind for entry in self.entries)

    def groups(self, kind: str = "") -> Mapping[str, int]:
        """How many entries each group has, the largest first."""
        return _counted(entry.group for entry in self.entries if kind in ("", entry.kind))

    def packages(self, kind: str = "") -> Mapping[str, int]:
        """How many entries each package or framework has, the largest first."""
        return _counted(name for entry in self.entries if kind in ("", entry.kind) for name in entry.packages)

    def selected(self, selection: Selection, near: Sequence[tuple[Kind, str]] = ()) -> tuple[list[Entry], list[Entry]]:
        """The entries that fit and contain every word searched for, and the others of ``near`` that fit.

        ``near`` are entries by closeness in meaning. Without a query the second list is empty.
        """
        fitting = [entry for entry in self.entries if fits(entry, selection)]
        if not selection.query.strip():
            return fitting, []
        terms = terms_of(selection.query)
        places = {key: place for place, key in enumerate(near)}
        literal = [entry for entry in fitting if all(term in entry.text for term in terms)]
        literal.sort(
            key=lambda entry: (-_share_in_title(entry, terms), places.get((entry.kind, entry.id), len(places)))
        )
        listed = {(entry.kind, entry.id) for entry in literal}
        others = [self.by_id[key] for key in near if key in self.by_id and key not in listed]
        return literal, [entry for entry in others if fits(entry, selection)][:NEAR]


def grouped(entries: Iterable[Entry], name: Callable[[str], str]) -> list[tuple[str, list[Entry]]]:
    """Entries under the names of their groups. Effects come first, the most harmful at the head, then classes by name.

    Within a group of defects, those whose first release is known come first: the others are only possible.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.group, []).append(entry)
    ranks = {effect.value: effect.rank for effect in Effect}
    order = sorted(groups, key=lambda group: (ranks.get(group, len(ranks)), name(group).casefold()))
    return [(group, sorted(groups[group], key=lambda entry: not entry.is_bounded)) for group in order]


def fits(entry: Entry, selection: Selection) -> bool:
    """Whether an entry passes the filters; the query is no filter."""
    if selection.kind and entry.kind != selection.kind:
        return False
    if selection.group and entry.group != selection.group:
        return False
    if selection.package and selection.package not in entry.packages and selection.package not in entry.affected:
        return False
    if not selection.version:
        return True
    interval = releases(selection.version)
    if interval is None:
        return True
    ranges = [selection.package] if selection.package else list(entry.affected)
    return any(name in entry.affected and _affects(entry.affected[name], interval) for name in ranges)


def releases(version: str) -> Interval | None:
    """The releases that a version names: ``0.19`` is every 0.19 release. None if it is no version."""
    parsed = parse_version(version.strip().removeprefix("v"))
    if parsed is None:
        return None
    if len(parsed.release) > 2 or parsed.is_prerelease:
        return Interval(low=parsed, high=parsed)
    after = (*parsed.release[:-1], parsed.release[-1] + 1)
    return Interval(low=parsed, high=Version(".".join(map(str, after))), high_open=True)


def _affects(text: str, interval: Interval) -> bool:
    try:
        return interval_holds(interval, parse_range(text) if text else ()) is not False
    except ValueError:
        return False


def terms_of(query: str) -> tuple[str, ...]:
    """The words searched for, in lower case; of Chinese, which has no blanks, each pair of characters."""
    terms: list[str] = []
    for word in query.casefold().split():
        run, runs = "", []
        for character in word:
            if run and _is_cjk(character) != _is_cjk(run[-1]):
                runs.append(run)
                run = ""
            run += character
        for part in (*runs, run):
            terms += ["".join(pair) for pair in pairwise(part)] if _is_cjk(part[0]) and len(part) > 1 else [part]
    return tuple(dict.fromkeys(terms))


def snippet(entry: Entry, terms: Sequence[str], language: str) -> tuple[Piece, ...]:
    """The line of an entry with the most of the words, cut around the first one; nothing without a hit or a line.

    Lines of the reader's language come first; words in the other language are found too.
    """
    lines = [line for name in sorted(entry.lines, key=lambda name: name != language) for line in entry.lines[name]]
    if not lines:
        return ()
    line = max(lines, key=lambda line: sum(term in line.casefold() for term in terms)) if terms else lines[0]
    return marked(_cut(" ".join(line.split()), terms), terms)


def marked(text: str, terms: Sequence[str]) -> tuple[Piece, ...]:
    """A text in pieces, the words searched for apart."""
    folded = text.casefold()
    if len(folded) != len(text):  # a letter that folds into two: positions would not agree
        return (Piece(text=text),)
    hits = bytearray(len(text))
    for term in terms:
        is_word = len(term) < SHORTEST_PART and term.isascii()
        at = folded.find(term)
        while at >= 0:
            end = at + len(term)
            if not (is_word and (folded[at - 1 : at].isalnum() or folded[end : end + 1].isalnum())):
                hits[at:end] = b"\x01" * len(term)
            at = folded.find(term, at + 1)
    pieces: list[Piece] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end == len(text) or hits[end] != hits[start]:
            pieces.append(Piece(text=text[start:end], mark=bool(hits[start])))
            start = end
    return tuple(pieces)


def _cut(text: str, terms: Sequence[str]) -> str:
    if len(text) <= SNIPPET:
        return text
    places = [place for term in terms if (place := text.casefold().find(term)) >= 0]
    start = max(0, min(places, default=0) - SNIPPET // 3)
    if start:
        start = max(start, text.find(" ", start, start + 20) + 1)
    end = min(len(text), start + SNIPPET)
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def _is_cjk(character: str) -> bool:
    return _CJK[0] <= character <= _CJK[1]


def _counted(names: Iterable[str]) -> Mapping[str, int]:
    counts = Counter(name for name in names if name)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _share_in_title(entry: Entry, terms: Sequence[str]) -> float:
    title = f"{entry.id} {entry.title.en} {entry.title.zh}".casefold()
    return sum(term in title for term in terms) / len(terms)


def _text(identifier: str, title: Text, *parts: Iterable[str]) -> str:
    return "\n".join((identifier, title.en, title.zh, *(text for part in parts for text in part))).casefold()


def _symptoms(symptoms: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(line for lines in symptoms.values() for line in lines)


def _of_case(case: Case) -> Entry:
    return Entry(
        kind="cases",
        id=case.id,
        title=case.title,
        group=case.family,
        packages=case.frameworks,
        lines=case.symptoms,
        text=_text(case.id, case.title, case.frameworks, case.settings, _symptoms(case.symptoms)),
        badge=case.evidence,
        affected=case.affected,
    )


def _of_mechanism(cause: Case) -> Entry:
    return Entry(
        kind="mechanisms",
        id=cause.id,
        title=cause.title,
        group=cause.family,
        packages=(),
        lines=cause.symptoms,
        text=_text(cause.id, cause.title, _symptoms(cause.symptoms)),
        badge="",
        affected={},
    )


def _of_rule(rule: Rule, families: Mapping[str, str]) -> Entry:
    return Entry(
        kind="rules",
        id=rule.id,
        title=rule.title,
        group=next((families[case] for case in rule.cases if case in families), ""),
        packages=tuple(rule.applies.get("framework", ())),
        lines={"": (rule.when,)} if rule.when else {},
        text=_text(rule.id, rule.title, (rule.when,)),
        badge=rule.severity.value,
        affected=rule.versions,
    )


def _of_defect(defect: Defect, cause: Case | None) -> Entry:
    symptoms = cause.symptoms if cause is not None else defect.symptoms
    return Entry(
        kind="defects",
        id=defect.id,
        title=defect.title,
        group=defect.effect.value,
        packages=(defect.package,),
        lines=symptoms,
        text=_text(defect.id, defect.title, (defect.package,), defect.touches, _symptoms(symptoms), (defect.message,)),
        badge=defect.effect.value,
        affected={defect.package: defect.affected},
        is_bounded=defect.introduced is not None,
    )
