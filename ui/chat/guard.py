"""Allow-list of Gradio requests: a few reads and calls, limited to uploaded files and the browser's own tabs.

Gradio copies every path that a call names into its cache before any of our code runs, and fetches every URL. Mounted in
another application it does not check that the file was uploaded (its ``_check_allowed`` looks at ``has_launched``), so
that is checked here, before the call reaches it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs

from cachetools import TTLCache
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainmedic.kb.lazy import regex
from trainmedic.ui.chat.uploads import expect

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CALL = regex(r"(?:/zh)?/gradio_api/(queue/join|upload|cancel|reset)/?")
"""The calls that our pages make."""
READ = regex(
    r"/|/zh/"
    r"|(?:/zh)?/(?:config|theme\.css|(?:assets|static)/.+)/?"
    r"|(?:/zh)?/gradio_api/(?:queue/data|heartbeat/[^/]+|upload_progress|startup-events|app_id|info|theme\.css)/?"
)
"""Routes that the pages read. Every further route of Gradio would be one more thing to secure."""
UPLOAD = "upload"
LONGEST_CALL = 8 * 1024 * 1024
"""Bytes of a call; a long paste is an upload."""
UPLOADED = regex(r"[0-9a-f]{64}")
"""Gradio's folder for one upload: a digest of its content."""
KEPT_S = 3600.0
"""Seconds after which an unused upload is deleted."""


MOST_TABS, TAB_S = 100_000, 7 * 24 * 3600.0
"""Tabs whose reader is known, and for how long after their last request; Gradio keeps the state of fewer."""


class RefusedCall(Exception):
    """Why a call is refused: status, code and message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class _Body(BaseModel):
    # What Gradio cannot read it writes to the log, with the value: so the shape is checked before.
    model_config = ConfigDict(extra="forbid", strict=True)


class _Meta(_Body):
    type_: Literal["gradio.FileData"] = Field(alias="_type")


class _File(_Body):
    path: str
    meta: _Meta
    url: str | None = None
    orig_name: str | None = None
    mime_type: str | None = None
    alt_text: str | None = None
    size: int | None = None
    is_stream: bool = False
    blob: dict[str, None] | None = Field(None, max_length=0)


class _Input(_Body):
    text: str
    files: list[_File] = []


class _Call(BaseModel):
    session_hash: str = Field(min_length=1, max_length=64)
    data: list[_Input | str | None] = []


class Tabs:
    """Whose each tab is.

    Gradio keeps what a tab shows under a name that the browser makes up and sends in addresses, which others may learn.
    """

    def __init__(self, most: int = MOST_TABS) -> None:
        self._owners: TTLCache[str, str] = TTLCache(most, TAB_S)

    def claim(self, tab: str, owner: str) -> None:
        """Note the owner of a new tab. Raises `RefusedCall` for someone else's."""
        if self._owners.get(tab, owner) != owner:
            raise RefusedCall(403, "forbidden", "this tab is somebody else's")
        self._owners[tab] = owner  # also of a known one, whose time begins again


class CallGuard:
    """Checks each request before Gradio gets it."""

    def __init__(self, most_files: int) -> None:
        self._most_files = most_files
        self._tabs = Tabs()

    async def admit(self, scope: Scope, receive: Receive, send: Send, folder: Path, owner: str) -> tuple[Receive, Send]:
        """``receive`` and ``send`` for Gradio. Raises `RefusedCall`."""
        call = call_of(scope["method"], scope["path"])
        if call == UPLOAD:
            await asyncio.to_thread(sweep, folder)
            return receive, counted(send)
        if not call:
            if tab := tab_of(scope):
                self._tabs.claim(tab, owner)
            return receive, send
        body = await body_of(receive)
        payload = payload_of(body)
        check_files(payload, folder, self._most_files)
        if call != "reset":  # which does nothing, and names no tab
            self._tabs.claim(checked(payload).session_hash, owner)
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return first.pop() if first else await receive()

        return again, send


def call_of(method: str, path: str) -> str:
    """The name of the call that a request makes; empty for a read. Raises `RefusedCall`."""
    if method in ("GET", "HEAD") and READ.fullmatch(path) is not None:
        return ""
    call = CALL.fullmatch(path)
    if call is None or method != "POST":
        raise RefusedCall(404, "not_found", "not found")
    return call[1]


def tab_of(scope: Scope) -> str:
    """The tab that a read is for; empty if it is for none."""
    _, heartbeat, name = scope["path"].rstrip("/").rpartition("/heartbeat/")
    if heartbeat:
        return str(name)
    query = parse_qs(bytes(scope.get("query_string", b"")).decode("latin-1"))
    return query.get("session_hash", [""])[-1]


async def body_of(receive: Receive) -> bytes:
    """The whole body. Raises `RefusedCall` if it is too long."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LONGEST_CALL:
            raise RefusedCall(413, "too_large", "send a long text as a file")
        more = message.get("more_body", False) and message["type"] == "http.request"
    return b"".join(parts)


def payload_of(body: bytes) -> object:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        raise RefusedCall(400, "invalid_request", "not valid JSON") from None


def check_files(payload: object, folder: Path, most: int) -> None:
    """Raise `RefusedCall` unless a call names few files, each an upload and each once: all of them are read."""
    # A change event has the input's value twice: as what it is given, and as what it tells.
    for part in payload.values() if isinstance(payload, dict) else (payload,):
        paths = list(islice(paths_in(part), most + 1))
        if len(paths) > most:
            raise RefusedCall(413, "too_large", f"at most {most} files at once")
        if not all(is_uploaded(path, folder) for path in paths):
            raise RefusedCall(403, "forbidden", "this file was not uploaded")
        if len({os.path.realpath(str(path)) for path in paths}) < len(paths):
            raise RefusedCall(400, "invalid_request", "a file is named twice")


def checked(payload: object) -> _Call:
    """The call, if it is of the shape that our pages send. Raises `RefusedCall`."""
    try:
        return _Call.model_validate(payload)
    except ValidationError:
        raise RefusedCall(400, "invalid_request", "not a call of these pages") from None


def paths_in(value: object) -> Iterator[object]:
    """Every value under a key ``path``, at any depth."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            # At any depth: Gradio takes every such object for a file.
            if "path" in item:
                yield item["path"]
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def is_uploaded(path: object, folder: Path) -> bool:
    """Whether this is an uploaded file in ``folder``, after resolving links."""
    if not isinstance(path, str) or "\0" in path:
        return False
    # Links are resolved first, or one inside the folder could lead out of it.
    real = Path(os.path.realpath(path))
    home = Path(os.path.realpath(folder))
    return real.parent.parent == home and UPLOADED.fullmatch(real.parent.name) is not None


def counted(send: Send) -> Send:
    """``send`` for the response to an upload: registers the files that it names with `expect`."""
    parts: list[bytes] = []
    ok = False

    async def counting(message: Message) -> None:
        nonlocal ok
        if message["type"] == "http.response.start":
            ok = message["status"] == 200
        elif ok and message["type"] == "http.response.body":
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                with suppress(ValueError):
                    # Registered when the upload succeeds: later calls may name these files and no others.
                    expect([path for path in json.loads(b"".join(parts)) if isinstance(path, str)])
        await send(message)

    return counting


def sweep(folder: Path, now: float | None = None) -> None:
    """Delete old uploads, and the remains of broken ones."""
    limit = (time.time() if now is None else now) - KEPT_S
    for path in sorted(folder.rglob("*"), reverse=True):  # files before their folders
        with suppress(OSError):
            if path.lstat().st_mtime < limit:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
