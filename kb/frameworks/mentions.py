"""What the user says in prose: which lines are his own words, and the frameworks and algorithms they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from trainmedic.kb.frameworks.profiles import profiles, select
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Recognised, Region

NAMES_OF_FRAMEWORKS = tuple((name, profiles()[name].mention) for name in select("trainer"))
NAMES_OF_ALGORITHMS = (
    ("kto", r"kto|kahneman"), ("simpo", r"simpo"), ("orpo", r"orpo"), ("cpo", r"cpo"), ("grpo", r"grpo"),
    ("rloo", r"rloo"), ("dpo", r"dpo"), ("ppo", r"ppo"), ("gkd", r"gkd"),
    ("reward", r"reward[- ]?model(?:l?ing)?|rm (?:training|model)|(?:train(?:ing)?|训练) ?(?:a )?rm|奖励模型"),
    ("sft", r"sft|supervised fine-?tun\w+|指令微调"), ("pt", r"continued? pre-?training|预训练"),
)  # fmt: skip
GEMMA2 = re.compile(r"(?<![A-Za-z0-9_/.\-])gemma[- ]?2(?![A-Za-z0-9_/.\-])", re.IGNORECASE)
"""The family by its bare name. Only prose may leave the size out: in a path it may be somebody's second run."""
_EDGE = r"(?<![A-Za-z0-9_/.\-])(?:{})(?![A-Za-z0-9_/\-])"
_LONG = 25  # lines; a shorter text is all the user's own
_TAIL = 0.8
_OF_TRAINING = re.compile(
    r"train|tun(?:e|ing)|(?:model|模型|base)\s*(?:[:=\uff1a]|is\b|是|为|选)|训练|微调|使用|采用|用的|[sdk]po|rlhf|loss",
    re.IGNORECASE,
)
Line: TypeAlias = tuple[str | None, int, str]
"""One line of prose: the attachment (None: the question), its number, its text."""


def own_words(question: str, regions: Sequence[Region], said: Sequence[Line]) -> list[Line]:
    """The lines that are the user's own words, the question's first.

    A copied article ends in teasers for other projects: of a long text, late lines count only if they speak of
    training.
    """
    covered: set[int] = set()
    for region in regions:
        if region.source is None and region.kind != "prose":
            covered.update(range(region.start_line, region.end_line + 1))
    own: list[Line] = [
        (None, number, line) for number, line in enumerate(question.split("\n"), 1) if number not in covered
    ]
    filled = [line for line in (*own, *said) if line[2].strip()]
    return [line for _, text in groupby(filled, key=itemgetter(0)) for line in _without_teasers(list(text))]


def _without_teasers(lines: Sequence[Line]) -> Sequence[Line]:
    if len(lines) < _LONG:
        return lines
    late = int(len(lines) * _TAIL)
    return [line for place, line in enumerate(lines) if place < late or _OF_TRAINING.search(line[2])]


def mentioned(prose: Sequence[Line], table_of_words: Sequence[tuple[str, str]]) -> Recognised | None:
    """The first thing said; where two start on the same spot, the one listed first."""
    for line in prose:
        hits = []
        for order, (name, pattern) in enumerate(table_of_words):
            match = re.search(_EDGE.format(pattern), line[2], re.IGNORECASE)
            if match:
                hits.append((match.start(), order, name, match.end()))
        if hits:
            start, _, name, end = min(hits)
            return Recognised(value=name, reason=where(line), span=span_in(line, start, end))
    return None


def where(line: Line) -> str:
    """Where a line was said, in words."""
    return "said in the question" if line[0] is None else f"said in {line[0]}"


def span_in(line: Line, start: int, end: int) -> Span:
    """The span of a part of a line (0-based offsets)."""
    name, number, text = line
    return Span(
        attachment=name, line=number, column=start + 1, end_line=number, end_column=end + 1, text=text[start:end]
    )
