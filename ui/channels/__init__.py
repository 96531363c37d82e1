"""Chat platforms: one `Handler` answers the questions of all; a `Destination` gathers one and takes its answer.

`slack` streams, whispers and has buttons. `feishu` (Lark) and `dingtalk` post Markdown in reply to a message, as
`MarkdownChannel` describes. `registry` knows them all; each has a function `channel_of`.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainmedic.kb.errors import InvalidSettings


def complete(values: Mapping[str, str], page: str) -> bool:
    """Whether all settings are given; raises `InvalidSettings` for half a configuration."""
    missing = [name for name, value in values.items() if not value]
    # Half a configuration is a mistake, and would otherwise look like a bot that never answers.
    if 0 < len(missing) < len(values):
        raise InvalidSettings(f"{', '.join(missing)} is not set", hint=f"{page} says where to find it")
    return not missing
