"""Remedies that users tried: "lowering the lr made no difference", "works without packing", "试过…没用"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainmedic.kb.data_files import load_table
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.language import lowered
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Remedy
from trainmedic.kb.parse.said.clauses import OUTCOMES, Clause, clause_at, clauses_of, sentences
from trainmedic.kb.parse.said.settings import named
from trainmedic.kb.parse.said.settings import read as read_settings
from trainmedic.kb.parse.source import Piece

_TABLE = load_table("parse/data/remedies.toml")
_REMEDY = regex("|".join(f"(?P<{kind}>{'|'.join(_TABLE[kind])})" for kind in ("tried", "action", "in_vain")))
"""For text in lower case: ignoring the case takes twice as long."""
_WISH = regex(
    r"(?<![a-z])(?:should|could|would|can|will|if|does|do|how|is it)(?![a-z'])|是否|要不要|如果|怎么|文章|有人说|网上",
    re.IGNORECASE,
)
_SUGGESTED = regex(
    r"可以?尝试|可以试|(?<![按照的])(?:建议|推荐)|(?<![a-z])(?:may|might|recommend|suggest)(?:s|ed)?(?![a-z])",
    re.IGNORECASE,
)
"""What someone advises was not done, unless it is said that it did not help."""
_CONCERNS = frozenset({"setting", "component", "algorithm", "data", "hardware", "concept"})
_MOST = 20
_NEXT = 60


def read(piece: Piece) -> tuple[Remedy, ...]:
    """The remedies of a text, at most one a sentence; what is only considered is none."""
    remedies = _remedies(piece)
    return tuple(remedy for remedy, _ in zip(remedies, range(_MOST), strict=False))


def _remedies(piece: Piece) -> Iterator[Remedy]:
    text = piece.text
    lower = lowered(text)
    if _REMEDY.search(lower) is None:
        return
    for start, end in sentences(text):
        match = _REMEDY.search(lower, start, end)
        if match is None:
            continue
        helped = _outcome(lower, start, end)
        if match["tried"] is None and (helped is None or _WISH.search(text, start, match.start())):
            continue
        if helped is None:
            helped = _outcome(lower, end + 1, min(len(text), end + _NEXT))
        if helped is not False and _SUGGESTED.search(text, start, end):
            continue
        settings, concepts = _subjects(text, clauses_of(text, start, end), match)
        if settings or concepts or match["tried"] is not None:
            start += len(text[start:end]) - len(text[start:end].lstrip())
            span = piece.span(start, start + len(text[start:end].rstrip()))
            given = {one.name: one.value for one in read_settings(piece.cut(start, end)) if one.name in settings}
            on, off = (tuple(name for name, value in given.items() if value is state) for state in (True, False))
            yield Remedy(text=span.text, span=span, settings=settings, concepts=concepts, helped=helped, on=on, off=off)


def _outcome(text: str, start: int, end: int) -> bool | None:
    """Whether it helped; that it did not outweighs that something else works."""
    if OUTCOMES["failed"].search(text, start, end):
        return False
    return True if OUTCOMES["helped"].search(text, start, end) else None


def _subjects(text: str, clauses: Sequence[Clause], match: re.Match[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the clause with the remedy names, and those behind it; if it names nothing, the one before."""
    at = clauses.index(clause_at(clauses, match.start()))
    for first in dict.fromkeys((at, max(0, at - 1))):
        settings, concepts = subjects(text[clauses[first].start : clauses[-1].end])
        if settings or concepts:
            return settings, concepts
    return (), ()


def subjects(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The canonical settings and the glossary concepts that a remedy names."""
    glossary = load_glossary()
    concepts = [concept for name in glossary.ids(text) if (concept := glossary.concepts[name]).kind in _CONCERNS]
    by_name = named(text)
    valued = [concept for concept in concepts if concept.kind != "data"]
    wider = [concept.settings for concept in valued if not set(concept.settings) & set(by_name)]
    settings = dict.fromkeys((*by_name, *(setting for settings in wider for setting in settings)))
    return tuple(settings), tuple(concept.id for concept in concepts)
