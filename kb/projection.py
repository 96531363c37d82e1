"""Values of the program as clients see them: the fields that a client's dataclass names, texts in one language."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from trainmedic.kb.model.report import Text

T = TypeVar("T")
Convert = Callable[[Any, str], Any]


def project(kind: type[T], value: object, language: str = "en", /, **more: object) -> T:
    """A ``kind`` with the attributes of ``value`` that it has fields for; ``more`` are fields as they shall be.

    A `Text` becomes a string, an enumeration its value, None an empty string where the field is a string; what a
    nested dataclass names is projected likewise.
    """
    fields = {
        name: convert(getattr(value, name), language) for name, convert in _fields(cast(Any, kind)) if name not in more
    }
    return kind(**fields, **more)


@cache
def _fields(kind: type) -> tuple[tuple[str, Convert], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, _converter(hints[field.name])) for field in dataclasses.fields(cast(Any, kind)))


def _converter(hint: Any) -> Convert:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and len(arguments) == 2 and type(None) in arguments:
        return partial(_optional, _converter(next(kind for kind in arguments if kind is not type(None))))
    if origin is tuple:
        return partial(_tuple, _converter(arguments[0]))
    if hint is str or origin is Literal:
        return _string
    if dataclasses.is_dataclass(hint):
        return partial(_nested, cast(Any, hint))
    return _same


def _optional(convert: Convert, value: Any, language: str) -> Any:
    return None if value is None else convert(value, language)


def _tuple(convert: Convert, value: Any, language: str) -> tuple[Any, ...]:
    return tuple(convert(item, language) for item in value)


def _string(value: Any, language: str) -> str:
    if isinstance(value, Text):
        return value.get(language)
    return "" if value is None else str(getattr(value, "value", value))


def _nested(kind: type[Any], value: Any, language: str) -> Any:
    return value if isinstance(value, kind) else project(kind, value, language)


def _same(value: Any, _: str) -> Any:
    return value
