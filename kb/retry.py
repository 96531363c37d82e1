"""Which failures are tried again and after how long; tenacity does the rest."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from tenacity import RetryCallState, wait_exponential


def backoff(first_s: float, longest_s: float) -> Callable[[RetryCallState], float]:
    """Doubling waits with jitter, at least what ``Retry-After`` of the response asks for, at most ``longest_s``."""
    exponential = wait_exponential(multiplier=first_s, max=longest_s)

    def wait_s(state: RetryCallState) -> float:
        outcome = state.outcome
        response = None if outcome is None or outcome.failed else outcome.result()
        asked_s = retry_after_s(response.headers) if response is not None else 0.0
        return min(max(exponential(state) * random.uniform(0.75, 1.25), asked_s), longest_s)

    return wait_s


def retry_after_s(headers: Mapping[str, str]) -> float:
    """The seconds that ``Retry-After`` asks for; 0 without one, and for its other form, a date."""
    value = headers.get("retry-after", "")
    return float(value) if value.isascii() and value.isdigit() else 0.0


def last_outcome(state: RetryCallState) -> Any:
    """The result of the last attempt, or its exception raised: a ``retry_error_callback``."""
    assert state.outcome is not None
    return state.outcome.result()


def sleep_unless(stop: asyncio.Event) -> Callable[[float], Awaitable[None]]:
    """A ``sleep`` for tenacity that ends as soon as ``stop`` is set."""

    async def sleep(seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)

    return sleep
