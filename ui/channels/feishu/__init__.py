"""Feishu and Lark: events over HTTP, answers as cards."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidSettings
from trainmedic.ui.channels import complete
from trainmedic.ui.channels.feishu.settings import FeishuSettings

if TYPE_CHECKING:
    from fastapi import FastAPI
    from httpx import AsyncBaseTransport

    from trainmedic.service.settings import Settings
    from trainmedic.ui.channels.http import BotService
    from trainmedic.ui.context import AppContext


def configured(settings: Settings) -> bool:
    """Whether Feishu is to be served. Raises `InvalidSettings` for half a configuration."""
    feishu = settings.of(FeishuSettings)
    values = {
        "feishu_app_id": feishu.app_id,
        "feishu_app_secret": feishu.app_secret.get_secret_value(),
        "feishu_encrypt_key": feishu.encrypt_key.get_secret_value(),
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

    return BotService(context, FeishuChannel(context.settings.of(FeishuSettings), transport))


def register_channel(app: FastAPI, context: AppContext) -> None:
    """Raises `InvalidSettings` for half a configuration."""
    from trainmedic.ui.channels.service import add

    add(app, channel_of(context))
