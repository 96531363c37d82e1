"""Work that goes on beside other work of the same answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """A call that has begun in a thread of its own; calling this waits for its result, or raises what it raised.

    Worth it only for what lets other threads run meanwhile: the encoder, faiss, a request.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        self._future: Future[T] = Future()
        # A daemon: nobody waits for an endpoint at the end of the process.
        Thread(target=copy_context().run, args=(self._work, call), daemon=True).start()

    def __call__(self) -> T:
        return self._future.result()

    def _work(self, call: Callable[[], T]) -> None:
        try:
            self._future.set_result(call())
        except BaseException as error:
            self._future.set_exception(error)
