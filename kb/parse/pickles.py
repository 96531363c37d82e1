"""Read a pickle's content without unpickling.

The opcodes are read one by one and only build dictionaries, lists, tuples, text, numbers, truth values and None. No
object of the file ever comes to life: what names, imports or calls anything ends the reading, or, where objects are
asked for, becomes a note of the name and what it would be given. Protocols 2 to 5 are read, without the opcodes of
older ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import error as CutOff
from struct import unpack_from
from typing import Any

MOST_BYTES = 32 * 1024 * 1024
MOST_OPCODES = 6_000_000
_MARK = object()
_STOP = ord(".")


class PickleRefusedError(Exception):
    """The bytes are not pickle of plain values; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """An object that was not made: what the file calls, with which arguments, and the attributes it would be given."""

    name: str
    arguments: Any = ()
    state: Any = None


def read(content: bytes, *, objects: bool = False) -> Any:
    """The plain value, with ``objects`` as `Opaque` in it if they are asked for, else refused.

    One list may stand in many places, as in the file: bound what is made of it. Raises PickleRefusedError.
    """
    if len(content) > MOST_BYTES:
        raise PickleRefusedError("it is too long")
    try:
        return _Reader(content, {**_STEPS, **_OBJECTS} if objects else _STEPS).value()
    except (ValueError, LookupError, TypeError, CutOff) as error:
        raise PickleRefusedError("it is cut off or damaged") from error


class _Reader:
    """The place in the bytes, and what was built up to it."""

    __slots__ = ("at", "content", "memo", "stack", "steps")

    def __init__(self, content: bytes, steps: Mapping[int, _Step]) -> None:
        self.content, self.at, self.steps = content, 0, steps
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def value(self) -> Any:
        content, steps = self.content, self.steps
        for _ in range(MOST_OPCODES):
            code = content[self.at]
            self.at += 1
            if code == _STOP:
                return self.stack[-1]
            step = steps.get(code)
            if step is None:
                raise PickleRefusedError(f"it holds the opcode {code:#04x}, which plain values never need")
            step(self)
        raise PickleRefusedError("it is too long")

    def number(self, form: str, size: int) -> Any:
        """The number in the next bytes."""
        (found,) = unpack_from(form, self.content, self.at)
        self.at += size
        return found

    def taken(self, size: int) -> bytes:
        """The next bytes."""
        found = self.content[self.at : self.at + size]
        if len(found) < size:
            raise PickleRefusedError("it is cut off")
        self.at += size
        return found

    def text(self, form: str, size: int) -> None:
        self.stack.append(self.taken(self.number(form, size)).decode("utf-8", "surrogatepass"))

    def popped(self) -> list[Any]:
        """The values above the last mark, found by identity: comparing could call what values define."""
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items

    def extend(self, items: list[Any]) -> None:
        """Items into the list below; what an object is given is not kept."""
        if not isinstance(self.stack[-1], Opaque):
            list.extend(self.stack[-1], items)

    def fill(self, items: list[Any]) -> None:
        """Keys and values into the dictionary below; what an object is given is not kept."""
        if isinstance(self.stack[-1], Opaque):
            return
        keys = items[::2]
        if not all(isinstance(key, (str, int)) for key in keys):
            raise PickleRefusedError("it has keys that are not text")
        dict.update(self.stack[-1], zip(keys, items[1::2], strict=True))

    def line(self) -> str:
        end = self.content.index(b"\n", self.at)
        found = self.content[self.at : end].decode()
        self.at = end + 1
        return found

    def named(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise PickleRefusedError("it is damaged")
        self.stack.append(Opaque(f"{module}.{name}"))

    def called(self) -> None:
        arguments, of = self.stack.pop(), self.stack.pop()
        self.stack.append(Opaque(of.name if isinstance(of, Opaque) else "", arguments))

    def built(self) -> None:
        state, of = self.stack.pop(), self.stack.pop()
        self.stack.append(Opaque(of.name, of.arguments, state) if isinstance(of, Opaque) else Opaque("", (), state))

    def tuple_of(self, size: int) -> None:
        if len(self.stack) < size:
            raise PickleRefusedError("it is damaged")
        self.stack[-size:] = [tuple(self.stack[-size:])]


_Step = Callable[[_Reader], object]
_STEPS: Mapping[int, _Step] = {
    ord("h"): lambda r: r.stack.append(r.memo[r.number("<B", 1)]),
    ord("j"): lambda r: r.stack.append(r.memo[r.number("<I", 4)]),
    ord("q"): lambda r: r.memo.__setitem__(r.number("<B", 1), r.stack[-1]),
    ord("r"): lambda r: r.memo.__setitem__(r.number("<I", 4), r.stack[-1]),
    0x94: lambda r: r.memo.__setitem__(len(r.memo), r.stack[-1]),
    0x8C: lambda r: r.text("<B", 1),
    ord("X"): lambda r: r.text("<I", 4),
    0x8D: lambda r: r.text("<Q", 8),
    ord("K"): lambda r: r.stack.append(r.number("<B", 1)),
    ord("M"): lambda r: r.stack.append(r.number("<H", 2)),
    ord("J"): lambda r: r.stack.append(r.number("<i", 4)),
    0x8A: lambda r: r.stack.append(int.from_bytes(r.taken(r.number("<B", 1)), "little", signed=True)),
    ord("G"): lambda r: r.stack.append(r.number(">d", 8)),
    ord("N"): lambda r: r.stack.append(None),
    0x88: lambda r: r.stack.append(True),
    0x89: lambda r: r.stack.append(False),
    ord("("): lambda r: r.stack.append(_MARK),
    ord("]"): lambda r: r.stack.append([]),
    ord("}"): lambda r: r.stack.append({}),
    ord(")"): lambda r: r.stack.append(()),
    0x85: lambda r: r.tuple_of(1),
    0x86: lambda r: r.tuple_of(2),
    0x87: lambda r: r.tuple_of(3),
    ord("t"): lambda r: r.stack.append(tuple(r.popped())),
    ord("a"): lambda r: r.extend([r.stack.pop()]),
    ord("e"): lambda r: r.extend(r.popped()),
    ord("s"): lambda r: r.fill([r.stack.pop(-2), r.stack.pop()]),
    ord("u"): lambda r: r.fill(r.popped()),
    0x80: lambda r: r.taken(1),
    0x95: lambda r: r.taken(8),
}
"""What is done for each opcode of plain values."""
_OBJECTS: Mapping[int, _Step] = {
    ord("c"): lambda r: r.named(r.line(), r.line()),
    0x93: lambda r: r.named(r.stack.pop(-2), r.stack.pop()),
    ord("R"): _Reader.called,
    0x81: _Reader.called,
    ord("b"): _Reader.built,
    ord("B"): lambda r: r.stack.append(r.taken(r.number("<I", 4))),
    ord("C"): lambda r: r.stack.append(r.taken(r.number("<B", 1))),
    0x8F: lambda r: r.stack.append([]),
    0x90: lambda r: r.extend(r.popped()),
    0x91: lambda r: r.stack.append(r.popped()),
}
"""What is done for opcodes of objects, bytes and sets."""
