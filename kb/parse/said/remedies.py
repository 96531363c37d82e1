"""What users tried and what came of it: "lowering the lr made no difference", "works without packing", "试过…没用"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from trainmedic.kb.data_files import load_table
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.language import lowered
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Remedy
from trainmedic.kb.parse.source import Piece

_TABLE = load_table("parse/data/remedies.toml")
_REMEDY = regex("|".join(f"(?P<{kind}>{'|'.join(_TABLE[kind])})" for kind in ("tried", "action")))
_OUTCOME = regex("|".join(f"(?P<{kind}>{'|'.join(_TABLE[kind])})" for kind in ("failed", "helped")))
"""For text in lower case: ignoring the case takes twice as long."""
_SENTENCE = regex(r"[^.;!?。；！？\n]*(?:\.(?!\s|$)[^.;!?。；！？\n]*)*")
_IDENTIFIER = regex(r"[A-Za-z][A-Za-z0-9]*_\w+")
_WISH = regex(
    r"(?<![a-z])(?:should|could|would|can|will|if|does|do|how|is it)(?![a-z'])|是否|要不要|如果|怎么|文章|有人说|网上",
    re.IGNORECASE,
)
_SUGGESTED = regex(
    r"可以?尝试|可以试|(?<![按照的])(?:建议|推荐)|(?<![a-z])(?:may|might|recommend|suggest)(?:s|ed)?(?![a-z])",
    re.IGNORECASE,
)
"""What somebody advises was not done, unless it is said that it did not help."""
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
    for sentence in _SENTENCE.finditer(text):
        match = _REMEDY.search(lower, *sentence.span())
        if match is None:
            continue
        helped = _outcome(lower, *sentence.span())
        if match["tried"] is None and (helped is None or _WISH.search(text, sentence.start(), match.start())):
            continue
        start, end = sentence.span()
        if helped is None:
            helped = _outcome(lower, end + 1, min(len(text), end + _NEXT))
        if helped is not False and _SUGGESTED.search(text, start, end):
            continue
        start += len(text[start:end]) - len(text[start:end].lstrip())
        span = piece.span(start, start + len(text[start:end].rstrip()))
        settings, concepts = subjects(span.text)
        if settings or concepts or match["tried"] is not None:
            yield Remedy(text=span.text, span=span, settings=settings, concepts=concepts, helped=helped)


def _outcome(text: str, start: int, end: int) -> bool | None:
    """Whether it helped; that it did not outweighs that something else works."""
    kinds = {match.lastgroup for match in _OUTCOME.finditer(text, start, end)}
    return None if not kinds else "failed" not in kinds


def subjects(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The canonical settings and the glossary concepts that a remedy names."""
    names = _settings_of_names()
    settings = [names[word] for match in _IDENTIFIER.finditer(text) if (word := match[0]) in names]
    glossary = load_glossary()
    named = (glossary.concepts[name] for name in glossary.ids(text))
    concepts = [concept for concept in named if concept.kind in _CONCERNS]
    settings += [setting for concept in concepts for setting in concept.settings]
    return tuple(dict.fromkeys(settings)), tuple(concept.id for concept in concepts)


@cache
def _settings_of_names() -> dict[str, str]:
    """Names that no ordinary word has, in any framework's spelling → canonical setting."""
    return {
        key.key: name
        for name, spec in reversed(list(specs().items()))
        for keys in spec.columns.values()
        for key in keys
        if "_" in key.key
    }
