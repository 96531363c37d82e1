"""Attached files, downloaded as text. Skipped files are listed with the reason.

The file's address comes from an event, and the bot's token is sent with the request: so only to Slack's own hosts.
Redirects are not followed, because without the permission Slack redirects to a login page with status 200.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp

from trainmedic.kb.model.place import Attachment
from trainmedic.ui.bots.channel import NotRead
from trainmedic.ui.bots.files import is_binary
from trainmedic.ui.slack.calls import Calls, SlackLost, SlackRefused
from trainmedic.ui.slack.messages import messages

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("trainmedic.slack")
HOSTS = ("slack.com", "slack-files.com", "slack-gov.com")
TIMEOUT_S = 20.0
CHUNK = 64 * 1024
MEBIBYTE = 1024 * 1024
TEXT_TYPES = ("text/", "application/json", "application/x-yaml", "application/yaml", "application/toml")
LOGS = (".txt", ".log", ".out", ".err", ".csv", ".tsv", ".md", ".patch", ".diff")
CONFIGS = (".yaml", ".yml", ".json", ".jsonl", ".toml", ".ini", ".cfg", ".conf", ".env", ".lock")
SCRIPTS = (".sh", ".bash", ".zsh", ".py", ".ipynb", ".slurm", ".sbatch")
MEDIA = ("image/", "video/", "audio/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The text files, and the name of every other file with the reason."""

    attachments: tuple[Attachment, ...] = ()
    not_read: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloads:
    """Downloads for one workspace. ``may`` tells whether a permission was granted."""

    calls: Calls
    session: aiohttp.ClientSession
    token: str
    api_url: str
    max_bytes: int
    max_files: int
    may: Callable[[str], bool] = field(default=lambda scope: True)

    async def fetch(self, files: Sequence[Mapping[str, Any]], language: str) -> Fetched:
        """The text files among ``files``, each downloaded once."""
        read: list[Attachment] = []
        not_read: list[str] = []
        seen: set[str] = set()
        for item in files:
            id = str(item.get("id") or "")
            if id in seen:
                continue
            seen.add(id)
            name = str(item.get("name") or item.get("title") or id or "file")
            try:
                if len(read) >= self.max_files:
                    raise NotRead("many", limit=self.max_files)
                name, content = await self._file(item, name)
                read.append(Attachment(name=name, content=content))
            except NotRead as reason:
                why = messages(f"not_read.{reason.reason}", language, **reason.values)
                not_read.append(f"{name} ({why})")
        return Fetched(attachments=tuple(read), not_read=tuple(not_read))

    async def _file(self, item: Mapping[str, Any], name: str) -> tuple[str, bytes]:
        if not self.may("files:read"):
            raise NotRead("scope")
        # In channels shared with another workspace an event has only the id of a file.
        if item.get("file_access") == "check_file_info":
            item = await self._info(str(item.get("id") or ""))
            name = str(item.get("name") or name)
        self._refuse(item, name)
        url = str(item.get("url_private_download") or item.get("url_private") or "")
        content = await self._download(url)
        # Slack sometimes answers with its login page in place, instead of redirecting to it.
        if is_page(content) and not name.lower().endswith((".html", ".htm")):
            raise NotRead("login")
        if is_binary(content):
            raise NotRead("binary")
        return name, content

    def _refuse(self, item: Mapping[str, Any], name: str) -> None:
        """Raise `NotRead` if the event alone rules the file out."""
        mode, kind = str(item.get("mode") or ""), str(item.get("mimetype") or "").lower()
        if mode == "tombstone":
            raise NotRead("deleted")
        if mode == "hidden_by_limit":
            raise NotRead("hidden")
        if item.get("file_access") == "access_denied":
            raise NotRead("denied")
        if mode == "external" or item.get("is_external"):
            raise NotRead("external")
        if kind.startswith(MEDIA):
            raise NotRead("image" if kind.startswith("image/") else "binary")
        textual = mode == "snippet" or kind.startswith(TEXT_TYPES) or name.lower().endswith((*LOGS, *CONFIGS, *SCRIPTS))
        if kind and not textual and kind not in ("application/octet-stream", "binary/octet-stream"):
            raise NotRead("binary")
        if isinstance(item.get("size"), int) and item["size"] > self.max_bytes:
            raise NotRead("large", limit=self.max_bytes // MEBIBYTE)

    async def _info(self, id: str) -> Mapping[str, Any]:
        """The file's details; events name files of other workspaces only by id."""
        try:
            file = (await self.calls.read("files_info", file=id)).get("file")
        except SlackRefused as refused:
            if refused.error == "missing_scope":
                raise NotRead("scope") from None
            raise NotRead("failed", why=refused.error) from None
        except SlackLost:
            raise NotRead("failed", why="no answer") from None
        if not isinstance(file, Mapping):
            raise NotRead("denied")
        return file

    async def _download(self, url: str) -> bytes:
        """The content; reading stops at ``max_bytes``, as the size in the event may be wrong."""
        if not self.is_slack(url):
            raise NotRead("elsewhere")
        try:
            async with self.session.get(
                url,
                headers={"Authorization": f"Bearer {self.token}"},
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            ) as response:
                if 300 <= response.status < 400:
                    raise NotRead("login")
                if response.status != 200:
                    raise NotRead("failed", why=f"HTTP {response.status}")
                parts: list[bytes] = []
                size = 0
                async for chunk in response.content.iter_chunked(CHUNK):
                    size += len(chunk)
                    if size > self.max_bytes:
                        raise NotRead("large", limit=self.max_bytes // MEBIBYTE)
                    parts.append(chunk)
        except TimeoutError:
            raise NotRead("failed", why="timeout") from None
        except aiohttp.ClientError as error:
            raise NotRead("failed", why=type(error).__name__) from None
        return b"".join(parts)

    def is_slack(self, url: str) -> bool:
        """Whether the token may be sent there: over https to Slack's hosts, or to the configured Web API."""
        try:
            target, api = urlsplit(url), urlsplit(self.api_url)
        except ValueError:
            return False
        # Parsers disagree on where the host ends if a URL has backslashes or user names; none of Slack's has.
        if "\\" in url or target.username or target.password:
            return False
        if (target.scheme, target.netloc) == (api.scheme, api.netloc):
            return True
        host = (target.hostname or "").lower()
        # The dot matters: `evilslack.com` ends with `slack.com`.
        return target.scheme == "https" and any(host == known or host.endswith(f".{known}") for known in HOSTS)


def is_page(content: bytes) -> bool:
    """Whether this is a web page, such as Slack's login page."""
    head = content[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<!doctype html", b"<html"))
