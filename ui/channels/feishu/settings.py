"""The settings of Feishu and Lark."""

from __future__ import annotations

from pydantic import Field, SecretStr

from trainmedic.service.settings import NO_SECRET, Section


class FeishuSettings(Section):
    app_id: str = Field(
        "", description="id of the Feishu or Lark app, cli_… ([channels](../connect/channels.md#feishu-and-lark))"
    )
    app_secret: SecretStr = Field(NO_SECRET, description="secret of that app")
    encrypt_key: SecretStr = Field(
        NO_SECRET, description="its Encrypt Key, which encrypts and signs the events; required with `feishu_app_id`"
    )
    verification_token: SecretStr = Field(
        NO_SECRET, description="its Verification Token; if set, each event must carry it"
    )
    api_url: str = Field(
        "https://open.feishu.cn",
        pattern="^https?://",
        description="Feishu's API; for Lark `https://open.larksuite.com`",
    )
