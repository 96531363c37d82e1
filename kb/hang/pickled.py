"""Pickled flight-recorder dumps → JSON text, without unpickling. Never raises.

The opcodes are read one by one and only build dictionaries, lists, tuples, text, numbers, truth values and None. An
opcode that names, imports or calls anything ends the reading: no object of the file ever comes to life.
"""

from __future__ import annotations

import json
import pickletools
from dataclasses import dataclass
from typing import Any

MOST_BYTES = 32 * 1024 * 1024
MOST_OPCODES = 4_000_000
MOST_BUILT = 2_000_000
"""Values that the text may hold: a memo can repeat one list into billions."""
MOST_DEPTH = 12
_VALUES = frozenset(
    (
        *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "FLOAT", "BINFLOAT"),
        *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"),
        *("BINSTRING", "SHORT_BINSTRING", "STRING"),
    )
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpickled:
    """The dump as JSON, one line for each collective; ``problem`` says why there is none."""

    text: str = ""
    problem: str = ""


class _RefusedError(Exception):
    """The file holds what a dump never does."""


def read(content: bytes) -> Unpickled | None:
    """The dump in a pickle; None if the content is none."""
    if len(content) < 3 or content[0] != 0x80 or content[1] not in range(2, 6):
        return None
    if len(content) > MOST_BYTES:
        return Unpickled(problem="it is too long")
    try:
        value = _build(content)
        if not isinstance(value, dict) or not isinstance(value.get("entries"), list):
            return Unpickled(problem="it is no flight-recorder dump")
        _count(value, [MOST_BUILT], 0)
        return Unpickled(text=_lines(value))
    except _RefusedError as error:
        return Unpickled(problem=str(error))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, StopIteration):
        return Unpickled(problem="it is damaged")


def _build(content: bytes) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
        if number > MOST_OPCODES:
            raise _RefusedError("it is too long")
        name = opcode.name
        if name == "STOP":
            return stack[-1]
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            memo[len(memo) if argument is None else int(argument)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(memo[int(argument or 0)])
        elif name not in ("PROTO", "FRAME"):
            _collect(name, stack)
    raise _RefusedError("it is cut off")


def _collect(name: str, stack: list[Any]) -> None:
    """An opcode that makes or fills a container."""
    if name == "MARK":
        stack.append(_MARK)
    elif name in ("EMPTY_LIST", "EMPTY_DICT", "EMPTY_TUPLE"):
        stack.append({"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}[name]())
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
        raise _RefusedError(f"it holds {name}, which a dump never does")


def _popped(stack: list[Any]) -> list[Any]:
    """What lies above the last mark. The mark is found by identity: comparing could call what the values define."""
    at = next(index for index in range(len(stack) - 1, -1, -1) if stack[index] is _MARK)
    items = stack[at + 1 :]
    del stack[at:]
    return items


def _pairs(items: list[Any]) -> dict[str, Any]:
    keys = items[::2]
    if not all(isinstance(key, (str, int)) for key in keys):
        raise _RefusedError("it has keys that are no text")
    return {str(key): value for key, value in zip(keys, items[1::2], strict=True)}


def _count(value: Any, left: list[int], depth: int) -> None:
    left[0] -= 1 + (len(value) // 16 if isinstance(value, str) else 0)
    if left[0] < 0 or depth > MOST_DEPTH:
        raise _RefusedError("it is too large or too deep")
    if isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            _count(item, left, depth + 1)


def _lines(dump: dict[str, Any]) -> str:
    rest = json.dumps({key: value for key, value in dump.items() if key != "entries"}, ensure_ascii=False)
    entries = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in dump["entries"])
    return f'{rest[:-1]}{", " if len(rest) > 2 else ""}"entries": [\n{entries}\n]}}\n'
