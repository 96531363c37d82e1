"""DingTalk: a robot in HTTP mode, answers as Markdown through the session's webhook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainmedic.ui.channels import complete
from trainmedic.ui.channels.dingtalk.settings import DingTalkSettings

if TYPE_CHECKING:
    from fastapi import FastAPI
    from httpx import AsyncBaseTransport

    from trainmedic.service.settings import Settings
    from trainmedic.ui.channels.http import BotService
    from trainmedic.ui.context import AppContext


def configured(settings: Settings) -> bool:
    """Whether DingTalk is to be served. Raises `InvalidSettings` for half a configuration."""
    dingtalk = settings.of(DingTalkSettings)
    values = {
        "dingtalk_client_id": dingtalk.client_id,
        "dingtalk_client_secret": dingtalk.client_secret.get_secret_value(),
    }
    return complete(values, "docs/connect/channels.md")


def channel_of(context: AppContext, transport: AsyncBaseTransport | None = None) -> BotService | None:
    if not configured(context.settings):
        return None
    from trainmedic.ui.channels.dingtalk.channel import DingTalkChannel
    from trainmedic.ui.channels.http import BotService

    return BotService(context, DingTalkChannel(context.settings.of(DingTalkSettings), transport))


def register_channel(app: FastAPI, context: AppContext) -> None:
    """Raises `InvalidSettings` for half a configuration."""
    from trainmedic.ui.channels.service import add

    add(app, channel_of(context))
