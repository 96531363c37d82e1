"""A channel on the service: the route that its platform posts to, and its life."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from trainmedic.ui.bots.channel import Channel, Refused
from trainmedic.ui.bots.conversation import Conversations
from trainmedic.ui.bots.tasks import SHUTDOWN_S
from trainmedic.ui.context import AppContext

MAX_BODY = 1024 * 1024
"""The platforms' own bodies are far smaller."""


class BotService:
    """`attach` adds the route of a channel, `running` answers what it receives."""

    def __init__(self, context: AppContext, channel: Channel) -> None:
        self._channel = channel
        self._conversations = Conversations(context, channel)
        self._log = logging.getLogger(f"trainmedic.{channel.name}")

    def attach(self, app: FastAPI) -> None:
        app.add_route(self._channel.path, self._handle, methods=["POST"])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer inside; at the end finish the questions in progress."""
        try:
            yield
        finally:
            await self._conversations.tasks.drain(SHUTDOWN_S)
            await self._channel.aclose()

    async def _handle(self, request: Request) -> Response:
        body = b""
        # Counted while reading: the length in the header need not be true.
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                return _refusal(413, "too_large", self._channel.name)
        try:
            reception = self._channel.receive(request.headers, body)
        except Refused as refused:
            self._log.warning("a request was refused: %s", refused.code)
            return _refusal(refused.status, refused.code, self._channel.name)
        if reception.message is not None:
            # Answered later: the platforms repeat what is not acknowledged within seconds.
            self._conversations.accept(reception.message)
        return JSONResponse(dict(reception.body))


def _refusal(status: int, code: str, name: str) -> Response:
    message = f"not a valid request from {name}"
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)
