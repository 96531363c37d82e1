"""Values of the condition language: what equals what, what is less than what, and what is true. Nothing here raises.

Kinds never mix: a number, a text, a boolean, None ("not set"), a list and a mapping are never equal to one another.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, TypeGuard

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import Unresolved, Value


class Unknown(Enum):
    """The third value: not given, or not to be known from what was given."""

    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        raise TypeError("unknown is neither true nor false")


UNKNOWN: Final = Unknown.UNKNOWN
Result: TypeAlias = "Value | Unknown"
Key: TypeAlias = tuple[str, ...]
"""A fact by function and arguments: ``("name", "micro_batch")``, ``("version", "trl", ">=0.12")``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One answer. ``spans`` are where it was read (a default's span has ``default`` set).

    ``seen`` says it in words for an explanation; ``missing`` names what to ask for where the value is `UNKNOWN`
    (as `kb.model.report.Missing.fact`); ``user_provided`` is True where the user himself gave it.
    """

    value: Result
    spans: tuple[Span, ...] = ()
    seen: str = ""
    missing: tuple[str, ...] = ()
    user_provided: bool = False


def show(value: object) -> str:
    """A value as a message shows it: floats with four figures, texts bare, None as ``not set``."""
    if isinstance(value, Unresolved):
        return value.raw
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple | list):
        return ", ".join(show(part) for part in value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {show(part)}" for key, part in value.items()) + "}"
    return str(value)


def unresolved(value: Value) -> bool:
    """Whether a value is, or holds, something that the paste does not resolve."""
    if isinstance(value, tuple):
        return any(unresolved(part) for part in value)
    if isinstance(value, Mapping):
        return any(unresolved(part) for part in value.values())
    return isinstance(value, Unresolved)


def truth(value: Result) -> bool | Unknown:
    """A value as a condition: None, zero, the empty text and the empty list are false."""
    if value is UNKNOWN or isinstance(value, bool):
        return value
    return UNKNOWN if isinstance(value, Unresolved) else bool(value)


def equal(left: Value, right: Value) -> bool:
    """Whether two values are the same, of the same kind."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    return _kind(left) == _kind(right) and left == right


def member(item: Value, holder: Value) -> bool | Unknown:
    """Whether ``item`` is in a list, is a key of a mapping, or is one of the words of a text. None holds nothing."""
    if holder is None:
        return False
    if isinstance(holder, str):
        return isinstance(item, str) and item in holder.replace(",", " ").split()
    if isinstance(holder, tuple):
        return any(equal(item, part) for part in holder)
    if isinstance(holder, Mapping):
        return isinstance(item, str) and item in holder
    return UNKNOWN


_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def ordered(symbol: str, left: Value, right: Value) -> bool | Unknown:
    """``left < right`` and its like: numbers only; false where one side is None, unknown for other kinds."""
    if left is None or right is None:
        return False
    if is_number(left) and is_number(right):
        return _ORDERS[symbol](left, right)
    return UNKNOWN


_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def arithmetic(symbol: str, left: Value, right: Value) -> Result:
    """A sum, product … of two numbers; unknown for anything else, for a division by zero and beyond a float's range."""
    if not (is_number(left) and is_number(right)):
        return UNKNOWN
    try:
        return _ARITHMETIC[symbol](left, right)
    except ArithmeticError:
        return UNKNOWN


def is_number(value: Result) -> TypeGuard[int | float]:
    """Whether a value is a number (a boolean is none)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Value) -> type:
    return float if is_number(value) else type(value)
