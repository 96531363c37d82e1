"""The channels of a service."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from trainmedic.ui.channels import dingtalk, feishu, slack
from trainmedic.ui.context import AppContext

if TYPE_CHECKING:
    from fastapi import FastAPI
    from httpx import AsyncBaseTransport


class ChannelService(Protocol):
    def attach(self, app: FastAPI) -> None:
        """Add the route that the platform posts to, if it posts."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Answer inside; at the end finish the questions in progress."""


def channels_of(context: AppContext, transport: AsyncBaseTransport | None = None) -> tuple[ChannelService, ...]:
    """The channels that are configured; ``transport`` takes their calls in tests.

    Raises `InvalidSettings` for half a configuration.
    """
    made = (package.channel_of(context, transport) for package in (slack, feishu, dingtalk))
    return tuple(channel for channel in made if channel is not None)
