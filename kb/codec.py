"""Values of frozen dataclasses to bytes and back, for what comes from a process that is not trusted.

The bytes are JSON and name no class: what is built follows from the annotations of the expected type alone, no
constructor runs, and every field has the type that it is annotated with. Each object is a row, the number of its class
and its fields; a reference is a row's number, so that what was one object is one again. A row refers only to earlier
ones: nothing can hold itself, and what is built is in proportion to the bytes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, ForwardRef, Generic, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin
from typing import get_type_hints as hints_of

T = TypeVar("T")
_SCALARS: dict[Any, frozenset[type]] = {
    str: frozenset({str}),
    bool: frozenset({bool}),
    int: frozenset({int, bool}),
    float: frozenset({float, int, bool}),
    type(None): frozenset({type(None)}),
}
_LONGEST = 1 << 64
"""From here on integers are written as hexadecimal text: Python bounds the digits of decimal ones."""


class Malformed(ValueError):
    """Data that does not describe a value of the expected type."""


class _Sent(NamedTuple):
    """The rows so far, and the row of each object by its id."""

    rows: list[list[Any]]
    numbers: dict[int, int]


class _Received(NamedTuple):
    """The objects so far. ``texts``: equal ones are one object, as they mostly were: the name of a file, a key."""

    objects: list[Any]
    texts: dict[str, str]


class _Shape(NamedTuple):
    """How the values of one type are written and read."""

    write: Callable[[Any, _Sent], Any]
    read: Callable[[Any, _Received], Any]


class _Class(NamedTuple):
    kind: type
    fields: dict[str, _Shape]


class Codec(Generic[T]):
    """Writes and reads values of one type. Raises `TypeError` at once for a type that cannot be."""

    def __init__(self, kind: Any) -> None:
        self._classes: list[_Class] = []
        self._references: dict[type, _Shape] = {}
        self._unions: list[_Shape] = []
        self._root = self._shape(kind)

    def encode(self, value: T) -> bytes:
        sent = _Sent([], {})
        root = self._root.write(value, sent)
        text = json.dumps([sent.rows, root], ensure_ascii=False, check_circular=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")

    def decode(self, data: bytes) -> T:
        """Raises `Malformed`."""
        received = _Received([], {})
        try:
            rows, root = json.loads(data.decode("utf-8", "surrogatepass"))
            for number, *packed in rows:
                kind, fields = self._classes[_number(number, len(self._classes))]
                made: Any = object.__new__(kind)
                for (name, shape), value in zip(fields.items(), packed, strict=True):
                    object.__setattr__(made, name, shape.read(value, received))
                received.objects.append(made)
            return cast(T, self._root.read(root, received))
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise Malformed(f"no value of the expected type ({type(error).__name__})") from error

    def _shape(self, kind: Any) -> _Shape:
        origin, arguments = get_origin(kind), get_args(kind)
        if kind in _SCALARS:
            return _scalar(_SCALARS[kind])
        if origin is Literal:
            return _choice({value: value for value in arguments})
        if origin in (Union, UnionType):
            return self._union(arguments)
        if isinstance(kind, ForwardRef) and self._unions:  # a recursive alias, within itself
            return self._unions[-1]
        if origin is tuple and arguments[1:] == (...,):
            return _many(tuple, self._shape(arguments[0]))
        if origin is tuple:
            return _fixed([self._shape(argument) for argument in arguments])
        if origin is list:
            return _many(list, self._shape(arguments[0]))
        if origin is Mapping and arguments[0] is str:
            return _map(self._shape(arguments[1]))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return _choice({member.value: member for member in kind})
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return self._references.get(kind) or self._reference(kind)
        raise TypeError(f"values of {kind} are not plain data")

    def _union(self, arguments: Iterable[Any]) -> _Shape:
        scalars = frozenset[type]().union(*(_SCALARS.get(argument, ()) for argument in arguments))
        others: list[tuple[Any, _Shape]] = []
        union = _either(_scalar(scalars), scalars, others)
        self._unions.append(union)
        others += [(get_origin(each) or each, self._shape(each)) for each in arguments if each not in _SCALARS]
        self._unions.pop()
        return union

    def _reference(self, kind: type) -> _Shape:
        if not cast(Any, kind).__dataclass_params__.frozen or hasattr(kind, "__post_init__"):
            raise TypeError(f"{kind.__name__} is not a frozen dataclass without code of its own")
        fields: dict[str, _Shape] = {}
        shape = self._references[kind] = _reference(len(self._classes), kind, fields)
        self._classes.append(_Class(kind, fields))
        hints = hints_of(kind)
        fields |= {field.name: self._shape(hints[field.name]) for field in dataclasses.fields(cast(Any, kind))}
        return shape


@cache
def codec_of(kind: Any) -> Codec[Any]:
    return Codec(kind)


def _scalar(kinds: frozenset[type]) -> _Shape:
    """Texts, numbers, truth values and None, as JSON has them."""

    def write(value: Any, _: _Sent) -> Any:
        return {"": hex(value)} if isinstance(value, int) and not -_LONGEST < value < _LONGEST else value

    def read(packed: Any, received: _Received) -> Any:
        if type(packed) is dict and int in kinds:
            return int(packed[""], 16)
        if type(packed) not in kinds:
            raise Malformed("a scalar of another type")
        return received.texts.setdefault(packed, packed) if type(packed) is str else packed

    return _Shape(write, read)


def _choice(members: Mapping[Any, Any]) -> _Shape:
    """The members of an enumeration or literal, each written as its text."""
    return _Shape(lambda value, _: value, lambda packed, _: members[packed])


def _reference(number: int, kind: type, fields: Mapping[str, _Shape]) -> _Shape:
    def write(value: Any, sent: _Sent) -> int:
        row = sent.numbers.get(id(value))
        if row is None:
            packed = [number, *(shape.write(getattr(value, name), sent) for name, shape in fields.items())]
            row = sent.numbers[id(value)] = len(sent.rows)
            sent.rows.append(packed)
        return row

    def read(packed: Any, received: _Received) -> Any:
        value = received.objects[_number(packed, len(received.objects))]
        if type(value) is not kind:
            raise Malformed("an object of another class")
        return value

    return _Shape(write, read)


def _many(make: Callable[[Iterable[Any]], Any], item: _Shape) -> _Shape:
    """Tuples or lists of any length."""

    def read(packed: Any, received: _Received) -> Any:
        return make([item.read(each, received) for each in _listed(packed)])

    return _Shape(lambda value, sent: [item.write(each, sent) for each in value], read)


def _fixed(places: Iterable[_Shape]) -> _Shape:
    """Tuples of a fixed length."""

    def write(value: Any, sent: _Sent) -> Any:
        return [shape.write(each, sent) for shape, each in zip(places, value, strict=True)]

    def read(packed: Any, received: _Received) -> Any:
        return tuple([shape.read(each, received) for shape, each in zip(places, _listed(packed), strict=True)])

    return _Shape(write, read)


def _map(item: _Shape) -> _Shape:
    """Read-only mappings."""

    def read(packed: Any, received: _Received) -> Any:
        if type(packed) is not dict:
            raise Malformed("no mapping")
        return MappingProxyType({key: item.read(value, received) for key, value in packed.items()})

    return _Shape(lambda value, sent: {key: item.write(each, sent) for key, each in value.items()}, read)


def _either(scalar: _Shape, scalars: frozenset[type], others: list[tuple[Any, _Shape]]) -> _Shape:
    """Values of several types: scalars as they are, others behind the number of their type."""

    def write(value: Any, sent: _Sent) -> Any:
        if type(value) not in scalars:
            for number, (kind, shape) in enumerate(others):
                if kind == Literal or isinstance(value, kind):
                    return [number, shape.write(value, sent)]
        return scalar.write(value, sent)

    def read(packed: Any, received: _Received) -> Any:
        if type(packed) is not list:
            return scalar.read(packed, received)
        number, inner = packed
        return others[_number(number, len(others))][1].read(inner, received)

    return _Shape(write, read)


def _listed(packed: Any) -> list[Any]:
    if type(packed) is not list:
        raise Malformed("no list")
    return packed


def _number(packed: Any, below: int) -> int:
    if type(packed) is not int or not 0 <= packed < below:
        raise Malformed("a number that there is not")
    return packed
