"""DingTalk: a robot in HTTP mode, answers as Markdown through the session's webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmedic.service.settings import Settings
from trainmedic.ui.channels import complete
from trainmedic.ui.channels.service import add
from trainmedic.ui.context import AppContext

if TYPE_CHECKING:
    from fastapi import FastAPI
    from httpx import AsyncBaseTransport

    from trainmedic.ui.channels.http import BotService


def configured(settings: Settings) -> bool:
    """Whether DingTalk is to be served. Raises `InvalidSettings` for half a configuration."""
    values = {
        "dingtalk_client_id": settings.dingtalk_client_id,
        "dingtalk_client_secret": settings.dingtalk_client_secret.get_secret_value(),
    }
    return complete(values, "docs/connect/channels.md")


def channel_of(context: AppContext, transport: AsyncBaseTransport | None = None) -> BotService | None:
    if not configured(context.settings):
        return None
    from trainmedic.ui.channels.dingtalk.channel import DingTalkChannel
    from trainmedic.ui.channels.http import BotService

    return BotService(context, DingTalkChannel(context.settings, transport))


def register_channel(app: FastAPI, context: AppContext) -> None:
    """Raises `InvalidSettings` for half a configuration."""
    add(app, channel_of(context))
