"""Signals that the messages of a log and the exceptions of tracebacks are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainmedic.kb.data_files import load_table
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Signal, Traceback
from trainmedic.kb.parse.source import Piece


@dataclass(frozen=True, slots=True)
class Message:
    """Words that are a signal. ``literals``: at least one is in every text that ``pattern`` matches."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]

    def may_match(self, text: str) -> bool:
        """False if a search for the pattern, which takes much longer, would find nothing."""
        return any(map(text.__contains__, self.literals))


_TABLE = load_table("parse/data/log_messages.toml")
_REST_OF_LINE = r"[^\n]{0,200}+"
MESSAGES = tuple(
    Message(
        entry["kind"],
        tuple(entry["literals"]),
        regex("|".join(entry["alternatives"]).replace("<rest>", _REST_OF_LINE)),
    )
    for entry in _TABLE["messages"]
)
EXCEPTIONS: Mapping[str, str] = _TABLE["exceptions"]
_LOSS_SCALE = regex(
    r"OVERFLOW!{0,1}+[^\n]{0,120}?(?:Attempted"
    r"|attempted) loss scale: (?P<old>[0-9.e+]{1,24}+)(?:, (?:but hysteresis[^\n]{0,80}"
    r"|reducing to (?P<new>[0-9.e+]{1,24}+)))?"
)
_COLLAPSED_SCALE = 1.0
_MANY_OVERFLOWS = 10


def in_log(piece: Piece) -> Iterator[Signal]:
    """The first occurrence of each message in a log, and a collapsed loss scale. Not for the user's prose."""
    for message in MESSAGES:
        match = find(message, piece.text)
        if match is not None:
            yield Signal(kind=message.kind, span=piece.span(match.start(), _trim(match)), detail=_detail(match))
    yield from _loss_scale(piece)


def find(message: Message, text: str) -> re.Match[str] | None:
    return message.pattern.search(text) if message.may_match(text) else None


def _trim(match: re.Match[str]) -> int:
    return match.end() - (len(match[0]) - len(match[0].rstrip()))


def _detail(match: re.Match[str]) -> str:
    return " ".join(match[0].split())[:200]


def _loss_scale(piece: Piece) -> Iterator[Signal]:
    if "OVERFLOW" not in piece.text:
        return
    # DeepSpeed finds its scale by a few overflows at the start; that many are not search any more.
    for count, match in enumerate(_LOSS_SCALE.finditer(piece.text), 1):
        scale = _number(match["new"] or match["old"])
        if count >= _MANY_OVERFLOWS or (scale is not None and scale <= _COLLAPSED_SCALE):
            detail = f"overflow number {count}, loss scale {scale if scale is not None else 'unreadable'}"
            yield Signal(
                kind="loss_scale_collapse", span=piece.span(match.start(), match.end()), value=scale, detail=detail
            )
            return


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def of_tracebacks(tracebacks: Sequence[Traceback]) -> Iterator[Signal]:
    """Signals of the exceptions. The message may say more than the type (a `RuntimeError` that is out of memory)."""
    for traceback in tracebacks:
        short = traceback.exception.rsplit(".", 1)[-1]
        kinds = [EXCEPTIONS[short]] if short in EXCEPTIONS else []
        for message in MESSAGES:
            if message.kind not in kinds and find(message, f"{short}: {traceback.message}") is not None:
                kinds.append(message.kind)
        for kind in kinds:
            span, detail = traceback.places[0], f"{traceback.exception}: {traceback.message}"
            yield Signal(kind=kind, span=span, detail=detail[:200])
