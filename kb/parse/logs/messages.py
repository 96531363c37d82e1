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
_NEAR = 200
EXCEPTIONS: Mapping[str, str] = _TABLE["exceptions"]


def in_log(piece: Piece) -> Iterator[Signal]:
    """The first occurrence of each message in a log. Not for the user's prose."""
    for message in MESSAGES:
        match = find(message, piece.text)
        if match is not None:
            yield Signal(kind=message.kind, span=piece.span(match.start(), _trim(match)), detail=_detail(match))


def find(message: Message, text: str) -> re.Match[str] | None:
    if not message.may_match(text):
        return None
    return next((match for match in message.pattern.finditer(text) if not goes_on(text, match.start())), None)


def goes_on(text: str, at: int) -> bool:
    """Whether the line is one of a program that has dealt with the error that it names at ``at``."""
    line = text[max(0, at - _NEAR) : at].rpartition("\n")[2] + text[at : at + _NEAR].partition("\n")[0]
    return any(words in line for words in _TABLE["goes_on"])


def _trim(match: re.Match[str]) -> int:
    return match.end() - (len(match[0]) - len(match[0].rstrip()))


def _detail(match: re.Match[str]) -> str:
    return " ".join(match[0].split())[:200]


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
