"""A channel on the service: the route that its platform posts to, and its life."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trainmedic.ui.channels.handler import Handler
from trainmedic.ui.channels.markdown_channel import MarkdownChannel, MarkdownReply, Refused, Subjects
from trainmedic.ui.channels.tasks import SHUTDOWN_S
from trainmedic.ui.context import AppContext

MAX_BODY = 1024 * 1024
"""The platforms' own bodies are far smaller."""


class BotService:
    """`attach` adds the route of a channel, `running` answers what it receives."""

    def __init__(self, context: AppContext, channel: MarkdownChannel) -> None:
        self._channel = channel
        self._settings = context.settings
        self._handler = Handler(context, channel.name)
        self._subjects = Subjects()
        self._log = logging.getLogger(f"trainmedic.{channel.name}")

    def attach(self, app: FastAPI) -> None:
        app.add_route(self._channel.path, self._handle, methods=["POST"])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer inside; at the end finish the questions in progress."""
        try:
            yield
        finally:
            await self._handler.tasks.drain(SHUTDOWN_S)
            await self._channel.aclose()

    async def _handle(self, request: Request) -> Response:
        name = self._channel.name
        body = await body_of(request)
        if body is None:
            return refusal(413, "too_large", name)
        try:
            reception = self._channel.receive(request.headers, body)
        except Refused as refused:
            self._log.warning("a request was refused: %s", refused.code)
            return refusal(refused.status, refused.code, name)
        message = reception.message
        if message is not None and self._handler.claim(message.id):
            # Answered later: the platforms repeat what is not acknowledged within seconds.
            self._handler.accept(MarkdownReply(self._channel, message, self._subjects, self._settings))
        return JSONResponse(dict(reception.body))


async def body_of(request: Request) -> bytes | None:
    """The body, None if it is larger than anything that a platform sends."""
    # Counted while reading: the length in the header need not be true.
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            return None
    return bytes(body)


def refusal(status: int, code: str, name: str) -> Response:
    message = f"not a valid request from {name}"
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)
