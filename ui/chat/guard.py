"""What a browser may ask of the pages' framework: a few calls, and in them no file but one that was uploaded.

The framework copies every path that a call names into its cache before any of our code sees it, and fetches every
address. Mounted in another application it does not look whether the file was uploaded (its ``_check_allowed`` asks for
``has_launched``), so that is looked at here, before the call reaches it.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainmedic.ui.chat.uploads import expect

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CALL = re.compile(r"(?:/zh)?(?:/knowledge)?/gradio_api/(queue/join|upload|cancel|reset)/?")
"""The calls that the pages make."""
CLOSED = re.compile(r"/gradio_api/(?:proxy=|file=https?:|deep_link|dev/|vibe|custom_component|process_recording)")
"""What the framework offers beside them, and that would fetch, store or run something."""
UPLOAD = "upload"
LONGEST_CALL = 8 * 1024 * 1024
"""Bytes of a call; a long paste is an upload."""
UPLOADED = re.compile(r"[0-9a-f]{64}")
"""The framework's folder for one upload: a digest of its content."""
KEPT_S = 3600.0
"""Seconds after which a file that nobody asked about goes."""


class Refused(Exception):
    """Why a call is not handed on: a status, a code and a sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def call_of(method: str, path: str) -> str:
    """The name of the call that a request is; empty for one that only reads. Raises `Refused`."""
    if CLOSED.search(path) is not None:
        raise Refused(404, "not_found", "there is nothing here")
    if method in ("GET", "HEAD"):
        return ""
    found = CALL.fullmatch(path)
    if found is None or method != "POST":
        raise Refused(404, "not_found", "there is nothing here")
    return found[1]


async def checked(receive: Receive, folder: Path) -> Receive:
    """The same call once more, after a look at it. Raises `Refused` where it names a file that was not uploaded."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LONGEST_CALL:
            raise Refused(413, "too_large", "send a long text as a file")
        more = message.get("more_body", False) and message["type"] == "http.request"
    body = b"".join(parts)
    try:
        given = json.loads(body) if body else None
    except (ValueError, RecursionError):
        raise Refused(400, "invalid_request", "this is no JSON") from None
    if not all(is_uploaded(path, folder) for path in paths_in(given)):
        raise Refused(403, "forbidden", "this file was not uploaded")
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return first.pop() if first else await receive()

    return again


def paths_in(value: object) -> Iterator[object]:
    """Everything that stands under the name ``path``, however deep."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if "path" in each:
                yield each["path"]
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def is_uploaded(path: object, folder: Path) -> bool:
    """Whether this is a file that was uploaded into ``folder``, by its name and on the disk."""
    if not isinstance(path, str) or "\0" in path:
        return False
    real = Path(os.path.realpath(path))
    home = Path(os.path.realpath(folder))
    return real.parent.parent == home and UPLOADED.fullmatch(real.parent.name) is not None


def counted(send: Send) -> Send:
    """``send`` for the answer to an upload: the files that it names are expected to be asked about once each."""
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
                    expect([path for path in json.loads(b"".join(parts)) if isinstance(path, str)])
        await send(message)

    return counting


def sweep(folder: Path, now: float | None = None) -> None:
    """Delete what was uploaded long ago and never asked about, and what an upload that broke off has left."""
    limit = (time.time() if now is None else now) - KEPT_S
    for path in sorted(folder.rglob("*"), reverse=True):  # files before their folders
        with suppress(OSError):
            if path.lstat().st_mtime < limit:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
