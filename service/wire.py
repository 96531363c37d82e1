"""Values to JSON and back. The one place that knows how a dataclass looks on the wire."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum

from kb.model.run import Unresolved


def plain(value: object) -> object:
    """``value`` as dicts, lists and scalars that JSON can hold.

    Non-finite floats become the strings ``"nan"``, ``"inf"``, ``"-inf"``: JSON has no numbers for them, and
    null would hide the very thing that users ask about. An unresolved shell value becomes its raw text.
    """
    if value is None or isinstance(value, bool | int | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Unresolved):
        return value.raw
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [plain(item) for item in value]
    return str(value)


def to_json(value: object, *, indent: int | None = None) -> str:
    """``value`` as JSON text, keys in the order of their fields, characters as they are."""
    return json.dumps(plain(value), ensure_ascii=False, indent=indent, allow_nan=False)
