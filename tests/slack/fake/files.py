"""Files of the fake workspace.

Without the scope or the token Slack redirects a file's address to a login page, which is HTML with status 200.
"""

from __future__ import annotations

from urllib.parse import quote

from aiohttp import web

from tests.slack.fake.methods import method
from tests.slack.fake.model import Json, Refused
from tests.slack.fake.workspace import Workspace

LOGIN = "<!DOCTYPE html><html><head><title>Slack</title></head><body><form>Sign in to Local</form></body></html>"


class FileServer:
    """``downloads`` are the ids of requested files; ``leaks`` the tokens that another host was shown."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.downloads: list[str] = []
        self.leaks: list[str] = []
        self.other_host = ""

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """GET of a private address."""
        file = self.workspace.files[request.match_info["place"].rpartition("-")[2]]
        self.downloads.append(file.id)
        if file.elsewhere:
            raise web.HTTPFound(f"{self.other_host}/{quote(file.name)}")
        allowed = request.headers.get("Authorization") == f"Bearer {self.workspace.bot_token}"
        if not allowed or "files:read" not in self.workspace.scopes:
            self.workspace.refuse("files", "login_page")
            raise web.HTTPFound(f"{self.workspace.base}/login")
        answer = web.StreamResponse(headers={"Content-Type": file.mimetype})
        await answer.prepare(request)
        try:
            for _ in range(file.repeat):
                await answer.write(file.content)
        except ConnectionError:
            pass  # the reader has enough
        return answer

    async def login(self, request: web.Request) -> web.Response:
        return web.Response(text=LOGIN, content_type="text/html")

    async def elsewhere(self, request: web.Request) -> web.Response:
        """A host that is not Slack's and must not see a token."""
        if "Authorization" in request.headers:
            self.leaks.append(request.headers["Authorization"])
        return web.Response(text="from another host")


@method("files.info", "file", scope="files:read")
def file_info(workspace: Workspace, args: Json) -> Json:
    file = workspace.files.get(args["file"])
    if file is None:
        raise Refused("file_not_found")
    if file.mode == "tombstone":
        raise Refused("file_deleted")
    return {"file": file.wire(workspace.base, whole=True)}
