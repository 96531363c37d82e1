"""What a browser may request of Gradio: a few calls, and in them only files that were uploaded.

Gradio copies every path that a call names into its cache before any of our code runs, and fetches every URL. Mounted in
another application it does not check that the file was uploaded (its ``_check_allowed`` looks at ``has_launched``), so
that is checked here, before the call reaches it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainmedic.kb.lazy import regex
from trainmedic.ui.chat.uploads import expect

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CALL = regex(r"(?:/zh)?/gradio_api/(queue/join|upload|cancel|reset)/?")
"""The calls that our pages make."""
CLOSED = regex(r"/gradio_api/(?:proxy=|file=https?:|deep_link|dev/|vibe|custom_component|process_recording)")
"""Gradio's other routes, which would fetch, store or run something."""
UPLOAD = "upload"
LONGEST_CALL = 8 * 1024 * 1024
"""Bytes of a call; a long paste is an upload."""
UPLOADED = regex(r"[0-9a-f]{64}")
"""Gradio's folder for one upload: a digest of its content."""
KEPT_S = 3600.0
"""Seconds after which an unused upload is deleted."""


class RefusedCall(Exception):
    """Why a call is refused: status, code and message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def call_of(method: str, path: str) -> str:
    """The name of the call that a request makes; empty for a read. Raises `RefusedCall`."""
    if CLOSED.search(path) is not None:
        raise RefusedCall(404, "not_found", "not found")
    if method in ("GET", "HEAD"):
        return ""
    call = CALL.fullmatch(path)
    # Only what our own pages call: every further route of Gradio would be one more thing to secure.
    if call is None or method != "POST":
        raise RefusedCall(404, "not_found", "not found")
    return call[1]


async def checked(receive: Receive, folder: Path) -> Receive:
    """A ``receive`` that replays the checked body. Raises `RefusedCall` if it names a file that was not uploaded."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LONGEST_CALL:
            raise RefusedCall(413, "too_large", "send a long text as a file")
        more = message.get("more_body", False) and message["type"] == "http.request"
    body = b"".join(parts)
    try:
        payload = json.loads(body) if body else None
    except (ValueError, RecursionError):
        raise RefusedCall(400, "invalid_request", "not valid JSON") from None
    if not all(is_uploaded(path, folder) for path in paths_in(payload)):
        raise RefusedCall(403, "forbidden", "this file was not uploaded")
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again


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
