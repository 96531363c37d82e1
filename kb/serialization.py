"""Values to JSON and back: the dataclasses of `service.answer.schema` are the schema for the API, its clients and MCP.

Encoding needs no pydantic, because ``trainmedic check --format json`` must start fast; decoding and the OpenAPI
document use pydantic on the same dataclasses.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum
from functools import cache, lru_cache
from typing import Any, TypeVar, cast

from trainmedic.kb.model.run import Unresolved

T = TypeVar("T")


class NonFinite:
    """Marks a float that may be NaN or infinite; JSON has no such numbers, so they are strings there."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """A number or a string."""
        return {"anyOf": [{"type": "number"}, {"type": "string"}]}


class OpenChoice:
    """Marks a `Literal` to which a newer service may add: any string is decoded, the schema lists the known ones."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """The literal, else a string."""
        from pydantic_core import core_schema

        return core_schema.union_schema([handler(source), core_schema.str_schema()], mode="left_to_right")

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        """The schema of the literal alone."""
        return handler(schema["choices"][0])


def plain(value: object) -> object:
    """``value`` as dicts, lists and scalars that JSON can hold.

    Non-finite floats become the strings ``"nan"``, ``"inf"``, ``"-inf"``: JSON has no numbers for them, and
    null would hide the very thing that users ask about. An unresolved shell value becomes its raw text.
    """
    kind: Any = type(value)
    if kind is str or kind is int or kind is bool or value is None:  # nearly every value, so first
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
    """``value`` as JSON text: keys in field order, non-ASCII characters unescaped."""
    if indent is not None:
        return json.dumps(plain(value), ensure_ascii=False, indent=indent, allow_nan=False)
    import orjson  # a check needs none of it

    try:
        return orjson.dumps(plain(value)).decode()
    except TypeError:  # half characters, and numbers of more than 64 bits
        return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def to_json_once(value: object) -> str:
    """As `to_json`, for a frozen value that is both stored and sent: the last few texts are kept."""
    return _kept_json(_Same(value))


class _Same:
    """A value that equals itself alone: comparing answers by what they hold takes longer than encoding one."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


@lru_cache(maxsize=16)
def _kept_json(same: _Same) -> str:
    return to_json(same.value)


def from_json(kind: type[T], text: str | bytes) -> T:
    """A dataclass from JSON text. Unknown fields are ignored, absent ones get their defaults.

    Raises `ValueError` for anything else; its message does not repeat the text.
    """
    from pydantic import ValidationError

    try:
        value: T = _decoder(cast(Any, kind)).validate_json(text)
    except ValidationError as error:
        first, *more = error.errors(include_input=False, include_url=False, include_context=False)
        path = ".".join(map(str, first["loc"]))
        raise ValueError(
            f"{path + ': ' if path else ''}{first['msg']}" + (f" ({len(more)} more)" if more else "")
        ) from None
    return value


@cache
def _decoder(kind: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The field names of a dataclass that is encoded as an object; None for every other type."""
    if not dataclasses.is_dataclass(kind) or issubclass(kind, Unresolved):
        return None
    return tuple(field.name for field in dataclasses.fields(kind))
