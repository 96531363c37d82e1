"""Changes and differences that users state: "39 → 500 s/it", "3x larger than in X", "loss 8 instead of 2"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Comparison
from trainmedic.kb.negation import RUN
from trainmedic.kb.parse.source import Piece

_TABLE = load_table("parse/data/comparisons.toml")
_METRIC_OF_UNIT = {unit: metric for metric, units in _TABLE["units"].items() for unit in units}
_UNIT = "|".join(sorted(_METRIC_OF_UNIT, key=lambda unit: (-len(unit), unit)))
_SUBJECT = regex(
    "|".join(f"(?P<{metric}>{'|'.join(words)})" for metric, words in _TABLE["subjects"].items()), re.IGNORECASE
)
_NUMBER = r"[0-9]{1,9}+(?:\.[0-9]{1,6}+)?"
_WORD = "|".join(sorted(_TABLE["words"], key=lambda word: (-len(word), word)))
_TO = r"(?:->|-->|=>|→|to|变成|变为|涨到|升到|降到|掉到|增加到|到)"
_ABOUT = r"(?:about |around |~|近|约)?"
_STATED = regex(
    rf"(?<![\w.])(?P<old>{_NUMBER})\s?(?:(?P<unit1>{_UNIT})(?![a-z/]))?(?: per step| per iteration)?\s{{0,2}}"
    rf"(?:\w{{1,10}} )?{_TO}\s{{0,2}}{_ABOUT}(?P<new>{_NUMBER})\s?(?:(?P<unit2>{_UNIT})(?![a-z/]))?(?![\w.]*\.[0-9])"
    rf"|(?<![\w.])(?P<factor>{_NUMBER})\s?(?:x|×|times|倍)\s{{0,2}}(?:as )?(?P<word>{_WORD})(?![a-z])"
    rf"|(?P<word_zh>[慢快大高小低])了?(?:大约|近|约|差不多|将近|接近)?\s?(?P<factor_zh>{_NUMBER})\s?(?:多)?倍"
    rf"|(?<![\w.])(?P<is>{_NUMBER}) (?:instead of|rather than|vs\.?|versus|\(?expected"
    rf"|while it should be|而不是|应该是)"
    rf"\s{{0,2}}{_ABOUT}(?P<should>{_NUMBER})",
    re.IGNORECASE,
)
_REACH = 40
_CLAUSE = regex(r"[;；。！!？?\n]|\.\s")
_LEAST_FACTOR = 1.2


def read(piece: Piece) -> tuple[Comparison, ...]:
    """The comparisons of a text in their order. A change whose metric is not said is none."""
    return tuple(_comparisons(piece)) if any(map(str.isdigit, piece.text)) else ()


def _comparisons(piece: Piece) -> Iterator[Comparison]:
    text = piece.text
    for match in _STATED.finditer(text):
        if RUN.precedes(text, match.start()):
            continue
        metric, direction, factor = _meaning(text, match)
        if metric and (factor is None or factor >= _LEAST_FACTOR or factor <= 1 / _LEAST_FACTOR):
            span = piece.span(match.start(), match.end())
            yield Comparison(metric=metric, direction=direction, factor=factor, span=span)


def _meaning(text: str, match: re.Match[str]) -> tuple[str, str, float | None]:
    word = match["word"] or match["word_zh"]
    if word:
        metric, direction = _TABLE["words"][word.lower()]
        factor = float(match["factor"] or match["factor_zh"])
        return (
            metric or _subject(text, match, behind=True),
            direction,
            factor if direction == "up" or not factor else 1 / factor,
        )
    old, new = (match["should"], match["is"]) if match["should"] else (match["old"], match["new"])
    unit = match["unit2"] or match["unit1"]
    metric = _of_unit(unit.lower()) if unit else _subject(text, match)
    setting = not unit and metric in ("memory", "step_time")  # memory utilisation 0.6 -> 0.3
    if setting or not float(old) or not float(new) or _is_range(text, match):
        return "", "", None
    factor = float(new) / float(old) * (_scale(match["unit2"]) / _scale(match["unit1"] or match["unit2"]))
    return metric, "up" if factor > 1 else "down", factor


def _is_range(text: str, match: re.Match[str]) -> bool:
    """Whether two numbers are the ends of what a value moves in."""
    before = text[: match.start()].rstrip()
    return text.startswith(("之间", " 之间"), match.end()) or before.endswith(("between", "在", "within"))


def _of_unit(unit: str) -> str:
    return next((metric for pattern, metric in _METRIC_OF_UNIT.items() if re.fullmatch(pattern, unit)), "")


def _scale(unit: str | None) -> float:
    """Seconds or gigabytes in one of this unit, where two units of a comparison differ."""
    name = (unit or "").lower()
    if name.startswith("ms") or name in ("mb", "mib"):
        return 1e-3
    return 60.0 if name.startswith(("min", "分")) else 3600.0 if name.startswith("h") or name == "小时" else 1.0


def _subject(text: str, match: re.Match[str], *, behind: bool = False) -> str:
    """What the clause around a comparison is about: the nearest metric before it, or else the first ``behind`` it."""
    before = _CLAUSE.split(text[max(0, match.start() - _REACH) : match.start()])[-1]
    named = list(_SUBJECT.finditer(before))
    if named:
        return named[-1].lastgroup or ""
    following = _SUBJECT.search(_CLAUSE.split(text[match.end() : match.end() + _REACH])[0]) if behind else None
    return (following.lastgroup or "") if following is not None else ""
