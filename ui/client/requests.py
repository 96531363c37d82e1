"""The requests of the API as values, and the decoding of their responses. No input or output here."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import httpx
from httpx_sse import ServerSentEvent, SSEError

from trainmedic.ui.client.failure import ServiceError
from trainmedic.ui.client.models import Answer, Delta, Step, decode

T = TypeVar("T")
Files = Mapping[str, str | bytes]
"""Name → content: text, or the bytes of a binary file."""
_HINT = "is base_url that of trainmedic?"


def read_files(*paths: str | Path) -> dict[str, str | bytes]:
    """Files as attachments, named as given; what is not UTF-8, such as an event file, as bytes. Raises `OSError`."""
    return {str(path): _text_or_bytes(Path(path).read_bytes()) for path in paths}


def _text_or_bytes(content: bytes) -> str | bytes:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content


def files(attachments: Files | None) -> list[dict[str, str]]:
    """Attachments as the API takes them, bytes in base64. Raises `ServiceError` for a list of paths."""
    if attachments is not None and not isinstance(attachments, Mapping):
        raise ServiceError("invalid_request", "attachments map names to texts", hint="read_files reads paths")
    return [_file(name, content) for name, content in (attachments or {}).items()]


def _file(name: str, content: str | bytes) -> dict[str, str]:
    if isinstance(content, str):
        return {"name": name, "content": content}
    return {"name": name, "content": b64encode(content).decode("ascii"), "encoding": "base64"}


def segment(id: str) -> str:
    """An id as one segment of a path. Raises `ServiceError` if it cannot be one."""
    # httpx would normalise `..` away and call another route.
    if not id or set(id) <= {"."}:
        raise ServiceError("not_found", f"no such id: {id!r}")
    return quote(id, safe="")


def result(kind: type[T], response: httpx.Response) -> T:
    """The value in a response. Raises `ServiceError`."""
    if not response.is_success:
        raise service_error(response.text, response, status=response.status_code)
    return value(kind, response.text, response)


def value(kind: type[T], text: str, response: httpx.Response) -> T:
    """A value from JSON text. Raises `ServiceError`."""
    try:
        return decode(kind, text)
    except ValueError as error:
        raise ServiceError(
            "bad_response",
            f"not a response of this API: {error}",
            hint=_HINT,
            trace_id=response.headers.get("x-trace-id"),
            status=response.status_code,
        ) from error


def service_error(text: str, response: httpx.Response, *, status: int | None = None) -> ServiceError:
    """The error that the service reports in a body or in an event of a stream."""
    try:
        error = dict(json.loads(text)["error"])
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, TypeError, KeyError):
        error, code = {}, "bad_response"
        message = f"status {response.status_code} without an error of this API"
    trace_id = error.get("trace_id") or response.headers.get("x-trace-id")
    return ServiceError(code, message, hint=error.get("hint"), trace_id=trace_id, status=status)


def connection_error(error: httpx.HTTPError | httpx.InvalidURL | httpx.StreamError, base_url: str) -> ServiceError:
    if isinstance(error, httpx.TimeoutException):
        return ServiceError("timeout", f"{base_url} did not answer in time", hint="a longer timeout_s may help")
    if isinstance(error, SSEError):
        return ServiceError("bad_response", f"{base_url}: not a stream of this API", hint=_HINT)
    return ServiceError("unreachable", f"{base_url}: {type(error).__name__}: {error}", hint="is the service running?")


def stream_part(event: ServerSentEvent, response: httpx.Response) -> Delta | Step | Answer | None:
    """The decoded event; None for kinds that this version does not know.

    Raises `ServiceError` for an error reported by the service, and for anything that is not of this API.
    """
    if event.event == "error":
        raise service_error(event.data, response)
    kinds: dict[str, type[Delta | Step | Answer]] = {"answer.delta": Delta, "answer.step": Step, "answer": Answer}
    # A newer service may send further kinds; an old client must not fail on them.
    kind = kinds.get(event.event)
    return value(kind, event.data, response) if kind is not None else None
