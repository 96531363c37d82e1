"""Values to JSON and back. The one place that knows how a dataclass looks on the wire."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum

from trainmedic.kb.model.run import Unresolved

_KNOWN: dict[type, tuple[str, ...] | None] = {}


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


def _fields(kind: type) -> tuple[str, ...] | None:
    """The field names of a dataclass that is shown as an object; None for every other type."""
    if kind not in _KNOWN:
        shown = dataclasses.is_dataclass(kind) and not issubclass(kind, Unresolved)
        _KNOWN[kind] = tuple(field.name for field in dataclasses.fields(kind)) if shown else None
    return _KNOWN[kind]
