"""Steps that users say take much longer than they did or should: "39 → 500 s/it", "10x slower", "慢了 10 倍"."""

from __future__ import annotations

import re

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.place import Span
from trainmedic.kb.negation import RUN
from trainmedic.kb.parse.source import Piece

_TABLE = load_table("parse/data/slowdowns.toml")
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
_LEAST_FACTOR = 1.5
_SLOWER = {"step_time": "up", "throughput": "down"}


def read(piece: Piece) -> Span | None:
    """The first slowdown of a text. A change whose metric is not said is none."""
    text = piece.text
    for match in _STATED.finditer(text) if any(map(str.isdigit, text)) else ():
        if not RUN.precedes(text, match.start()) and _factor(text, match) >= _LEAST_FACTOR:
            return piece.span(match.start(), match.end())
    return None


def _factor(text: str, match: re.Match[str]) -> float:
    """How many times as long a step takes, or 0."""
    word = match["word"] or match["word_zh"]
    if word:
        metric, direction = _TABLE["words"][word.lower()]
        slower = _SLOWER.get(metric or _subject(text, match, behind=True)) == direction
        return float(match["factor"] or match["factor_zh"]) if slower else 0.0
    old, new = (match["should"], match["is"]) if match["should"] else (match["old"], match["new"])
    unit = match["unit2"] or match["unit1"]
    metric = _of_unit(unit.lower()) if unit else _subject(text, match)
    if metric not in _SLOWER or (not unit and metric == "step_time"):  # without a unit it may be a setting
        return 0.0
    if not float(old) or not float(new) or _is_range(text, match):
        return 0.0
    factor = float(new) / float(old) * (_scale(match["unit2"]) / _scale(match["unit1"] or match["unit2"]))
    return factor if metric == "step_time" else 1 / factor


def _is_range(text: str, match: re.Match[str]) -> bool:
    """Whether two numbers are the ends of what a value moves in."""
    before = text[: match.start()].rstrip()
    return text.startswith(("之间", " 之间"), match.end()) or before.endswith(("between", "在", "within"))


def _of_unit(unit: str) -> str:
    return next((metric for pattern, metric in _METRIC_OF_UNIT.items() if re.fullmatch(pattern, unit)), "")


def _scale(unit: str | None) -> float:
    """Seconds in one of this unit, where two units differ."""
    name = (unit or "").lower()
    if name.startswith("ms"):
        return 1e-3
    return 60.0 if name.startswith(("min", "分")) else 3600.0 if name.startswith("h") or name == "小时" else 1.0


def _subject(text: str, match: re.Match[str], *, behind: bool = False) -> str:
    """What the clause around a change is about: the nearest metric before it, or else the first ``behind`` it."""
    before = _CLAUSE.split(text[max(0, match.start() - _REACH) : match.start()])[-1]
    named = list(_SUBJECT.finditer(before))
    if named:
        return named[-1].lastgroup or ""
    following = _SUBJECT.search(_CLAUSE.split(text[match.end() : match.end() + _REACH])[0]) if behind else None
    return (following.lastgroup or "") if following is not None else ""
