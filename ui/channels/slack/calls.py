"""Calls of Slack's Web API that respect its rate limits and are repeated only if that is safe.

The client's own retries are off: they resend a POST whose connection dropped after Slack had stored it, which posts the
message twice. Here a call is repeated only if Slack cannot have acted on it (429, no connection). A call without an
answer is reported as lost, so that the caller can check whether it succeeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt, wait_fixed

from trainmedic.kb.retry import retry_after_s
from trainmedic.ui.channels.channel import ChannelFailed

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient
    from slack_sdk.web.async_slack_response import AsyncSlackResponse

PATIENCE_S = 60.0
"""The longest wait for one call's turn."""
MAX_WAIT_S = 300.0
"""A longer Retry-After counts as this one."""
DEFAULT_WAIT_S = 1.0
"""For a rate limit without Retry-After: most methods admit about one call a second."""
PAUSE_S = 0.5
"""Pause between attempts to connect."""
# Together about three seconds, so that a restart of the proxy or of DNS goes unnoticed.
CONNECTS = 4
LOGIN_ERRORS = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type"}
)


class SlackRefused(ChannelFailed):
    """Slack answered ``ok: false``. ``error`` is its code, ``needed`` the missing permission."""

    def __init__(self, method: str, error: str, needed: str = "", detail: str = "") -> None:
        super().__init__(f"Slack: {error} {needed}".strip())
        self.error = error
        self.needed = needed
        self._call = f"{method}: {error}" + (f" ({needed or detail})" if needed or detail else "")

    def __str__(self) -> str:
        return self._call


class SlackLost(ChannelFailed):
    """No answer: the call may or may not have happened."""

    def __init__(self, call: str) -> None:
        super().__init__("Slack does not answer")
        self._call = call

    def __str__(self) -> str:
        return self._call


class SlackUnreachable(SlackLost):
    """No connection: the call certainly did not happen."""


class RateLimited(SlackRefused):
    """Slack asks to wait ``wait_s`` seconds, longer than the caller accepts."""

    def __init__(self, method: str, wait_s: float) -> None:
        super().__init__(method, "ratelimited", detail=f"{wait_s:g} s")
        self.wait_s = wait_s


class Calls:
    def __init__(self, client: AsyncWebClient) -> None:
        self.client = client

    async def __call__(self, method: str, *, patience_s: float = PATIENCE_S, **arguments: Any) -> Mapping[str, Any]:
        """Slack's answer to ``method`` (``chat_postMessage``), waiting at most ``patience_s`` for rate limits.

        Raises `SlackRefused`, `RateLimited` or `SlackLost`.
        """
        response = await self.response(method, patience_s=patience_s, **arguments)
        return response.data if isinstance(response.data, Mapping) else {}

    async def response(self, method: str, *, patience_s: float = PATIENCE_S, **arguments: Any) -> AsyncSlackResponse:
        """The same, with the response headers."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type((RateLimited, SlackUnreachable)),
            wait=_wait_s,
            stop=lambda state: _is_last(state, patience_s),
            reraise=True,
        )
        return await retrying(self._attempt, method, arguments)

    async def read(self, method: str, **arguments: Any) -> Mapping[str, Any]:
        """A call without side effects: retried once if it was lost."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(SlackLost), wait=wait_fixed(PAUSE_S), stop=stop_after_attempt(2), reraise=True
        )
        return await retrying(self.__call__, method, **arguments)

    async def _attempt(self, method: str, arguments: Mapping[str, Any]) -> AsyncSlackResponse:
        try:
            response: AsyncSlackResponse = await getattr(self.client, method)(
                **{name: value for name, value in arguments.items() if value is not None}
            )
            return response
        except SlackApiError as error:
            raise problem(method, error) from None
        # Before the general case: ClientConnectorError is a ClientError too, but nothing was sent yet.
        except aiohttp.ClientConnectorError as error:
            raise SlackUnreachable(f"{method}: {type(error).__name__}") from None
        except (aiohttp.ClientError, SlackClientError, TimeoutError, OSError) as error:
            raise SlackLost(f"{method}: {type(error).__name__}") from None


def _wait_s(state: RetryCallState) -> float:
    error = _failure(state)
    return error.wait_s if isinstance(error, RateLimited) else PAUSE_S * state.attempt_number


def _is_last(state: RetryCallState, patience_s: float) -> bool:
    if isinstance(_failure(state), RateLimited):
        # Not after a number of attempts: a busy workspace may be limited several times for a second each.
        return state.idle_for + state.upcoming_sleep > patience_s
    return state.attempt_number >= CONNECTS


def _failure(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def problem(method: str, error: SlackApiError) -> SlackRefused | SlackLost:
    """Our exception for the client's. A response that is not JSON says nothing about the call."""
    response = error.response
    if getattr(response, "status_code", None) == 429:
        headers = {name.lower(): value for name, value in dict(response.headers or {}).items()}
        return RateLimited(method, min(retry_after_s(headers) or DEFAULT_WAIT_S, MAX_WAIT_S))
    data = response if isinstance(response, dict) else getattr(response, "data", None)
    if not isinstance(data, Mapping) or "error" not in data:
        return SlackLost(f"{method}: no answer in JSON (status {getattr(response, 'status_code', '?')})")
    metadata = data.get("response_metadata")
    messages = metadata.get("messages") if isinstance(metadata, Mapping) else None
    detail = "; ".join(str(message) for message in messages or ())[:300]
    return SlackRefused(method, str(data["error"]), str(data.get("needed") or ""), detail)
