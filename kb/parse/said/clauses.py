"""The clauses of what a user writes, and whether what one says is so: not asked, advised, planned, compared or past."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex

MOOD = {
    name: regex("|".join(patterns), re.IGNORECASE)
    for name, patterns in load_table("parse/data/said.toml")["mood"].items()
}
OUTCOMES = {
    name: regex("|".join(load_table("parse/data/remedies.toml")[name]), re.IGNORECASE) for name in ("failed", "helped")
}
_SENTENCE = regex(r"[^.;!?。；！？\n]*(?:\.(?!\s|$)[^.;!?。；！？\n]*)*[?？]?")
_CLAUSE = regex(r"[,，](?![0-9])|(?<![a-z])(?:but|while|whereas|although)(?![a-z])|但是?|不过|而(?!且)", re.IGNORECASE)

_START = attrgetter("start")
_REACH = 200
_SHORT = 40
"""Characters of a question that only supposes something: "and without packing?"."""


class Clause(NamedTuple):
    """``text[start:end]``. ``carried``: it is hedged or past since a clause before. ``works``: it says that the run
    works so."""

    start: int
    end: int
    carried: bool
    works: bool

    def is_hedged(self, text: str, at: int, *, changed: bool = False) -> bool:
        """Whether what stands at ``at`` is not so, or no longer. What something was changed from is not what it is."""
        before = text[max(self.start, at - _REACH) : at]
        if self.carried or MOOD["compared"].search(before) or (MOOD["past"].search(before) and not changed):
            return True
        if text[self.end - 1 : self.end] in ("?", "？"):
            short = self.end - self.start <= _SHORT and MOOD["why"].search(text, self.start, self.end) is None
            return short or MOOD["hedged"].search(text, self.start, self.end) is not None
        return MOOD["hedged"].search(before) is not None


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences stand that say anything."""
    return (match.span() for match in _SENTENCE.finditer(text) if match[0].strip())


def located(text: str, matches: Iterable[re.Match[str]]) -> Iterator[tuple[re.Match[str], Clause]]:
    """Matches, in their order, with the clauses in which they begin."""
    places, end = sentences(text), 0
    clauses: Sequence[Clause] = ()
    for match in matches:
        while end <= match.start():
            start, end = next(places, (end, len(text) + 1))
            clauses = ()
        clauses = clauses or clauses_of(text, start, end)
        yield match, clause_at(clauses, match.start())


def tried_in_vain(text: str, start: int, end: int) -> bool:
    """Whether the sentence of what was done in ``text[start:end]`` says afterwards that it did not help."""
    first, last = next((first, last) for first, last in sentences(text) if first <= start < last)
    hedged = clause_at(clauses_of(text, first, last), start).is_hedged(text, start, changed=True)
    return not hedged and OUTCOMES["failed"].search(text, end, last) is not None


def clause_at(clauses: Sequence[Clause], at: int) -> Clause:
    return clauses[bisect_right(clauses, at, key=_START) - 1]


def clauses_of(text: str, start: int, end: int) -> Sequence[Clause]:
    """The clauses of a sentence. A hedge or a past holds until one speaks of now."""
    breaks = [start, *(match.end() for match in _CLAUSE.finditer(text, start, end)), end]
    clauses, carried = [], False
    for first, last in pairwise(breaks):
        part = text[first:last]
        carried = carried and MOOD["present"].search(part) is None
        works = MOOD["works"].search(part) is not None and MOOD["works_not"].search(part) is None
        clauses.append(Clause(first, last, carried, works))
        carried = carried or MOOD["past"].search(part) is not None or MOOD["hedged"].search(part) is not None
    return clauses
