"""Calls of Slack's Web API that respect its rate limits and are repeated only if that is safe.

The client's own retries are off: they resend a POST whose connection dropped after Slack had stored it, which posts the
message twice. Here a call is repeated only if Slack cannot have acted on it (429, no connection). A call without an
answer is reported as lost, so that the caller can check whether it succeeded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient
    from slack_sdk.web.async_slack_response import AsyncSlackResponse

log = logging.getLogger("trainmedic.slack")
PATIENCE_S = 60.0
"""The longest wait for one call's turn."""
MAX_WAIT_S = 300.0
PAUSE_S = 0.5
"""Pause between attempts to connect."""
CONNECTS = 4
LOGIN_ERRORS = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type"}
)


class SlackRefused(Exception):
    """Slack answered ``ok: false``. ``error`` is its code, ``needed`` the missing permission."""

    def __init__(self, method: str, error: str, needed: str = "", detail: str = "") -> None:
        super().__init__(f"{method}: {error}" + (f" ({needed or detail})" if needed or detail else ""))
        self.error = error
        self.needed = needed


class SlackLost(Exception):
    """No answer: the call may or may not have happened."""


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
        arguments = {name: value for name, value in arguments.items() if value is not None}
        waited = 0.0
        refused_connections = 0
        while True:
            try:
                response: AsyncSlackResponse = await getattr(self.client, method)(**arguments)
                return response
            except SlackApiError as error:
                wait_s = retry_after(error)
                if wait_s is None:
                    raise problem(method, error) from None
                if waited + wait_s > patience_s:
                    raise RateLimited(method, wait_s) from None
                waited += wait_s
                await asyncio.sleep(wait_s)
            except aiohttp.ClientConnectorError as error:
                refused_connections += 1
                if refused_connections >= CONNECTS:
                    raise SlackLost(f"{method}: {type(error).__name__}") from None
                await asyncio.sleep(PAUSE_S * refused_connections)
            except (aiohttp.ClientError, SlackClientError, TimeoutError, OSError) as error:
                raise SlackLost(f"{method}: {type(error).__name__}") from None

    async def read(self, method: str, **arguments: Any) -> Mapping[str, Any]:
        """A call without side effects: retried once if it was lost."""
        try:
            return await self(method, **arguments)
        except SlackLost:
            await asyncio.sleep(PAUSE_S)
            return await self(method, **arguments)


def retry_after(error: SlackApiError) -> float | None:
    """Seconds that Slack asks to wait; None if the error is not a rate limit."""
    response = error.response
    if getattr(response, "status_code", None) != 429:
        return None
    headers = {name.lower(): value for name, value in dict(getattr(response, "headers", None) or {}).items()}
    try:
        return min(MAX_WAIT_S, max(0.0, float(headers.get("retry-after", 1))))
    except ValueError:
        return 1.0


def problem(method: str, error: SlackApiError) -> SlackRefused | SlackLost:
    """Our exception for the client's. A response that is not JSON says nothing about the call."""
    response = error.response
    data = response if isinstance(response, dict) else getattr(response, "data", None)
    if not isinstance(data, Mapping) or "error" not in data:
        return SlackLost(f"{method}: no answer in JSON (status {getattr(response, 'status_code', '?')})")
    metadata = data.get("response_metadata")
    messages = metadata.get("messages") if isinstance(metadata, Mapping) else None
    detail = "; ".join(str(message) for message in messages or ())[:300]
    return SlackRefused(method, str(data["error"]), str(data.get("needed") or ""), detail)
