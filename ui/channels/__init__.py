"""Chat platforms: one `Handler` answers the questions of all; a `Destination` gathers one and takes its answer.

`slack` streams, whispers and has buttons. Feishu (Lark) and DingTalk post Markdown in reply to a message, as
`MarkdownChannel` describes.
"""

from __future__ import annotations

from importlib.util import find_spec

from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.settings import Settings


def feishu_configured(settings: Settings) -> bool:
    """Whether Feishu is to be served. Raises `InvalidSettings` for half a configuration."""
    values = {
        "feishu_app_id": settings.feishu_app_id,
        "feishu_app_secret": settings.feishu_app_secret.get_secret_value(),
        "feishu_encrypt_key": settings.feishu_encrypt_key.get_secret_value(),
    }
    configured = _complete(values, "docs/feishu.md")
    if configured and find_spec("cryptography") is None:
        raise InvalidSettings("Feishu's events need the package cryptography", hint="pip install 'trainmedic[feishu]'")
    return configured


def dingtalk_configured(settings: Settings) -> bool:
    """Whether DingTalk is to be served. Raises `InvalidSettings` for half a configuration."""
    values = {
        "dingtalk_client_id": settings.dingtalk_client_id,
        "dingtalk_client_secret": settings.dingtalk_client_secret.get_secret_value(),
    }
    return _complete(values, "docs/dingtalk.md")


def _complete(values: dict[str, str], page: str) -> bool:
    missing = [name for name, value in values.items() if not value]
    # Half a configuration is a mistake, and would otherwise look like a bot that never answers.
    if 0 < len(missing) < len(values):
        raise InvalidSettings(f"{', '.join(missing)} is not set", hint=f"{page} says where to find it")
    return not missing
