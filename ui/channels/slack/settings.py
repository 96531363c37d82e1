"""The settings of Slack."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from trainmedic.service.settings import NO_SECRET, Section


class SlackChannel(BaseModel):
    """How the bot answers in one channel. ``answers``: mentions, or all messages that begin a thread."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answers: Literal["mentions", "all"] = "mentions"
    quiet: bool = False
    language: Literal["auto", "en", "zh"] = "auto"


class SlackSettings(Section):
    well_known: ClassVar[bool] = True

    bot_token: SecretStr = Field(
        NO_SECRET,
        description="token of the Slack app's bot (xoxb-), also as SLACK_BOT_TOKEN ([Slack](../connect/channels.md))",
    )
    app_token: SecretStr = Field(
        NO_SECRET, description="token for Slack's Socket Mode (xapp-), also as SLACK_APP_TOKEN"
    )
    signing_secret: SecretStr = Field(
        NO_SECRET,
        description="secret of Slack's HTTP requests, also as SLACK_SIGNING_SECRET; used without `slack_app_token`",
    )
    channels: dict[str, SlackChannel] = Field(
        default_factory=dict, description="channel id (or * for all) to answers, quiet, language"
    )

    @field_validator("channels", mode="before")
    @classmethod
    def _parsed(cls, value: Any) -> Any:
        """In the environment it is JSON."""
        return json.loads(value) if isinstance(value, str) else value
