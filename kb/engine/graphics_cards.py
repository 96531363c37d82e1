"""The graphics cards that a user names, and their compute capability.

A card counts if a log, a driver's table or the user names it, or if a scheduler is asked for it
(``--gres=gpu:v100:4``); a word in a configuration or in a script's comment does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import RunConfig

_CARDS: tuple[tuple[float, str], ...] = tuple(map(tuple, load_table("engine/graphics_cards.toml")["cards"]))
"""Compute capability, and how its cards are written."""
_UNLISTED = 99.0
"""Cards of other makers, and names that the table lacks, count as new."""
_NAMED = regex(
    r"(?<![A-Za-wyz0-9_.])(?:" + "|".join(f"({names})" for _, names in _CARDS) + r")(?![A-Za-wyz0-9_])(?!\.\w)"
)
_STATED = regex(
    r"(?i:compute capability|cuda capability)[ :=(]{1,3}(?:sm_)?\d{1,2}?[._]?\d(?!\d)"
    r"|(?<![A-Za-z0-9])(?:MI\d{3}X?|Ascend|910B\d?|Gaudi)(?![A-Za-z0-9])"
)
_SCHEDULED = regex(r"gpu:(?P<name>[a-z]\d{2,4})\b")
_SHORT = 3_000
"""A text up to this many characters is read whole."""
_HINTS = ("NVIDIA", "GeForce", "Tesla", "Quadro", "RTX", "GTX", "TITAN", "GPU", "gpu", "capability", "V100", "T4")
_MOST = 200
_LONGEST = 2_000
_CONFIGURED = ("command", "yaml", "json", "python", "toml", "ini")


def cards(evidence: Evidence, run: RunConfig) -> Iterator[tuple[float, Span]]:
    """The compute capability and the place of every card that is named."""
    shown = tuple(_shown(evidence))
    for span in _spans(shown, _NAMED):
        yield _capability(span.text), span
    for span in _spans(shown, _STATED):
        yield _stated(span.text), span
    for option in run.options:
        scheduled = _SCHEDULED.search(str(option.value)) if option.key in ("gres", "gpus", "gpu") else None
        if scheduled is not None:
            yield _capability(scheduled["name"].upper()), option.span


def _capability(name: str) -> float:
    match = _NAMED.fullmatch(name)
    return _CARDS[match.lastindex - 1][0] if match is not None and match.lastindex is not None else _UNLISTED


def _stated(text: str) -> float:
    """``8.6`` of a stated capability, written 8.6, 8_6 or sm_86."""
    digits = "".join(filter(str.isdigit, text)) if "apability" in text.lower() else ""
    return float(f"{digits[:-1]}.{digits[-1]}") if digits else _UNLISTED


def _spans(shown: tuple[tuple[str | None, int, str], ...], pattern: re.Pattern[str]) -> Iterator[Span]:
    for name, line, text in shown:
        for match in pattern.finditer(text):
            yield Span(
                attachment=name,
                line=line,
                column=match.start() + 1,
                end_line=line,
                end_column=match.end() + 1,
                text=match[0],
            )


def _shown(evidence: Evidence) -> Iterator[tuple[str | None, int, str]]:
    """The lines in which a card counts: source, number, text."""
    regions = [region for region in evidence.regions if region.kind in _CONFIGURED]
    for source in evidence.sources:
        taken = [(region.start_line, region.end_line) for region in regions if region.source == source.name]
        for line, text in _lines(source.text):
            bare = text.lstrip()
            if bare and not bare.startswith("#") and not any(start <= line <= end for start, end in taken):
                yield source.name, line, text


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that may name a card, numbered: all of a short text, those with a hint of a long one."""
    if len(text) <= _SHORT:
        yield from enumerate(text.split("\n"), start=1)
        return
    starts: set[int] = set()
    for hint in _HINTS:
        at = text.find(hint)
        for _ in range(_MOST):
            if at < 0:
                break
            starts.add(text.rfind("\n", 0, at) + 1)
            at = text.find(hint, max(text.find("\n", at), at + 1))
    line, counted = 1, 0
    for start in sorted(starts)[:_MOST]:
        line += text.count("\n", counted, start)
        counted = start
        end = text.find("\n", start)
        yield line, text[start : end if end >= 0 else len(text)][:_LONGEST]
