"""The route that Slack posts to: verified requests go to the bot, everything else is refused."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trainmedic.service.settings import Settings
from trainmedic.ui.slack.bot import SlackBot
from trainmedic.ui.slack.http import MAX_BODY, is_rate_note, refusal

log = logging.getLogger("trainmedic.slack")


def endpoint(settings: Settings, bot_of: Callable[[], SlackBot | None]) -> Callable[[Request], Awaitable[Response]]:
    """The request handler. ``bot_of`` returns None until the bot is running."""
    secret = settings.slack_signing_secret.get_secret_value()

    async def events(request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return _refused(413, "too_large")
        refused = refusal(request.headers, body, secret)
        if refused is not None:
            return _refused(*refused)
        if is_rate_note(body.decode(), request.headers.get("content-type", "")):
            log.error("Slack holds events back: more than 30,000 in an hour")
            return Response()
        bot = bot_of()
        if bot is None:
            return _refused(503, "starting")  # Slack retries
        return await AsyncSlackRequestHandler(bot.app).handle(request)

    return events


async def _body(request: Request) -> bytes | None:
    """The body, None if it is larger than anything Slack sends."""
    # Counted while reading: the length in the header need not be true.
    size = 0
    parts: list[bytes] = []
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
    request._body = b"".join(parts)  # read once; Bolt's handler asks for it again
    return request._body


def _refused(status: int, word: str) -> Response:
    return JSONResponse({"error": {"code": word, "message": "not a valid request from Slack"}}, status_code=status)
