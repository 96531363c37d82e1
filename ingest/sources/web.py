"""Web pages: one address, or a text file with one address a line; again only those that changed.

A page that its server says is gone (404, 410) is forgotten; one that cannot be reached is kept and named.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx

from trainmedic.ingest.items import Checkpoint, Failure, Gone, Item, Options, Raw

MAX_BYTES = 10 * 1024 * 1024
TIMEOUT_S = 30.0
"""Seconds that a server may say nothing."""
PAGE_S = 60.0
"""Seconds for one page, redirects and all."""
MOST_REDIRECTS = 5
_GONE = (404, 410)
_HEADERS = {"User-Agent": "trainmedic", "Accept": "text/html, text/markdown, text/plain"}
_FORMATS = {"text/html": "html", "application/xhtml+xml": "html", "text/markdown": "markdown", "text/plain": "text"}


def recognises(location: str) -> bool:
    return location.startswith(("https://", "http://"))


def read(options: Options, transport: httpx.AsyncBaseTransport | None = None) -> Iterator[Item]:
    """Each page, in the order given. ``transport`` is there for tests."""
    listed = addresses(options.location)
    if isinstance(listed, Failure):
        yield listed
        return
    marks = _marks(options.since)
    for address in listed:
        yield from asyncio.run(_within_deadline(address, marks, options.internal, transport))
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


async def _within_deadline(
    address: str, marks: dict[str, list[str]], internal: bool, transport: httpx.AsyncBaseTransport | None
) -> list[Item]:
    try:
        async with (
            asyncio.timeout(PAGE_S),
            httpx.AsyncClient(headers=_HEADERS, timeout=TIMEOUT_S, transport=transport) as client,
        ):
            return await _page(client, address, marks, internal=internal)
    except TimeoutError:
        return [Failure(origin=address, reason=f"takes longer than {PAGE_S:g} s")]
    except InternalTarget as error:
        return [Failure(origin=address, reason=f"leads to {error.args[0]}, which is internal (--internal allows it)")]
    except (httpx.HTTPError, httpx.InvalidURL, LookupError) as error:
        return [Failure(origin=address, reason=f"cannot be fetched ({type(error).__name__})")]


async def _page(client: httpx.AsyncClient, address: str, marks: dict[str, list[str]], *, internal: bool) -> list[Item]:
    etag, modified, digest = [*marks.get(address, []), "", "", ""][:3]
    conditions = {name: value for name, value in (("If-None-Match", etag), ("If-Modified-Since", modified)) if value}
    way = Way(internal=internal)
    request = client.build_request("GET", address, headers=conditions, extensions={"trace": way.connected})
    for _ in range(MOST_REDIRECTS + 1):
        way.enter(request.url.host)
        response = await client.send(request, stream=True)
        try:
            if response.next_request is None:
                return await _content(response, address, marks, digest)
        finally:
            await response.aclose()
        request = response.next_request
        request.extensions["trace"] = way.connected
    return [Failure(origin=address, reason=f"more than {MOST_REDIRECTS} redirects")]


async def _content(response: httpx.Response, address: str, marks: dict[str, list[str]], digest: str) -> list[Item]:
    if response.status_code == httpx.codes.NOT_MODIFIED:
        return []
    if response.status_code in _GONE:
        marks.pop(address, None)
        return [Gone(key=address), Failure(origin=address, reason=f"gone ({response.status_code})")]
    if response.is_error:
        return [Failure(origin=address, reason=f"the server answers {response.status_code}")]
    kind = response.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    if kind not in _FORMATS:
        return [Failure(origin=address, reason=f"pages of this kind are not read: {kind}")]
    data = b""
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > MAX_BYTES:
            return [Failure(origin=address, reason=f"larger than {MAX_BYTES // 1024 // 1024} MiB")]
    text = data.decode(response.encoding or "utf-8", errors="replace")
    mark = hashlib.sha256(data).hexdigest()[:16]
    marks[address] = [response.headers.get("etag", ""), response.headers.get("last-modified", ""), mark]
    if mark == digest:
        return []
    return [Raw(origin=address, content=text, format=_FORMATS[kind], url=str(response.url), key=address)]


class InternalTarget(Exception):
    """A page of a public host leads to an internal one; ``args[0]`` is its address."""


class Way:
    """The hosts on the way to a page: from a public one, none leads to this machine or network."""

    def __init__(self, *, internal: bool) -> None:
        self._allowed = internal
        self._hops = 0

    def enter(self, host: str) -> None:
        """Go to the next host. Its name may tell already; what counts is the address that is connected to."""
        self._hops += 1
        with suppress(ValueError):
            self._check(host.strip("[]"))

    async def connected(self, event: str, info: Mapping[str, Any]) -> None:
        """Called by the client; what is raised ends the request before it is sent."""
        if event != "connection.connect_tcp.complete":
            return
        stream = info["return_value"]
        try:
            self._check(stream.get_extra_info("server_addr")[0])
        except InternalTarget:
            await stream.aclose()
            raise

    def _check(self, address: str) -> None:
        if self._allowed or is_public(address):
            return
        if self._hops > 1:
            raise InternalTarget(address)
        self._allowed = True  # the listed host is internal itself


def is_public(address: str) -> bool:
    """Whether an IP address is of the internet. Raises `ValueError` if it is none."""
    found = ip_address(address.partition("%")[0])
    found = getattr(found, "ipv4_mapped", None) or found
    return found.is_global and not found.is_multicast


def _marks(since: str) -> dict[str, list[str]]:
    try:
        data = json.loads(since) if since else {}
    except ValueError:
        return {}
    if not isinstance(data, dict):
        return {}
    return {str(address): [str(mark) for mark in marks] for address, marks in data.items() if isinstance(marks, list)}
