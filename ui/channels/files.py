"""Downloads of attached files: from the platform's own hosts, bounded, and only what text can be read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlsplit

import httpx

from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.logs.event_files import is_run_history
from trainmedic.kb.parse.text.compressed import kind_of
from trainmedic.kb.parse.text.opening import foreign_kind
from trainmedic.kb.parse.text.pictures import is_picture
from trainmedic.service.settings import MEBIBYTE
from trainmedic.ui.channels.channel import NotRead

TIMEOUT_S = 20.0
MAX_BYTES = 10 * MEBIBYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloads:
    """``hosts`` are the platform's, with all below them; ``api_url`` is the configured address of its API."""

    client: httpx.AsyncClient
    hosts: tuple[str, ...]
    api_url: str
    max_bytes: int = field(default_factory=lambda: MAX_BYTES)

    async def text(self, url: str, name: str, headers: Mapping[str, str] = MappingProxyType({})) -> Attachment:
        """The text file at ``url``; reading stops at ``max_bytes``. No redirect is followed. Raises `NotRead`."""
        if not self.is_own(url):
            raise NotRead("elsewhere")
        content = bytearray()
        try:
            async with self.client.stream(
                "GET", url, headers=dict(headers), timeout=TIMEOUT_S, follow_redirects=False
            ) as response:
                if response.status_code != 200:
                    raise NotRead(
                        "redirected" if response.is_redirect else "failed", why=f"HTTP {response.status_code}"
                    )
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > self.max_bytes:
                        raise NotRead("large", limit=self.max_bytes // MEBIBYTE)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotRead("failed", why=type(error).__name__) from None
        if is_binary(bytes(content)):
            raise NotRead("image" if is_picture(bytes(content)) else "binary")
        return Attachment(name=name, content=bytes(content))

    def is_own(self, url: str) -> bool:
        """Whether a file may be read there, with our token: over https from the platform, or from its API."""
        try:
            target, api = urlsplit(url), urlsplit(self.api_url)
        except ValueError:
            return False
        # Parsers disagree on where the host ends if a URL has backslashes or user names; none of a platform's has.
        if "\\" in url or target.username or target.password:
            return False
        if (target.scheme, target.netloc) == (api.scheme, api.netloc):
            return True
        host = (target.hostname or "").lower()
        # The dot matters: `evilslack.com` ends with `slack.com`.
        return target.scheme == "https" and any(host == known or host.endswith(f".{known}") for known in self.hosts)


def is_binary(content: bytes) -> bool:
    """Whether this can be read neither as text nor as what else holds text.

    UTF-16, which Windows tools write, has zero bytes but starts with a byte order mark.
    """
    kind, can_be_read = foreign_kind(content)
    if kind or kind_of(content) or is_run_history(content):
        return not can_be_read
    return b"\0" in content[:4096] and not content.startswith((b"\xff\xfe", b"\xfe\xff"))
