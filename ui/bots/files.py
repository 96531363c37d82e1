"""Downloads of attached files: bounded, and only text and histories of runs."""

from __future__ import annotations

import httpx

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.logs.event_files import is_run_history
from trainmedic.kb.parse.text.compressed import kind_of
from trainmedic.ui.bots.channel import NotRead

TIMEOUT_S = 20.0


def is_binary(content: bytes) -> bool:
    """Whether this is neither text, nor compressed text, nor the history of a run.

    UTF-16, which Windows tools write, has zero bytes but starts with a byte order mark.
    """
    if kind_of(content) or is_run_history(content):
        return False
    return b"\0" in content[:4096] and not content.startswith((b"\xff\xfe", b"\xfe\xff"))


async def download(
    client: httpx.AsyncClient, url: str, name: str, max_bytes: int, headers: dict[str, str] | None = None
) -> Attachment:
    """The text file at ``url``; reading stops at ``max_bytes``. Raises `NotRead`."""
    content = b""
    try:
        async with client.stream("GET", url, headers=headers, timeout=TIMEOUT_S, follow_redirects=False) as response:
            if response.status_code != 200:
                raise NotRead("failed", why=f"HTTP {response.status_code}")
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > max_bytes:
                    raise NotRead("large", limit=max_bytes // (1024 * 1024))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotRead("failed", why=type(error).__name__) from None
    if is_binary(content):
        raise NotRead("binary")
    return Attachment(name=name, content=content)
