"""Frameworks and algorithms named in the user's own words, and the framework that a traceback or a log comes from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from trainmedic.kb.frameworks.profiles import ALGORITHMS, profiles, select
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Row, Traceback
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Recognised, Region

NAMES_OF_FRAMEWORKS, NAMES_OF_BACKENDS = (
    tuple((name, profiles()[name].mention) for name in select("trainer") if profiles()[name].backend is backend)
    for backend in (False, True)
)
NAMES_OF_ALGORITHMS = tuple(ALGORITHMS["mentions"].items())
# Only prose may leave the size out: in a path it may be someone's second run.
GEMMA2 = regex(r"(?<![A-Za-z0-9_/.\-])gemma[- ]?2(?![A-Za-z0-9_/.\-])", re.IGNORECASE)
_EDGE = r"(?<![A-Za-z0-9_/.\-])(?:{})(?![A-Za-z0-9_/\-])"
_LONG = 25  # lines; a shorter text is all the user's own
_TAIL = 0.8
_OF_TRAINING = regex(
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
    own_lines: list[Line] = [
        (None, number, line) for number, line in enumerate(question.split("\n"), 1) if number not in covered
    ]
    filled = [line for line in (*own_lines, *said) if line[2].strip()]
    return [line for _, text in groupby(filled, key=itemgetter(0)) for line in _without_teasers(list(text))]


def _without_teasers(lines: Sequence[Line]) -> Sequence[Line]:
    if len(lines) < _LONG:
        return lines
    late = int(len(lines) * _TAIL)
    return [line for place, line in enumerate(lines) if place < late or _OF_TRAINING.search(line[2])]


def mentioned(prose: Sequence[Line], table_of_words: Sequence[tuple[str, str]]) -> Recognised | None:
    """The first name in the text; if two start on the same spot, the one listed first."""
    whole = "\n".join(line[2] for line in prose).lower()
    # Most names are nowhere; without the case and the edges of words, that is soon seen.
    patterns = [(name, _as_word(pattern)) for name, pattern in table_of_words if re.search(pattern, whole)]
    for line in prose if patterns else ():
        hits = []
        for order, (name, pattern) in enumerate(patterns):
            match = pattern.search(line[2])
            if match:
                hits.append((match.start(), order, name, match.end()))
        if hits:
            start, _, name, end = min(hits)
            return Recognised(value=name, reason=where(line), span=span_in(line, start, end))
    return None


@cache
def _as_word(pattern: str) -> re.Pattern[str]:
    return re.compile(_EDGE.format(pattern), re.IGNORECASE)


def where(line: Line) -> str:
    return "said in the question" if line[0] is None else f"said in {line[0]}"


def span_in(line: Line, start: int, end: int) -> Span:
    """``start`` and ``end`` are 0-based offsets in the line."""
    name, number, text = line
    return Span(
        attachment=name, line=number, column=start + 1, end_line=number, end_column=end + 1, text=text[start:end]
    )


_PACKAGES = {module: profile.name for profile in profiles().values() for module in profile.modules}
LIBRARIES = tuple(
    profile.name for profile in sorted(profiles().values(), key=lambda profile: profile.library) if profile.library
)
"""Libraries that the others call, the most telling first. They count only if no framework calls them."""
_FRAME = regex(r"(?:site-packages|dist-packages|src)[/\\](\w+)[/\\]|^(\w+)[/\\](?:\w+[/\\])*\w+\.py:")


@cache
def _checkout() -> re.Pattern[str]:
    # A package that runs from a checkout is recognised by its folders.
    return re.compile(
        "|".join(
            rf"[/\\](?P<{profile.modules[0]}>{profile.modules[0]})[/\\](?:{'|'.join(profile.folders)})(?=[/\\.])"
            for profile in profiles().values()
            if profile.folders
        )
    )


def _inner_package(package: str | None, frame: str) -> str | None:
    """``megatron.bridge`` for a frame in that package, which another framework keeps within its own."""
    nested = (name for name in _PACKAGES if package and name.startswith(f"{package}."))
    return next((name for name in nested if re.search(name.replace(".", r"[/\\]") + r"[/\\]", frame)), package)


def framework_of(tracebacks: Sequence[Traceback]) -> Recognised | None:
    for trace in tracebacks:
        names: list[str] = []
        for frame in trace.frames:
            match = _FRAME.search(frame)
            package = (match[1] or match[2]) if match else None
            if package not in _PACKAGES and (checkout := _checkout().search(frame)) is not None:
                package = checkout.lastgroup
            package = _inner_package(package, frame)
            if package in _PACKAGES and _PACKAGES[package] not in names:
                names.append(_PACKAGES[package])
        # trl imports itself by its launcher, so its own frames come first; of mere libraries the most telling one.
        above = [name for name in names if name not in LIBRARIES]
        chosen = above[0] if above else next((name for name in LIBRARIES if name in names), None)
        if chosen is not None:
            return Recognised(value=chosen, reason=f"the traceback runs through {chosen}", span=trace.span)
    return None


_LOGGING = tuple(
    (profile.name, profile.log_style, tuple(name for name in profile.logs if name.endswith("/")), set(profile.logs))
    for profile in profiles().values()
    if profile.logs
)


def framework_of_log(rows: Sequence[Row]) -> Recognised | None:
    """The framework whose profile lists a metric (or the beginning of some) of a row that is written in its way."""
    for row in rows:
        for framework, style, beginnings, names in _LOGGING:
            if (not style or row.style == style) and any(n in names or n.startswith(beginnings) for n in row.metrics):
                return Recognised(value=framework, reason=f"the log's metrics are {framework}'s", span=row.span)
    return None
