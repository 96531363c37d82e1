"""The client for ordinary programs: `AsyncClient` on an event loop of its own, in a thread.

A thread, because a program such as a notebook may run in an event loop already, in which no other can be run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from trainmedic.ui.client.asynchronous import AsyncClient

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Client, P], T]:
    @wraps(method)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(method(self._client, *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[AsyncClient, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Client, P], Generator[T, None, None]]:
    @wraps(method)
    def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        items = method(self._client, *args, **kwargs)

        async def following() -> T | None:
            return await anext(items, None)

        try:
            while (item := self._run(following())) is not None:
                yield item
        finally:
            # A reader that stops early closes the connection, and with it the model's work.
            self._run(items.aclose())

    return call


class Client:
    """Calls one service, as `AsyncClient` does. Close it, or use it with ``with``. Safe to use from several threads."""

    def __init__(
        self, base_url: str = "http://127.0.0.1:8000", *, api_key: str | None = None, timeout_s: float = 60.0
    ) -> None:
        self._client = AsyncClient(base_url, api_key=api_key, timeout_s=timeout_s)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._loop is None or self._thread is None:
            return  # never used
        self._run(self._client.aclose())
        loop, thread, self._loop = self._loop, self._thread, None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._loop is None:
                # Started by the first call: most programs that make a client in passing never use it.
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=self._loop.run_forever, name="trainmedic-client", daemon=True)
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # after Ctrl-C nobody reads the response
            raise

    ask = _blocking(AsyncClient.ask)
    stream = _iterating(AsyncClient.stream)
    check = _blocking(AsyncClient.check)
    audit = _blocking(AsyncClient.audit)
    diff = _blocking(AsyncClient.diff)
    search = _blocking(AsyncClient.search)
    cases = _iterating(AsyncClient.cases)
    case = _blocking(AsyncClient.case)
    mechanisms = _iterating(AsyncClient.mechanisms)
    mechanism = _blocking(AsyncClient.mechanism)
    rules = _iterating(AsyncClient.rules)
    rule = _blocking(AsyncClient.rule)
    feedback = _blocking(AsyncClient.feedback)
    answer = _blocking(AsyncClient.answer)
    conversations = _iterating(AsyncClient.conversations)
    conversation = _iterating(AsyncClient.conversation)
    delete_conversation = _blocking(AsyncClient.delete_conversation)
    ready = _blocking(AsyncClient.ready)
    version = _blocking(AsyncClient.version)
