"""Work for processes with bounds, some of it taken over by what it works on; apart, because each process imports it."""

from __future__ import annotations

import inspect
import os
import pickle
import time
from importlib import import_module

from trainmedic.kb import confined
from trainmedic.kb.model.evidence import Evidence

REACHED: list[str] = []
"""What was done by values that were unpickled."""


def reach(what: str) -> None:
    REACHED.append(what)


class Touch:
    """Does something wherever it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return reach, ("here",)


def ordered(numbers: list[int]) -> list[int]:
    return sorted(numbers)


def pid() -> int:
    return os.getpid()


def number(text: str) -> int:
    return int(text)


def imported(name: str) -> None:
    import_module(name)


def failing(secret: str) -> None:
    raise KeyError(secret)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def leave() -> None:
    os._exit(1)


def swallow(size: int) -> int:
    return len(bytearray(size))


def long(size: int) -> str:
    return "x" * size


def mistyped() -> list[int]:
    return ["one"]  # type: ignore[list-item]


def taken_over(how: str) -> Evidence:
    """Writes to the connection itself, as code in the place of the reader would."""
    channel = next(found for frame in inspect.stack() if (found := frame.frame.f_locals.get("channel")))
    done = bytes((confined._DONE,))
    pickled = pickle.dumps(Touch())
    if how == "pickle":
        channel.sendall(done + len(pickled).to_bytes(8, "big") + pickled)
    elif how == "too long":
        channel.sendall(done + (confined.MOST_SENT + 1).to_bytes(8, "big"))
    elif how == "never ends":
        channel.sendall(done + (100).to_bytes(8, "big") + b"[")
    elif how == "other data":
        channel.sendall(done + (4).to_bytes(8, "big") + b"[[]]")
    elif how == "unknown kind":
        channel.sendall(b"\xff" + (4).to_bytes(8, "big") + b"else")
    time.sleep(60)
    return Evidence()
