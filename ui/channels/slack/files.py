"""Files attached in Slack. Skipped ones are told with the reason.

The address comes from an event, and the bot's token is sent with the request: so only to Slack's own hosts. Without
the permission Slack redirects to a login page with status 200, so no redirect is followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmedic.kb.model.place import Attachment
from trainmedic.service.settings import MEBIBYTE
from trainmedic.ui.channels.channel import File, NotRead
from trainmedic.ui.channels.files import Downloads
from trainmedic.ui.channels.slack.calls import Calls, SlackLost, SlackRefused

HOSTS = ("slack.com", "slack-files.com", "slack-gov.com")
TEXT_TYPES = ("text/", "application/json", "application/x-yaml", "application/yaml", "application/toml")
LOGS = (".txt", ".log", ".out", ".err", ".csv", ".tsv", ".md", ".patch", ".diff")
CONFIGS = (".yaml", ".yml", ".json", ".jsonl", ".toml", ".ini", ".cfg", ".conf", ".env", ".lock")
SCRIPTS = (".sh", ".bash", ".zsh", ".py", ".ipynb", ".slurm", ".sbatch")
MEDIA = ("video/", "audio/")
OPENED = (
    "image/",
    "application/pdf",
    "application/zip",
    "application/x-tar",
    "application/gzip",
    "application/octet-stream",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackFiles:
    calls: Calls
    downloads: Downloads
    token: str

    async def fetch(self, file: File) -> Attachment:
        """The content of a file. Raises `NotRead`."""
        item, name = file.source, file.name
        # In channels shared with another workspace an event has only the id of a file.
        if item.get("file_access") == "check_file_info":
            item = await self._info(file.id)
            name = str(item.get("name") or name)
        try:
            self._refuse(item, name)
            url = str(item.get("url_private_download") or item.get("url_private") or "")
            read = await self.downloads.text(url, name, {"Authorization": f"Bearer {self.token}"})
        except NotRead as reason:
            why = "login" if reason.reason == "redirected" else reason.reason
            raise NotRead(why, name=name, **reason.values) from None
        # Slack sometimes answers with its login page in place, instead of redirecting to it.
        if is_page(read.content) and not name.lower().endswith((".html", ".htm")):
            raise NotRead("login", name=name)
        return read

    def _refuse(self, item: Mapping[str, Any], name: str) -> None:
        """Raise `NotRead` if the event alone rules the file out."""
        mode, kind = str(item.get("mode") or ""), str(item.get("mimetype") or "").lower()
        if mode in ("tombstone", "hidden_by_limit"):
            raise NotRead("deleted" if mode == "tombstone" else "hidden")
        if item.get("file_access") == "access_denied":
            raise NotRead("denied")
        if mode == "external" or item.get("is_external"):
            raise NotRead("external")
        if kind.startswith(MEDIA):
            raise NotRead("binary")
        textual = mode == "snippet" or kind.startswith(TEXT_TYPES) or name.lower().endswith((*LOGS, *CONFIGS, *SCRIPTS))
        if kind and not textual and not kind.startswith((*OPENED, "binary/octet-stream")):
            raise NotRead("binary")
        most = self.downloads.max_bytes
        if isinstance(item.get("size"), int) and item["size"] > most:
            raise NotRead("large", limit=most // MEBIBYTE)

    async def _info(self, id: str) -> Mapping[str, Any]:
        """The file's details; events name files of other workspaces only by id."""
        try:
            file = (await self.calls.repeatable("files_info", file=id)).get("file")
        except SlackRefused as refused:
            raise NotRead("failed", why=refused.error) from None
        except SlackLost:
            raise NotRead("failed", why="no answer") from None
        if not isinstance(file, Mapping):
            raise NotRead("denied")
        return file


def is_page(content: str | bytes) -> bool:
    """Whether this is a web page, such as Slack's login page."""
    head = content[:512].encode() if isinstance(content, str) else content[:512]
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))
