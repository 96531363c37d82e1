"""Values to JSON and back. The one place that knows how a dataclass looks on the wire."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

from kb.model.run import Unresolved


def plain(value: object) -> object:
    """``value`` as dicts, lists and scalars that JSON can hold.

    Non-finite floats become the strings ``"nan"``, ``"inf"``, ``"-inf"``: JSON has no numbers for them, and
    null would hide the very thing that users ask about. An unresolved shell value becomes its raw text.
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:  # nearly everything: no further question
        return value
    names = _fields(kind)
    if names is not None:
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, int | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Unresolved):
        return value.raw
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset | set):
        return [plain(item) for item in value]
    return str(value)


def to_json(value: object, *, indent: int | None = None) -> str:
    """``value`` as JSON text, keys in the order of their fields, characters as they are."""
    return json.dumps(plain(value), ensure_ascii=False, indent=indent, allow_nan=False)


@lru_cache(maxsize=256)
def _fields(kind: type) -> tuple[str, ...] | None:
    """The field names of a dataclass that is shown as an object; None for every other type."""
    if not dataclasses.is_dataclass(kind) or issubclass(kind, Unresolved):
        return None
    return tuple(field.name for field in dataclasses.fields(kind))
