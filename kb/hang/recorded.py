"""A flight-recorder dump → JSON text, one line for each collective."""

from __future__ import annotations

import json
from typing import Any

MOST_BUILT = 2_000_000
"""Values that the text may hold: a pickle can repeat one list into billions."""
MOST_DEPTH = 12


def text_of(dump: dict[str, Any]) -> str:
    """Raises ValueError for what is too large or too deep to be one."""
    _count(dump, [MOST_BUILT], 0)
    rest = json.dumps({key: value for key, value in dump.items() if key != "entries"}, ensure_ascii=False)
    entries = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in dump["entries"])
    return f'{rest[:-1]}{", " if len(rest) > 2 else ""}"entries": [\n{entries}\n]}}\n'


def _count(value: Any, left: list[int], depth: int) -> None:
    left[0] -= 1 + (len(value) // 16 if isinstance(value, str) else 0)
    if left[0] < 0 or depth > MOST_DEPTH:
        raise ValueError("it is too large or too deep")
    if isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            _count(item, left, depth + 1)
