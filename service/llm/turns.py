"""Turns at a model: slots, deadlines and the circuit breaker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from trainmedic.kb.breaker import Breaker, State
from trainmedic.service.llm.endpoint import ModelOptions
from trainmedic.service.llm.errors import BREAKS, ModelError


class Turns:
    """Turns at the model: a slot, a deadline and the circuit breaker of every call."""

    def __init__(self, options: ModelOptions, clock: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self._breaker = Breaker(clock)
        self._slots = asyncio.Semaphore(options.concurrency)

    @property
    def state(self) -> State:
        return self._breaker.state

    @asynccontextmanager
    async def turn(self, within_s: float | None = None) -> AsyncIterator[float]:
        """A slot for one call, whose result is reported to the breaker, and the call's deadline.

        Raises `ModelError` ``open`` or ``busy`` if there is none.
        """
        if self.state == "open":
            raise _breaker_open()  # before waiting for a slot
        most, first = self._options.timeout_s, self._options.first_token_s
        # Set before waiting for a slot: a full queue must not stretch the answer past the configured time.
        deadline = self._clock() + min(most, most if within_s is None else within_s)
        try:
            # Waiting for a slot counts towards the first token: to the user both are a silent page.
            async with asyncio.timeout(max(0.0, min(first, deadline - self._clock()))):
                await self._slots.acquire()
        except TimeoutError:
            raise ModelError("busy", f"{self._options.concurrency} answers are being written") from None
        try:
            async with self._guarded():
                yield deadline
        finally:
            self._slots.release()

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[None]:
        call = self._breaker.admit()
        if not call:
            raise _breaker_open()
        try:
            yield
        except ModelError as failure:
            if failure.kind in BREAKS:
                self._breaker.failed(call)
            else:
                # A refusal of one request (too long, bad form) says that the endpoint works.
                self._breaker.succeeded()
            raise
        except BaseException:
            self._breaker.abandoned(call)
            raise
        else:
            self._breaker.succeeded()


def _breaker_open() -> ModelError:
    return ModelError("open", "it is temporarily disabled after repeated failures")
