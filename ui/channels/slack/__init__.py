"""The Slack bot: mentions, threads, direct messages, a command and a message shortcut, over the same answerer.

slack_bolt is imported only with a token: this package by itself imports nothing of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from trainmedic.kb.errors import InvalidSettings
from trainmedic.ui.channels.slack.settings import SlackSettings

if TYPE_CHECKING:
    from fastapi import FastAPI
    from httpx import AsyncBaseTransport

    from trainmedic.service.settings import Settings
    from trainmedic.ui.channels.slack.service import SlackService
    from trainmedic.ui.context import AppContext


def configured(settings: Settings) -> bool:
    """Whether Slack is to be served. Raises `InvalidSettings` if tokens are missing."""
    slack = settings.of(SlackSettings)
    bot, app = bool(slack.bot_token.get_secret_value()), bool(slack.app_token.get_secret_value())
    secret = bool(slack.signing_secret.get_secret_value())
    # Half a configuration is a mistake, and would otherwise look like a bot that never answers.
    if not bot and (app or secret):
        raise InvalidSettings("SLACK_BOT_TOKEN is not set", hint="docs/connect/channels.md says where to find it")
    if bot and not (app or secret):
        raise InvalidSettings(
            "SLACK_BOT_TOKEN alone is not enough",
            hint="set SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP)",
        )
    if bot and find_spec("slack_bolt") is None:
        raise InvalidSettings("the package slack_bolt is not installed", hint="pip install 'trainmedic[slack]'")
    return bot


def channel_of(context: AppContext, transport: AsyncBaseTransport | None = None) -> SlackService | None:
    if not configured(context.settings):
        return None
    from trainmedic.ui.channels.slack.service import SlackService

    return SlackService(context)


def register_channel(app: FastAPI, context: AppContext) -> None:
    """Raises `InvalidSettings` for half a configuration."""
    from trainmedic.ui.channels.service import add

    add(app, channel_of(context))
