"""The pages on the service's own port, behind the key if there is one.

`ui.chat.mount` makes the shell; Gradio is imported in the background, and until then a placeholder page reloads itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import FastAPI
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from trainmedic.kb.errors import Forbidden
from trainmedic.service.access.cookies import (
    BROWSER,
    BROWSER_LASTS_S,
    LASTS_S,
    LONGEST_FORM,
    SESSION,
    Cookies,
    browser_id,
    cookie,
    form_of,
    new_browser,
    own_path,
    same_site,
)
from trainmedic.service.access.gate import REFUSALS, Gate, Refused, address_of
from trainmedic.service.access.limits import client_of
from trainmedic.service.access.principals import ANYBODY, Principal
from trainmedic.service.access.proxies import host_of
from trainmedic.service.access.slots import for_client
from trainmedic.service.answering import Executor
from trainmedic.service.api.errors import STATUS
from trainmedic.service.api.middleware import stored_nowhere, with_headers
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS
from trainmedic.ui.chat.audit import NOTED, READ, Noted, note
from trainmedic.ui.chat.direct import DIRECT, Direct
from trainmedic.ui.chat.document import document
from trainmedic.ui.chat.evidence import render
from trainmedic.ui.chat.guard import CallGuard, RefusedCall
from trainmedic.ui.chat.mount import PAUSES_S, Asgi, Message, Receive, Scope, Send, until_loaded
from trainmedic.ui.chat.texts import HERE, LANGUAGES, Language, path_of
from trainmedic.ui.chat.uploads import upload_folder
from trainmedic.ui.context import AppContext
from trainmedic.ui.knowledge.pages import PATHS, KnowledgePages

LoadPages = Callable[[AppContext], FastAPI]
"""`ui.chat.pages.make_pages`, imported beside the first requests."""

STATIC = "/ui/"
SIGNING = LOGIN, LOGOUT = "/login", "/logout"
PAGES = {path_of(language): language for language in LANGUAGES}
LANGUAGE_COOKIE = "tm_lang"
LONGEST_QUERY = 8_000
"""Characters of an address's query that are read."""
LONGEST_NAME = 255
"""Bytes of a part of an address: Gradio looks for it on the disk, which has no longer names."""
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
"""No inline script, no other site. Gradio's own widgets need ``unsafe-eval``."""
PRIVATE = (b"text/html", b"application/json")
"""Kinds of content that may hold a text of someone's, as the framework's scripts and styles do not."""
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-accel-buffering", b"no"),  # a proxy that collects event streams would hold the answer back
)


