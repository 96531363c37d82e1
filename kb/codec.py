"""Values of frozen dataclasses to bytes and back, for what comes from a process that is not trusted.

The bytes are JSON and name no class: what is built follows from the annotations of the expected type alone, no
constructor runs, and every field has the type that it is annotated with. The objects of one class are one table, its
fields are columns, and a reference is a row's number, so that what was one object is one again. A table refers only to
later ones: nothing can hold itself, and what is built is in proportion to the bytes.
"""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import chain, islice, repeat
from types import MappingProxyType, UnionType
from typing import (
    Any,
    ForwardRef,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")
Column = list[Any]
Made = dict[type, list[Any]]
"""The objects of each class, in the order of their rows."""
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


class _Seen(dict[type, dict[int, tuple[int, Any]]]):
    """The objects of each class that were referred to: id → row and object."""

    def row(self, kind: type, value: Any) -> int:
        rows = self[kind]
        return rows.setdefault(id(value), (len(rows), value))[0]


class _Shape(Protocol):
    """How the values of one type are written and read, many at once."""

    def pack(self, values: Sequence[Any], seen: _Seen) -> Any: ...

    def unpack(self, packed: Any, count: int, made: Made) -> Column: ...


class Codec(Generic[T]):
    """Writes and reads values of one type. Raises `TypeError` at once for a type that cannot be."""

    def __init__(self, kind: Any) -> None:
        self._tables: dict[type, _Table] = {}
        self._unions: list[_Union] = []
        self._root = self._shape(kind)

    def encode(self, value: T) -> bytes:
        seen = _Seen({kind: {} for kind in self._tables})
        root = self._root.pack([value], seen)
        tables = [table.pack(seen) for table in reversed(self._tables.values())]  # users before what they use
        text = json.dumps([root, *tables], ensure_ascii=False, check_circular=False, separators=(",", ":"))
        return text.encode("utf-8", "surrogatepass")

    def decode(self, data: bytes) -> T:
        """Raises `Malformed`."""
        made: Made = {}
        try:
            root, *packed = json.loads(data.decode("utf-8", "surrogatepass"))
            for table, rows in zip(self._tables.values(), reversed(packed), strict=True):
                made[table.kind] = table.unpack(rows, made)
            (value,) = self._root.unpack(root, 1, made)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise Malformed(f"no value of the expected type ({type(error).__name__})") from error
        return cast(T, value)

    def _shape(self, kind: Any) -> _Shape:
        origin, arguments = get_origin(kind), get_args(kind)
        if kind in _SCALARS:
            return _Scalar(_SCALARS[kind])
        if origin is Literal:
            return _Choice({value: value for value in arguments})
        if origin in (Union, UnionType):
            return self._union(arguments)
        if isinstance(kind, ForwardRef) and self._unions:  # a recursive alias, within itself
            return self._unions[-1]
        if origin is tuple and arguments[1:] == (...,):
            return _Many(tuple, self._shape(arguments[0]))
        if origin is tuple:
            return _Fixed([self._shape(argument) for argument in arguments])
        if origin is list:
            return _Many(list, self._shape(arguments[0]))
        if origin is Mapping and arguments[0] is str:
            return _Map(self._shape(arguments[1]))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return _Choice({member.value: member for member in kind})
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return self._reference(kind)
        raise TypeError(f"values of {kind} are not plain data")

    def _union(self, arguments: Iterable[Any]) -> _Shape:
        scalars = frozenset[type]().union(*(_SCALARS.get(argument, ()) for argument in arguments))
        others = [argument for argument in arguments if argument not in _SCALARS]
        if not others:
            return _Scalar(scalars)
        union = _Union(_Scalar(scalars))
        self._unions.append(union)
        union.others += [(get_origin(argument) or argument, self._shape(argument)) for argument in others]
        self._unions.pop()
        return union

    def _reference(self, kind: type) -> _Shape:
        if kind not in self._tables:
            if not cast(Any, kind).__dataclass_params__.frozen or hasattr(kind, "__post_init__"):
                raise TypeError(f"{kind.__name__} is not a frozen dataclass without code of its own")
            hints = get_type_hints(kind)
            columns = {field.name: self._shape(hints[field.name]) for field in dataclasses.fields(cast(Any, kind))}
            self._tables[kind] = _Table(kind, columns)  # after those that it uses
        return _Reference(kind)


@cache
def codec_of(kind: Any) -> Codec[Any]:
    return Codec(kind)


class _Table:
    """All objects of one class."""

    def __init__(self, kind: type, columns: Mapping[str, _Shape]) -> None:
        self.kind = kind
        self._columns = columns

    def pack(self, seen: _Seen) -> Column:
        objects = [value for _, value in seen[self.kind].values()]
        packed = [
            shape.pack([getattr(value, name) for value in objects], seen) for name, shape in self._columns.items()
        ]
        return [len(objects), *packed]

    def unpack(self, packed: Any, made: Made) -> Column:
        count, *columns = packed
        values = [
            shape.unpack(column, count, made) for shape, column in zip(self._columns.values(), columns, strict=True)
        ]
        objects: Column = [object.__new__(self.kind) for _ in range(count)]
        for name, column in zip(self._columns, values, strict=True):
            deque(map(object.__setattr__, objects, repeat(name), column), maxlen=0)
        return objects


class _Scalar:
    """Texts, numbers, truth values and None, as JSON has them."""

    def __init__(self, kinds: frozenset[type]) -> None:
        self.kinds = kinds

    def pack(self, values: Sequence[Any], seen: _Seen) -> Column:
        return [
            {"": hex(value)} if isinstance(value, int) and not -_LONGEST < value < _LONGEST else value
            for value in values
        ]

    def unpack(self, packed: Any, count: int, made: Made) -> Column:
        values = _column(packed, count)
        found = set(map(type, values))
        if dict in found and int in self.kinds:
            values = [int(value[""], 16) if type(value) is dict else value for value in values]
            found.discard(dict)
        if not found <= self.kinds:
            raise Malformed("a scalar of another type")
        if found <= {str, type(None)}:  # equal texts are one object, as they mostly were: the name of a file, a key
            once: dict[Any, Any] = {}
            values = list(map(once.setdefault, values, values))
        return values


class _Choice:
    """The members of an enumeration or literal, each written as its text."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self._members = members

    def pack(self, values: Sequence[Any], seen: _Seen) -> Column:
        return list(values)

    def unpack(self, packed: Any, count: int, made: Made) -> Column:
        return [self._members[value] for value in _column(packed, count)]


class _Reference:
    def __init__(self, kind: type) -> None:
        self._kind = kind

    def pack(self, values: Sequence[Any], seen: _Seen) -> Column:
        return [seen.row(self._kind, value) for value in values]

    def unpack(self, packed: Any, count: int, made: Made) -> Column:
        rows, objects = _numbers(packed, count), made[self._kind]
        if max(rows, default=-1) >= len(objects):
            raise Malformed("a row that there is not")
        return [objects[row] for row in rows]


class _Many:
    """Tuples or lists of any length: how long each is, and all their items."""

    def __init__(self, make: type, item: _Shape) -> None:
        self._make, self._item = make, item

    def pack(self, values: Sequence[Any], seen: _Seen) -> Column:
        items = list(chain.from_iterable(values))
        return [list(map(len, values)), self._item.pack(items, seen) if items else []]

    def unpack(self, packed: Any, count: int, made: Made) -> Column:
        lengths, items = packed
        lengths = _numbers(lengths, count)
        total = sum(lengths)
        remaining = iter(self._item.unpack(items, total, made) if total else ())
        return [self._make(islice(remaining, length)) for length in lengths]


class _Fixed:
    """Tuples of a fixed length: a column for each place."""

    def __init__(self, places: Sequence[_Shape]) -> None:
        self._places = places

    def pack(self, values: Sequence[Any], seen: _Seen) -> Column:
        return [shape.pack([value[place] for value in values], seen) for place, shape in enumerate(self._places)]

    def unpack(self, packed: Any, count: int, made: Made) -> Column:
        columns = [shape.unpack(column, count, made) for shape, column in zip(self._places, packed, strict=True)]
        return list(zip(*columns, strict=True))


class _Map:
    """Read-only mappings: all their keys, and all their values."""

    def __init__(self, value: _Shape) -> None:
        self._pairs = _Many(tuple, _Fixed([_Scalar(_SCALARS[str]), value]))

    def pack(self, values: Sequence[Any], seen: _Seen) -> Column:
        return self._pairs.pack([value.items() for value in values], seen)

    def unpack(self, packed: Any, count: int, made: Made) -> Column:
        return [MappingProxyType(dict(pairs)) for pairs in self._pairs.unpack(packed, count, made)]


class _Union:
    """Values of several types: the number of each one's type, and the values of each type."""

    def __init__(self, scalar: _Scalar) -> None:
        self._scalar = scalar
        self.others: list[tuple[Any, _Shape]] = []

    def pack(self, values: Sequence[Any], seen: _Seen) -> Column:
        numbers = [0 if type(value) in self._scalar.kinds else self._number(value) for value in values]
        shapes = (self._scalar, *(shape for _, shape in self.others))
        groups: list[list[Any]] = [[] for _ in shapes]
        for number, value in zip(numbers, values, strict=True):
            groups[number].append(value)
        return [
            numbers,
            *(shape.pack(group, seen) if group else [] for shape, group in zip(shapes, groups, strict=True)),
        ]

    def unpack(self, packed: Any, count: int, made: Made) -> Column:
        numbers, *groups = packed
        numbers = _numbers(numbers, count)
        shapes = (self._scalar, *(shape for _, shape in self.others))
        values = []
        for number, (shape, group) in enumerate(zip(shapes, groups, strict=True)):
            size = numbers.count(number)
            values.append(iter(shape.unpack(group, size, made) if size else ()))
        return [next(values[number]) for number in numbers]

    def _number(self, value: Any) -> int:
        for number, (kind, _) in enumerate(self.others, 1):
            if kind == Literal or isinstance(value, kind):
                return number
        return 0


def _column(packed: Any, count: int) -> Column:
    if type(packed) is not list or len(packed) != count:
        raise Malformed("a column of another length")
    return packed


def _numbers(packed: Any, count: int) -> list[int]:
    """Lengths, rows or numbers of types: none below 0."""
    numbers = _column(packed, count)
    if not set(map(type, numbers)) <= {int} or min(numbers, default=0) < 0:
        raise Malformed("no number")
    return numbers
