"""Feishu and Lark: events over HTTP, answers as cards."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.settings import Settings
from trainmedic.ui.channels import complete
from trainmedic.ui.channels.service import add
from trainmedic.ui.context import AppContext

if TYPE_CHECKING:
    from fastapi import FastAPI
    from httpx import AsyncBaseTransport

    from trainmedic.ui.channels.http import BotService


def configured(settings: Settings) -> bool:
    """Whether Feishu is to be served. Raises `InvalidSettings` for half a configuration."""
    values = {
        "feishu_app_id": settings.feishu_app_id,
        "feishu_app_secret": settings.feishu_app_secret.get_secret_value(),
        "feishu_encrypt_key": settings.feishu_encrypt_key.get_secret_value(),
    }
    configured = complete(values, "docs/connect/channels.md")
    if configured and find_spec("cryptography") is None:
        raise InvalidSettings("Feishu's events need the package cryptography", hint="pip install 'trainmedic[feishu]'")
    return configured


def channel_of(context: AppContext, transport: AsyncBaseTransport | None = None) -> BotService | None:
    if not configured(context.settings):
        return None
    from trainmedic.ui.channels.feishu.channel import FeishuChannel
    from trainmedic.ui.channels.http import BotService

    return BotService(context, FeishuChannel(context.settings, transport))


def register_channel(app: FastAPI, context: AppContext) -> None:
    """Raises `InvalidSettings` for half a configuration."""
    add(app, channel_of(context))
