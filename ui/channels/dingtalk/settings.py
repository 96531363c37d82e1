"""The settings of DingTalk."""

from __future__ import annotations

from pydantic import Field, SecretStr

from trainmedic.service.settings import NO_SECRET, Section


class DingTalkSettings(Section):
    client_id: str = Field(
        "", description="Client ID (AppKey) of the DingTalk app ([channels](../connect/channels.md#dingtalk))"
    )
    client_secret: SecretStr = Field(
        NO_SECRET, description="its Client Secret (AppSecret), which signs the requests to the robot"
    )
