"""Bytes of a URL, within bounds: https or a file, a deadline, a largest size, redirects that stay on https."""

from __future__ import annotations

import hashlib
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage, HTTPResponse
from io import BufferedReader
from ipaddress import ip_address
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urljoin, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
    url2pathname,
)

from trainmedic.kb.errors import NotFound, SourceError
from trainmedic.kb.sources.pip_configuration import PipConfiguration

_PIECE = 256 * 1024
_LONGEST_S = 600.0
"""Of one download; the timeout of the configuration is that of one read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """``url`` is where the redirects ended, ``kind`` the media type."""

    url: str = field(repr=False)
    kind: str
    content: bytes = field(repr=False)


class Client:
    """Asks the hosts of one configuration."""

    def __init__(self, configuration: PipConfiguration) -> None:
        self._configuration = configuration
        self._opener: OpenerDirector | None = None
        urls = (*configuration.indexes, *configuration.find_links)
        parts = [urlsplit(url) for url in urls if "@" in url]
        self._passwords = {_site(part): _basic(part) for part in parts if part.username}

    def get(self, url: str, *, accept: str, most: int) -> Page:
        """A page. Raises `NotFound` and `SourceError`."""
        if urlsplit(url).scheme == "file":
            return Page(url=url, kind="text/html", content=_local_page(url, most))
        content = bytearray()
        with self._opened(url, accept) as response:
            _copy(response, content.extend, most, _host(url))
            kind = response.headers.get_content_type()
        return Page(url=response.url, kind=kind, content=bytes(content))

    def download(self, url: str, path: Path, *, sha256: str, most: int) -> None:
        """A file, whose digest is checked if one is known. Raises `NotFound` and `SourceError`."""
        digest = hashlib.sha256()
        with path.open("wb") as target:

            def keep(piece: bytes) -> None:
                digest.update(piece)
                target.write(piece)

            if urlsplit(url).scheme == "file":
                with local_path(url).open("rb") as source:
                    _copy(source, keep, most, path.name)
            else:
                with self._opened(url, "*/*") as response:
                    _copy(response, keep, most, _host(url))
        if sha256 and digest.hexdigest() != sha256.lower():
            raise SourceError(
                f"{path.name} is not the file that the index lists: its SHA-256 differs",
                hint="try again; if it stays so, ask whoever runs the index",
            )

    @contextmanager
    def _opened(self, url: str, accept: str) -> Iterator[HTTPResponse]:
        host = _host(url)
        # The encoding is asked for as it is: what unpacks on the way has no bound.
        headers = {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "trainmedic"}
        parts = _checked(url)
        if _site(parts) in self._passwords:
            headers["Authorization"] = self._passwords[_site(parts)]
        request = Request(_bare(parts), headers=headers)
        try:
            with self._connected().open(request, timeout=self._configuration.timeout_s) as response:
                yield response
        except HTTPError as error:
            error.close()
            if error.code in (404, 410):
                raise NotFound(f"{host} does not have it") from None
            hint = "check the user and password in index-url" if error.code in (401, 403) else "try again later"
            raise SourceError(f"{host} answered {error.code}", hint=hint) from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            offline = "check the network and `pip config list`, or import a bundle: trainmedic kb sources import"
            untrusted = "set cert of pip to the certificates of your network"
            raise SourceError(
                f"{host} cannot be reached ({reason})",
                hint=untrusted if isinstance(reason, ssl.SSLError) else offline,
            ) from None

    def _connected(self) -> OpenerDirector:
        if self._opener is None:
            file = self._configuration.certificates
            try:
                context = ssl.create_default_context(
                    cafile=str(file) if file and not file.is_dir() else None, capath=str(file) if file else None
                )
            except OSError as error:
                raise SourceError(
                    f"the certificates {file} cannot be read ({error})", hint="check cert of pip"
                ) from error
            proxy = self._configuration.proxy
            proxies = ProxyHandler({"https": proxy, "http": proxy} if proxy else None)
            self._opener = build_opener(proxies, HTTPSHandler(context=context), _Redirects())
        return self._opener


class _Redirects(HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        old, new = urlsplit(req.full_url), _checked(urljoin(req.full_url, newurl))
        if old.scheme == "https" and new.scheme != "https":
            raise SourceError(
                f"{old.hostname} redirects to {new.scheme}, which is not protected against tampering", hint=_HTTPS
            )
        found = super().redirect_request(req, fp, code, msg, headers, newurl)
        if found is not None and _site(old) != _site(new):
            found.remove_header("Authorization")
        return found


_HTTPS = "packages are fetched over https only, or from a file"


def _checked(url: str) -> SplitResult:
    """Raises `SourceError` unless no one on the way can change what comes."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_here(parts.hostname or "")):
        raise SourceError(
            f"{parts.hostname or 'the index'} would be asked over {parts.scheme or 'no scheme'}", hint=_HTTPS
        )
    return parts


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _site(parts: SplitResult) -> tuple[str, str | None, int | None]:
    """Who gets a password."""
    return parts.scheme, parts.hostname, parts.port


def _host(url: str) -> str:
    """What messages may show of a URL."""
    return urlsplit(url).hostname or "the index"


def _bare(parts: SplitResult) -> str:
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


def _basic(parts: SplitResult) -> str:
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def _copy(source: HTTPResponse | BufferedReader, keep: Callable[[bytes], object], most: int, name: str) -> None:
    end, left = time.monotonic() + _LONGEST_S, most
    # What has come, not a whole piece: a server that sends a byte now and then would hold a read for ever.
    while piece := source.read1(min(_PIECE, left + 1)):
        left -= len(piece)
        if left < 0:
            raise SourceError(f"{name} sends more than {most // 1024 // 1024} MiB", hint="install the package instead")
        if time.monotonic() > end:
            raise SourceError(f"{name} took over {_LONGEST_S:.0f} s", hint="try again later, or import a bundle")
        keep(piece)


def local_path(url: str) -> Path:
    """The path of a file: address."""
    return Path(url2pathname(unquote(urlsplit(url).path)))


def _local_page(url: str, most: int) -> bytes:
    path = local_path(url)
    page = path / "index.html" if path.is_dir() else path
    if not page.is_file():
        raise NotFound(f"{page.parent} does not have it")
    with page.open("rb") as stream:
        return stream.read(most)
