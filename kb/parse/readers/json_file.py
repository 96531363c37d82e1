"""JSON text → options with positions: DeepSpeed configurations, ``args.json``, ``config.json``.

Comments, trailing commas, single quotes, ``NaN`` and texts cut off anywhere are read as far as they go, and noted.
``trainer_state.json`` is read without its ``log_history``: that is log rows, not configuration.
"""

from __future__ import annotations

import json

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Origin
from trainmedic.kb.parse.readers.literal import Scanner
from trainmedic.kb.parse.readers.nodes import Entries, Flattener, Items
from trainmedic.kb.parse.source import Piece, Reading

SKIPPED = frozenset({"log_history"})
_START = regex(r"[{\[]")
_BODY_ONLY = regex(r"\s*\"[^\"\n]+\"\s*:")


def read(piece: Piece) -> Reading:
    flattener = Flattener(piece, Origin.JSON)
    scanner = Scanner(piece.text, skip=SKIPPED)
    fragment = _BODY_ONLY.match(piece.text)
    if fragment:  # `"key": value, …` without its brace
        scanner.partial = True
        scanner.at = -1
        scanner.text = piece.text
        _fragment(scanner, flattener)
    else:
        _values(scanner, flattener)
    for code, message, start, end in scanner.flaws:
        flattener.problem(code, message, start, end)
    if not scanner.flaws and not scanner.partial and not _strict(piece.text):
        flattener.problem(
            "json_error", "not strict JSON (comments, trailing commas or single quotes); read anyway", 0, 0
        )
    return Reading(
        options=tuple(flattener.options), problems=tuple(flattener.problems), partial=scanner.partial or flattener.full
    )


def _fragment(scanner: Scanner, flattener: Flattener) -> None:
    node = scanner.entries(0)
    flattener.add(node)


def _values(scanner: Scanner, flattener: Flattener) -> None:
    while match := _START.search(scanner.text, scanner.at):
        scanner.at = match.start()
        node = scanner.value()
        if isinstance(node, Entries | Items):
            flattener.add(node)
        if flattener.full or scanner.partial:
            break


def _strict(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
