"""What a pickle holds, without unpickling.

The opcodes are read one by one and only build dictionaries, lists, tuples, text, numbers, truth values and None. An
opcode that names, imports or calls anything ends the reading: no object of the file ever comes to life.
"""

from __future__ import annotations

import pickletools
from typing import Any

MOST_BYTES = 32 * 1024 * 1024
MOST_OPCODES = 4_000_000
_VALUES = frozenset(
    (
        *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "FLOAT", "BINFLOAT"),
        *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"),
        *("BINSTRING", "SHORT_BINSTRING", "STRING"),
    )
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()


class PickleRefusedError(Exception):
    """The bytes are no pickle of plain values; the text says what is wrong."""


def is_pickle(content: bytes) -> bool:
    """Whether the bytes begin as a pickle of protocol 2 or later."""
    return len(content) > 2 and content[0] == 0x80 and content[1] in range(2, 6)


def read(content: bytes) -> Any:
    """The plain value. One list may stand in many places, as in the file: bound what is made of it.

    Raises PickleRefusedError.
    """
    if len(content) > MOST_BYTES:
        raise PickleRefusedError("it is too long")
    try:
        return _build(content)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, StopIteration) as error:
        raise PickleRefusedError("it is damaged") from error


def _build(content: bytes) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if number > MOST_OPCODES:
            raise PickleRefusedError("it is too long")
        name = opcode.name
        if name == "STOP":
            return stack[-1]
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(memo[int(argument or 0)])
        elif name not in ("PROTO", "FRAME"):
            _collect(name, stack)
    raise PickleRefusedError("it is cut off")


def _collect(name: str, stack: list[Any]) -> None:
    """An opcode that makes or fills a container."""
    if name == "MARK":
        stack.append(_MARK)
    elif name in _EMPTY:
        stack.append(_EMPTY[name]())
    elif name in _TUPLES:
        stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
    elif name in ("TUPLE", "LIST", "DICT"):
        items = _popped(stack)
        stack.append(tuple(items) if name == "TUPLE" else items if name == "LIST" else _pairs(items))
    elif name in ("APPEND", "APPENDS"):
        items = [stack.pop()] if name == "APPEND" else _popped(stack)
        list.extend(stack[-1], items)
    elif name in ("SETITEM", "SETITEMS"):
        items = _popped(stack) if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
        dict.update(stack[-1], _pairs(items))
    else:
        raise PickleRefusedError(f"it holds {name}, which plain values never do")


def _popped(stack: list[Any]) -> list[Any]:
    """What lies above the last mark. The mark is found by identity: comparing could call what the values define."""
    at = next(index for index in range(len(stack) - 1, -1, -1) if stack[index] is _MARK)
    items = stack[at + 1 :]
    del stack[at:]
    return items


def _pairs(items: list[Any]) -> dict[Any, Any]:
    keys = items[::2]
    if not all(isinstance(key, (str, int)) for key in keys):
        raise PickleRefusedError("it has keys that are no text")
    return dict(zip(keys, items[1::2], strict=True))
