"""How a channel becomes part of the service."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from trainmedic.ui.context import during

if TYPE_CHECKING:
    from fastapi import FastAPI


class ChannelService(Protocol):
    def attach(self, app: FastAPI) -> None:
        """Add the route that the platform posts to, if it posts."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Answer inside; at the end finish the questions in progress."""


def add(app: FastAPI, channel: ChannelService | None) -> None:
    if channel is not None:
        channel.attach(app)
        during(app, channel.running)
