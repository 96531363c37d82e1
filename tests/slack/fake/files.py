"""Files of the local Slack, and what their addresses answer.

Without the scope or the token a file answers as the real one is known to: 302 to a login page that is HTML with 200.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import quote

from aiohttp import web

from tests.slack.fake.values import TEAM, Json, Refused
from tests.slack.fake.world import World

PIECE = 4096
LOGIN = "<!DOCTYPE html><html><head><title>Slack</title></head><body><form>Sign in to Local</form></body></html>"
TYPES = {"py": "Python", "yaml": "YAML", "json": "JSON", "log": "Plain Text", "txt": "Plain Text", "png": "PNG"}


@dataclass(slots=True, kw_only=True)
class SlackFile:
    """A file that somebody uploaded. ``claims`` is the size told where it lies; ``repeat`` sends the content so often.

    ``mode``: hosted, snippet, external, tombstone, hidden_by_limit; ``access``: visible, check_file_info (from another
    workspace: only its id is told), access_denied. ``pause_s`` is waited before each 4 kB; ``elsewhere`` redirects to
    another host.
    """

    id: str
    name: str
    content: bytes
    mimetype: str = "text/plain"
    mode: str = "hosted"
    access: str = "visible"
    claims: int | None = None
    repeat: int = 1
    pause_s: float = 0.0
    elsewhere: bool = False
    user: str = ""

    def wire(self, base: str, *, whole: bool = False) -> Json:
        """The file as events name it; ``whole`` as files.info does."""
        if self.access == "check_file_info" and not whole:
            return {"id": self.id, "file_access": self.access}
        if self.mode == "tombstone":
            return {"id": self.id, "mode": self.mode}
        kind = self.name.rpartition(".")[2]
        body: Json = {
            "id": self.id,
            "name": self.name,
            "title": self.name,
            "mimetype": self.mimetype,
            "filetype": "text" if self.mode == "snippet" else kind,
            "pretty_type": TYPES.get(kind, kind.upper()),
            "size": len(self.content) * self.repeat if self.claims is None else self.claims,
            "mode": self.mode,
            "is_external": self.mode == "external",
            "external_type": "gdrive" if self.mode == "external" else "",
            "file_access": "visible" if whole and self.access == "check_file_info" else self.access,
            "user": self.user,
        }
        if self.mode == "hidden_by_limit":
            return {name: body[name] for name in ("id", "mode")}
        if self.mode == "external":
            return {**body, "url_private": "https://drive.invalid/" + self.id}
        path = f"{base}/files-pri/{TEAM}-{self.id}"
        return {
            **body,
            "url_private": f"{path}/{quote(self.name)}",
            "url_private_download": f"{path}/download/{quote(self.name)}",
            "permalink": f"https://local.slack.com/files/{self.user}/{self.id}/{self.name}",
        }


class Files:
    """The file server. ``downloads`` are (file id, status); ``leaks`` the tokens that another host was shown."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.by_id: dict[str, SlackFile] = {}
        self.downloads: list[tuple[str, int]] = []
        self.leaks: list[str] = []
        self.visits: list[str] = []
        self.elsewhere = ""

    def info(self, world: World, args: Json) -> Json:
        """files.info."""
        file = self.by_id.get(args["file"])
        if file is None:
            raise Refused("file_not_found")
        if file.mode == "tombstone":
            raise Refused("file_deleted")
        return {"file": file.wire(world.base, whole=True)}

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """GET of a private address."""
        file = self.by_id.get(request.match_info["place"].rpartition("-")[2])
        if file is None:
            return self._done("", web.Response(status=404, text="not found"))
        if file.elsewhere:
            location = f"{self.elsewhere}/files-pri/{file.id}/{quote(file.name)}"
            return self._done(file.id, web.Response(status=302, headers={"Location": location}))
        allowed = request.headers.get("Authorization") == f"Bearer {self.world.bot_token}"
        if not allowed or "files:read" not in self.world.scopes:
            self.world.refuse("files", "login_page", "no token" if not allowed else "files:read is missing")
            headers = {"Location": f"{self.world.base}/login?redir={request.path}", "x-slack-meta": "acl_fail"}
            return self._done(file.id, web.Response(status=302, headers=headers))
        answer = web.StreamResponse(headers={"Content-Type": file.mimetype})
        await answer.prepare(request)
        self._done(file.id, answer)
        try:
            for _ in range(file.repeat):
                for start in range(0, len(file.content), PIECE):
                    if file.pause_s:
                        await asyncio.sleep(file.pause_s)
                    await answer.write(file.content[start : start + PIECE])
        except ConnectionError:
            pass
        return answer

    async def login(self, request: web.Request) -> web.Response:
        """The page that a browser without a session gets."""
        return web.Response(text=LOGIN, content_type="text/html")

    async def other_host(self, request: web.Request) -> web.Response:
        """A host that is not Slack's; it should never see a token."""
        self.visits.append(request.path)
        if "Authorization" in request.headers:
            self.leaks.append(request.headers["Authorization"])
            self.world.refuse("files", "token_leaked", request.path)
        return web.Response(text="from another host")

    def _done(self, file: str, answer: web.StreamResponse) -> web.StreamResponse:
        self.downloads.append((file, answer.status))
        self.world.notify()
        return answer
