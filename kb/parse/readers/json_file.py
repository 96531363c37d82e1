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
    if _BODY_ONLY.match(piece.text):  # `"key": value, …` without its brace
        scanner.partial = True
        scanner.at = -1
        flattener.add(scanner.entries(0))
    else:
        _values(scanner, flattener)
    flattener.flaws(scanner.flaws)
    if not scanner.flaws and not scanner.partial and not _strict(piece.text):
        message = "not strict JSON (comments, trailing commas or single quotes); read anyway"
        flattener.problem("json_error", message, 0, 0)
    return flattener.reading(partial=scanner.partial)


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