class Shell:
    """The ASGI application in front of the pages: access, language, and a placeholder while they load.

    Without ``load_pages`` there is no question page, only those of the knowledge.
    """

    def __init__(
        self,
        context: AppContext,
        load_pages: LoadPages | None,
        pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        self._context = context
        self._pauses_s = pauses_s
        self._load_pages = load_pages
        settings = context.settings
        self._gate = context.gate or Gate(settings)
        self._public_host = urlsplit(settings.public_url).netloc
        self._cookies = Cookies(settings.public_url)
        self._direct = Direct(context)
        self._calls = CallGuard(MAX_ATTACHMENTS)
        self._static = static_files()
        self._knowledge = KnowledgePages(context, self._address)
        self._pages: Asgi | None = None
        self._folder = Path(tempfile.gettempdir())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the pages in the background, and serve them until the context closes."""
        if self._load_pages is None:
            yield
            return
        stop = asyncio.Event()
        with upload_folder() as self._folder:
            task = asyncio.create_task(self._serve(stop))
            try:
                yield
            finally:
                stop.set()
                await task

    async def _serve(self, stop: asyncio.Event) -> None:
        await until_loaded(lambda: self._run(stop), stop, self._pauses_s)

    async def _run(self, stop: asyncio.Event) -> None:
        try:
            assert self._load_pages is not None
            pages = await asyncio.to_thread(self._load_pages, self._context)
            async with pages.router.lifespan_context(pages):
                self._pages = pages
                await stop.wait()
        finally:
            self._pages = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = 500

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                names = {name for name, _ in HEADERS}
                # Ours replace any of the same name that Gradio sets.
                message["headers"] = [*(h for h in message.get("headers", []) if h[0].lower() not in names), *HEADERS]
                if dict(message["headers"]).get(b"content-type", b"").startswith(PRIVATE):
                    message["headers"] = stored_nowhere(message["headers"])
            await send(message)

        try:
            try:
                response, headers = await self._response(scope, receive)
            except Refused as refused:
                if refused.principal is not ANYBODY:
                    caller(scope, refused.principal)
                response, headers = self._refused(scope, refused), {}
            if isinstance(response, Response):  # of two limits, the one that was reached
                headers = {name: value for name, value in headers.items() if name not in response.headers}
            answered = with_headers(guarded, headers)
            if response is not None:
                await response(scope, receive, answered)
            elif self._pages is not None:
                await self._called(self._pages, scope, receive, answered)
            elif self._load_pages is not None:
                await self._loading(scope)(scope, receive, answered)
            else:
                await HTMLResponse(self._plain(scope, missing=True), status_code=404)(scope, receive, answered)
        finally:
            await self._record(scope, status)

    async def _record(self, scope: Scope, status: int) -> None:
        """Note in the audit log what a page has noted of itself, and what was refused."""
        state, result = scope.get("state", {}), str(status)
        noted = state.get(NOTED)
        if noted is None:
            if result not in REFUSALS or (status != 429 and scope["path"] in SIGNING):
                return  # wrong keys are noted where they are found out
            noted = Noted(f"{scope['method']} {route_of(scope['path'])}")
        target = noted.target if status < 400 else ""
        await self._gate.record(scope, state.get("principal", ANYBODY), noted.action, result, target)

    async def _called(self, pages: Asgi, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to Gradio if it is a call that our pages make."""
        try:
            receive, send = await self._calls.admit(scope, receive, send, self._folder, scope["state"]["owner"])
        except RefusedCall as refused:
            await JSONResponse(error(refused.code, refused.message), status_code=refused.status)(scope, receive, send)
            return
        await pages(scope, receive, send)

    async def _response(self, scope: Scope, receive: Receive) -> tuple[Response | Asgi | None, Mapping[str, str]]:
        """The response to a request that needs no page (None if the pages respond), and headers for either.

        Raises `Refused`.
        """
        path, headers = scope["path"], dict(scope["headers"])
        signs_in = path in SIGNING
        principal = None if signs_in or path.startswith(STATIC) else await self._principal(scope)
        caller(scope, principal or ANYBODY, browser_id(self._cookies.value(scope, BROWSER)))
        counted = await self._counted(scope, principal or ANYBODY)
        if any(len(name.encode("utf-8", "replace")) > LONGEST_NAME for name in path.split("/")):
            return JSONResponse(error("not_found", "no such file"), status_code=404), counted
        if path.startswith(STATIC):
            return self._static_response(path.removeprefix(STATIC)), counted
        # SameSite cookies do not protect a service without keys, which has no cookie at all.
        if scope["method"] not in ("GET", "HEAD") and not same_site(headers, self._hosts(scope)):
            return JSONResponse(error("forbidden", "requests from other sites are refused"), status_code=403), counted
        if signs_in:
            return await (self._login(scope, receive) if path == LOGIN else self._logout(scope)), counted
        if principal is None and await self._gate.access.required():
            return self._refusal(scope), counted
        if not (principal or ANYBODY).may("read" if scope["method"] in ("GET", "HEAD") else "ask"):
            raise Refused(Forbidden("this key may read, not ask"), counted)
        if path.startswith(DIRECT) and self._load_pages is not None:
            return await self._direct.response(scope, receive), counted
        return await self._page(scope), counted

    async def _page(self, scope: Scope) -> Response | None:
        """What is served without Gradio; None if the pages respond."""
        path, headers = scope["path"], dict(scope["headers"])
        if path in ("/zh", "/knowledge", "/zh/knowledge"):
            return RedirectResponse(with_query(f"{path}/", scope), status_code=307)
        if path in PATHS:
            return await self._knowledge_page(scope)
        if scope["method"] == "GET" and asks_for_page(headers) and path not in PAGES:
            return HTMLResponse(self._plain(scope, missing=True), status_code=404)
        if path == "/" and scope["method"] == "GET" and wants_chinese(headers):
            return RedirectResponse(with_query("/zh/", scope), status_code=302, headers={"Vary": "Accept-Language"})
        if path in PAGES and scope["method"] in ("GET", "HEAD") and self._pages is not None:
            return await self._document(scope)
        return None

    async def _principal(self, scope: Scope) -> Principal | None:
        """Who sends a request, by its session or its key; None if it has neither."""
        access = self._gate.access
        session = await access.session(self._cookies.value(scope, SESSION))
        if session is not None:
            return session
        if b"authorization" not in dict(scope["headers"]) or not await self._keys_are_used():
            return None
        return await self._gate.identified(scope)

    def _executor(self, scope: Scope) -> Executor:
        """Runs what a request needs in its client's turn."""
        client = client_of(scope["state"]["principal"], address_of(scope))
        return for_client(client, self._context.executor)

    def _hosts(self, scope: Scope) -> tuple[str, ...]:
        """The names under which a browser may have opened our pages."""
        return (host_of(scope), dict(scope["headers"]).get(b"host", b"").decode("latin-1"), self._public_host)

    async def _counted(self, scope: Scope, principal: Principal) -> Mapping[str, str]:
        return await self._gate.counted(scope, principal, asks=False)

    async def _document(self, scope: Scope) -> Response:
        language = PAGES[scope["path"]]
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")[:LONGEST_QUERY]))
        url = f"{origin_of(scope)}{with_query(scope['path'], scope)}"
        addresses = {name: self._address(name) for name in self._static}
        answer_id = query.get("answer", "")[:64]

        def read() -> tuple[str, bool]:
            html = document(self._context, language, query, url, addresses)
            return html, answer_id != "" and self._context.memory.answer(answer_id) is not None

        html, is_stored = await self._executor(scope)(read)
        if is_stored:
            note(scope, READ, answer_id)
        response = HTMLResponse(html, headers={"Cache-Control": "no-store", "Vary": "Accept-Language, Cookie"})
        if not scope["state"]["owner"]:
            # Lax: the first visit of a browser may be a link from another site, and must not replace what it has.
            secret = new_browser()
            response.headers["set-cookie"] = self._cookies.header(
                scope, BROWSER, secret, BROWSER_LASTS_S, same_site="Lax"
            )
        return response

    async def _keys_are_used(self) -> bool:
        """Whether any page requires a key."""
        access = self._gate.access
        return await access.required() or await access.administrators()

    async def _knowledge_page(self, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            return JSONResponse(error("method_not_allowed", "GET"), status_code=405)
        query = scope.get("query_string", b"").decode("latin-1")
        url = f"{origin_of(scope)}{with_query(scope['path'], scope)}"
        return await self._executor(scope)(lambda: self._knowledge.response(scope["path"], query, url))

    async def _login(self, scope: Scope, receive: Receive) -> Response:
        used = await self._keys_are_used()
        if scope["method"] == "GET":
            return self._form(scope, "/", status=200) if used else RedirectResponse("/", status_code=303)
        if scope["method"] != "POST":
            return JSONResponse(error("method_not_allowed", "GET or POST"), status_code=405)
        key, target = form_of(await body_of(receive))
        if not used:
            return RedirectResponse(target, status_code=303)
        try:
            value = await self._signed_in(scope, key.strip())
        except Refused as refused:
            page = self._form(scope, target, problem="login_too_many", status=STATUS[refused.error.kind])
            page.headers.update(refused.headers)
            return page
        if value is None:
            return self._form(scope, target, problem="login_wrong")
        # 303, so that the browser follows with GET and a reload does not send the key again.
        response = RedirectResponse(target, status_code=303)
        response.headers["set-cookie"] = self._cookies.header(scope, SESSION, value, LASTS_S)
        return response

    async def _signed_in(self, scope: Scope, key: str) -> str | None:
        """The secret of a new session; None for a wrong key. Raises `Refused` after too many attempts."""
        principal = await self._gate.access.key(key.encode("utf-8", "surrogatepass"))
        if principal is None or not await self._gate.trusts(principal, scope):
            await self._gate.record(scope, ANYBODY, "sign in", "refused")
            await self._gate.attempted(scope)
            return None
        await self._gate.record(scope, principal, "sign in", "done")
        return await self._gate.access.sign_in(principal, LASTS_S, key)

    async def _logout(self, scope: Scope) -> Response:
        if scope["method"] != "POST":
            return JSONResponse(error("method_not_allowed", "POST"), status_code=405)
        secret = self._cookies.value(scope, SESSION)
        principal = await self._gate.access.session(secret)
        if principal is not None:
            await self._gate.access.sign_out(secret)
            await self._gate.record(scope, principal, "sign out", "done")
        response = RedirectResponse("/", status_code=303)
        response.headers["set-cookie"] = self._cookies.header(scope, SESSION, "", 0)
        return response

    def _refused(self, scope: Scope, refused: Refused) -> Response:
        cause = refused.error
        if cause.kind == "unauthorized" and scope["method"] == "GET" and asks_for_page(dict(scope["headers"])):
            return self._form(scope, own_path(with_query(scope["path"], scope)))
        body = error(cause.code, cause.message)
        return JSONResponse(body, status_code=STATUS[cause.kind], headers=refused.headers)

    def _refusal(self, scope: Scope) -> Response:
        if scope["method"] == "GET" and asks_for_page(dict(scope["headers"])):
            return self._form(scope, own_path(with_query(scope["path"], scope)))
        return JSONResponse(error("unauthorized", "a valid key is needed"), status_code=401)

    def _form(self, scope: Scope, target: str, *, problem: str = "", status: int = 401) -> Response:
        hours = LASTS_S // 3600
        values = {"form": True, "next": target, "wrong": problem, "hours": hours}
        page = self._plain(scope, **values, script=self._address("login.js"))
        return HTMLResponse(page, status_code=status, headers={"Cache-Control": "no-store"})

    def _loading(self, scope: Scope) -> Response:
        page = self._plain(scope, refresh=True)
        return HTMLResponse(page, status_code=503, headers={"Retry-After": "1", "Cache-Control": "no-store"})

    def _plain(self, scope: Scope, **values: object) -> str:
        chinese = scope["path"].startswith("/zh/") or wants_chinese(dict(scope["headers"]))
        language: Language = "zh" if chinese else "en"
        defaults: dict[str, object] = {
            "form": False,
            "missing": False,
            "refresh": False,
            "wrong": "",
            "hours": 0,
        }
        defaults |= {"script": None, "next": "/", "css": self._address("ui.css"), "icon": self._address("icon.svg")}
        return render("plain.html", language, **(defaults | values))

    def _address(self, name: str) -> str:
        return f"{STATIC}{name}?v={self._static[name].tag}"

    def _static_response(self, name: str) -> Response:
        file = self._static.get(name)
        if file is None:
            return JSONResponse(error("not_found", "no such file"), status_code=404)
        # For ever, because the address changes with the content.
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(file.content, media_type=file.kind, headers=headers)


def caller(scope: Scope, principal: Principal, browser: str = "") -> None:
    """Hand on who sends a request, and who owns what it asks: its sender, else its browser."""
    scope.setdefault("state", {}).update(principal=principal, owner=principal.id or browser)


def route_of(path: str) -> str:
    """The kind of page at a path, which the audit log names instead of what someone typed."""
    return path if path in PAGES or path in PATHS or path in SIGNING else "/{page}"


class StaticFile:
    """A packaged file in memory. ``tag`` changes with its content."""

    __slots__ = ("content", "kind", "tag")

    def __init__(self, name: str, content: bytes) -> None:
        self.content = content
        self.kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        self.tag = hashlib.sha256(content).hexdigest()[:12]


def static_files() -> dict[str, StaticFile]:
    return {path.name: StaticFile(path.name, path.read_bytes()) for path in sorted((HERE / "static").iterdir())}


def error(code: str, message: str) -> dict[str, object]:
    """An error body as the API sends it."""
    return {"error": {"code": code, "message": message}}


def with_query(path: str, scope: Scope) -> str:
    query = scope.get("query_string", b"").decode("latin-1")
    return quote(path) + (f"?{query}" if query else "")


def origin_of(scope: Scope) -> str:
    """Scheme and host as the browser knows them."""
    return f"{scope.get('scheme', 'http')}://{host_of(scope)}"


def asks_for_page(headers: dict[bytes, bytes]) -> bool:
    """Whether a browser opens an address, as opposed to a page loading a part of itself."""
    return b"text/html" in headers.get(b"accept", b"")


def wants_chinese(headers: dict[bytes, bytes]) -> bool:
    """Whether the reader chose Chinese, or the browser prefers it."""
    chosen = cookie(headers, LANGUAGE_COOKIE)
    if chosen in LANGUAGES:
        return chosen == "zh"
    return headers.get(b"accept-language", b"").strip().lower().startswith(b"zh")


async def body_of(receive: Receive) -> bytes:
    """The body of a small form, cut at `LONGEST_FORM`."""
    body, more = b"", True
    while more and len(body) <= LONGEST_FORM:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False) and message["type"] == "http.request"
    return body[:LONGEST_FORM]
