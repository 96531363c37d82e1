"""``training_args.bin`` → the settings in it as Python text. Nothing is unpickled: the opcodes are read as data, and of
what they would build only plain values under the names of attributes are kept. Never raises."""

from __future__ import annotations

import io
import pickletools
import zipfile
from dataclasses import dataclass
from itertools import islice
from typing import Any

from trainmedic.kb.frameworks import catalogue

MOST_BYTES = 1024 * 1024
_MOST_OPCODES, _MOST_VALUES = 50_000, 500
_PRIVATE = frozenset({"hub_token", "push_to_hub_token", "logging_dir", "run_name", "local_rank"})


@dataclass(frozen=True, slots=True)
class _Named:
    """A class or function that the pickle names; ``value`` what it would be called with, if that is plain."""

    name: str
    value: Any = None


class _Mark:
    pass


def read(content: bytes) -> str:
    """Text such as ``args = SFTConfig(⏎    learning_rate=0.0001,⏎)``; empty if it cannot be told."""
    try:
        built = _built(_pickle(content))
    except Exception:  # damaged or no pickle: whatever the decoder trips over
        return ""
    if not isinstance(built, tuple):
        return ""
    name, state = built
    module, _, kind = name.rpartition(".")
    if kind.startswith("_"):  # the oldest protocols name a function that makes the object
        return ""
    package = module.partition(".")[0]
    rows = [
        f"    {key}={value!r},\n" for key, value in islice(state.items(), _MOST_VALUES) if _told(key, value, package)
    ]
    return f"from {package} import {kind}\nargs = {kind}(\n{''.join(sorted(rows))})\n" if rows else ""


def _told(key: Any, value: Any, package: str) -> bool:
    """Whether it is a plain value that somebody chose: most fields hold their defaults or what was computed."""
    if not isinstance(key, str) or not key.isidentifier() or key.startswith("_") or key in _PRIVATE:
        return False
    if value in (None, "", [], {}) or not _plain(value):
        return False
    if package not in catalogue.frameworks():
        return True
    info = catalogue.option(package, key)
    return info is not None and value not in (info.default, *info.default_by.values())


def _plain(value: Any) -> bool:
    """Whether it consists of few values that Python writes as text: one that is named twice counts twice, for a pickle
    of some lines may be the size of the memory as text."""
    waiting = [value]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return True
        item = waiting.pop()
        if isinstance(item, dict | list | tuple) and len(item) <= _MOST_VALUES:
            waiting += item.values() if isinstance(item, dict) else item
        elif not (item is None or isinstance(item, bool | int | float) or (isinstance(item, str) and len(item) < 2000)):
            return False
    return False


def _pickle(content: bytes) -> bytes:
    """The pickle inside the archive that torch writes, or the content itself."""
    if not content.startswith(b"PK\x03\x04"):
        return content[:MOST_BYTES]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        with archive.open(name) as stream:
            return stream.read(MOST_BYTES)


def _built(content: bytes) -> tuple[str, dict[Any, Any]] | None:
    """The class that the pickle names for its object, and the attributes that it would be given."""
    machine = _Machine()
    for opcode, argument, _ in islice(pickletools.genops(content), _MOST_OPCODES):
        machine.step(opcode.name, argument)
    made = machine.stack[-1] if machine.stack else None
    return (made.name, made.value) if isinstance(made, _Named) and isinstance(made.value, dict) else None


class _Machine:
    """The stack of a pickle with plain values and names only."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        if name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _MAKERS:
            self.stack.append(_MAKERS[name]())
        elif name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"):
            self._memo[len(self._memo) if name == "MEMOIZE" else int(argument)] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            self.stack.append(self._memo[int(argument)])
        elif name == "GLOBAL":
            self.stack.append(_Named(argument.replace(" ", ".")))
        elif name == "STACK_GLOBAL":
            attribute, module = self.stack.pop(), self.stack.pop()
            self.stack.append(_Named(f"{module}.{attribute}"))
        elif name in ("REDUCE", "NEWOBJ", "BUILD"):
            self._object(name)
        elif name in _ENDS:
            self._end(name)
        elif name in _TUPLES:
            count = _TUPLES[name]
            self.stack[-count:] = [tuple(self.stack[-count:])]
        elif name in ("SETITEM", "APPEND"):
            self._items(self.stack.pop() if name == "APPEND" else (self.stack.pop(-2), self.stack.pop()), name)
        elif name not in ("PROTO", "FRAME", "STOP"):
            self.stack.append(argument)  # numbers and texts

    def _object(self, name: str) -> None:
        taken, of = self.stack.pop(), self.stack.pop()
        of = of if isinstance(of, _Named) else _Named("unknown")
        if name == "BUILD":
            self.stack.append(_Named(of.name, taken if isinstance(taken, dict) else of.value))
        elif name == "REDUCE" and isinstance(taken, tuple) and len(taken) == 1 and isinstance(taken[0], str):
            self.stack.append(taken[0])  # a choice of an enumeration: its value
        else:
            self.stack.append(_Named(of.name))

    def _end(self, name: str) -> None:
        """What stands above the mark becomes a tuple, or goes into what is below it."""
        at = max(index for index, item in enumerate(self.stack) if item is _MARK)
        items = self.stack[at + 1 :]
        del self.stack[at:]
        if name == "TUPLE":
            self.stack.append(tuple(items))
        elif name == "FROZENSET":
            self.stack.append(items)
        elif name == "SETITEMS":
            for pair in zip(items[::2], items[1::2], strict=True):
                self._items(pair, name)
        else:
            for item in items:
                self._items(item, name)

    def _items(self, item: Any, name: str) -> None:
        into = self.stack[-1]
        if isinstance(into, dict) and name.startswith("SETITEM") and isinstance(item[0], str):
            into[item[0]] = item[1]
        elif isinstance(into, list):
            into.append(item)


_MARK = _Mark()
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": (), "MARK": _MARK}
_MAKERS = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_SET": list}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_ENDS = frozenset({"TUPLE", "SETITEMS", "APPENDS", "ADDITEMS", "FROZENSET"})
