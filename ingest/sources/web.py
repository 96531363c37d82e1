"""Web pages: one address, or a text file with one address a line; again only those that changed.

A page that its server says is gone (404, 410) is forgotten; one that cannot be reached is kept and named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

from trainmedic.ingest.document import Checkpoint, Failure, Gone, Item, Raw

MAX_BYTES = 10 * 1024 * 1024
TIMEOUT_S = 30.0
_GONE = (404, 410)
_FORMATS = {"text/html": "html", "application/xhtml+xml": "html", "text/markdown": "markdown", "text/plain": "text"}


def recognises(location: str) -> bool:
    return location.startswith(("https://", "http://"))


def read(location: str, since: str = "", transport: httpx.BaseTransport | None = None) -> Iterator[Item]:
    """Each page, in the order given. ``transport`` is there for tests."""
    listed = addresses(location)
    if isinstance(listed, Failure):
        yield listed
        return
    marks = _marks(since)
    headers = {"User-Agent": "trainmedic", "Accept": "text/html, text/markdown, text/plain"}
    with httpx.Client(headers=headers, timeout=TIMEOUT_S, follow_redirects=True, transport=transport) as client:
        for address in listed:
            yield from _page(client, address, marks)
            yield Checkpoint(value=json.dumps(marks, sort_keys=True))
    for address in sorted(set(marks) - set(listed)):
        del marks[address]
        yield Gone(key=address)
    yield Checkpoint(value=json.dumps(marks, sort_keys=True))


def addresses(location: str) -> tuple[str, ...] | Failure:
    """The addresses that a location stands for, each once."""
    if recognises(location):
        return (location,)
    try:
        lines = Path(location).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        return Failure(origin=location, reason=f"neither an address nor a file of addresses ({type(error).__name__})")
    listed = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    wrong = next((line for line in listed if not recognises(line)), None)
    if wrong is not None or not listed:
        return Failure(origin=location, reason=f"no address: {wrong}" if wrong else "no addresses in it")
    return tuple(dict.fromkeys(listed))


def _page(client: httpx.Client, address: str, marks: dict[str, list[str]]) -> Iterator[Item]:
    etag, modified, digest = [*marks.get(address, []), "", "", ""][:3]
    conditions = {name: value for name, value in (("If-None-Match", etag), ("If-Modified-Since", modified)) if value}
    try:
        with client.stream("GET", address, headers=conditions) as response:
            if response.status_code == httpx.codes.NOT_MODIFIED:
                return
            if response.status_code in _GONE:
                marks.pop(address, None)
                yield Gone(key=address)
                yield Failure(origin=address, reason=f"gone ({response.status_code})")
                return
            if response.is_error:
                yield Failure(origin=address, reason=f"the server answers {response.status_code}")
                return
            kind = response.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
            if kind not in _FORMATS:
                yield Failure(origin=address, reason=f"pages of this kind are not read: {kind}")
                return
            data = b""
            for piece in response.iter_bytes():
                data += piece
                if len(data) > MAX_BYTES:
                    yield Failure(origin=address, reason=f"larger than {MAX_BYTES // 1024 // 1024} MiB")
                    return
            text = data.decode(response.encoding or "utf-8", errors="replace")
            headers: Mapping[str, str] = response.headers
            mark = hashlib.sha256(data).hexdigest()[:16]
            marks[address] = [headers.get("etag", ""), headers.get("last-modified", ""), mark]
            if mark != digest:
                yield Raw(origin=address, content=text, format=_FORMATS[kind], url=address)
    except (httpx.HTTPError, httpx.InvalidURL, LookupError) as error:
        yield Failure(origin=address, reason=f"cannot be fetched ({type(error).__name__})")


def _marks(since: str) -> dict[str, list[str]]:
    try:
        data = json.loads(since) if since else {}
    except ValueError:
        return {}
    if not isinstance(data, dict):
        return {}
    return {str(address): [str(mark) for mark in marks] for address, marks in data.items() if isinstance(marks, list)}
