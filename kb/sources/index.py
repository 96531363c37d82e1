"""The package index: which releases there are, and the archive of one. pip is not used: it would build an sdist.

https://peps.python.org/pep-0503/ (pages), https://peps.python.org/pep-0691/ (JSON), https://peps.python.org/pep-0700/
(dates and sizes).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from trainmedic.kb.errors import InvalidRequest, NotFound, SourceError
from trainmedic.kb.sources.archives import LARGEST_ARCHIVE, archive_requirements, archive_tree, file_release
from trainmedic.kb.sources.download import Client, local_path
from trainmedic.kb.sources.pip_configuration import PipConfiguration, pip_configuration
from trainmedic.kb.sources.selection import canonical, parsed, same_release
from trainmedic.kb.sources.tree import Release, SourceTree

_LARGEST_PAGE = 64 * 1024 * 1024
_LISTED_S = 600.0
"""How long the list of a package's files is believed."""
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One archive of a release. ``size`` is 0 if the index does not tell."""

    name: str
    url: str = field(repr=False)
    version: str
    is_wheel: bool
    sha256: str = ""
    size: int = 0
    released: str | None = None
    yanked: bool = False

    @property
    def rank(self) -> tuple[bool, bool, int, str]:
        """The best first: a wheel for all platforms, else whatever is smaller."""
        pure = self.name.endswith("-none-any.whl")
        return (not pure, not self.is_wheel and not self.size, self.size, self.name)


class Index:
    """The indexes of a configuration of pip, as one."""

    def __init__(self, configuration: PipConfiguration) -> None:
        self._configuration = configuration
        self._client = Client(configuration)
        self._listed: dict[str, tuple[float, tuple[File, ...]]] = {}

    def releases(self, package: str) -> Sequence[Release]:
        """All releases, newest last. Raises `NotFound` and `SourceError`."""
        files: dict[str, list[File]] = {}
        for file in self._files(package):
            files.setdefault(file.version, []).append(file)
        found = [
            Release(
                version=version,
                released=min((file.released for file in each if file.released), default=None),
                yanked=all(file.yanked for file in each),
            )
            for version, each in files.items()
        ]
        return sorted(found, key=lambda release: parsed(release.version))

    def fetch(self, package: str, version: str) -> SourceTree:
        """The code of a release, from its wheel or sdist. Raises `NotFound` and `SourceError`."""
        with self._archive(package, version) as (path, released):
            return archive_tree(path, released)

    def requirements(self, package: str, version: str) -> Sequence[str]:
        """The requirements of a release, from its wheel or sdist. Raises `NotFound` and `SourceError`."""
        with self._archive(package, version) as (path, _):
            return archive_requirements(path)

    @contextmanager
    def _archive(self, package: str, version: str) -> Iterator[tuple[Path, str | None]]:
        """The best archive of a release, and its day."""
        files = [file for file in self._files(package) if same_release(version, file.version)]
        if not files:
            known = [release.version for release in self.releases(package)]
            raise NotFound(f"{package} {version} is not published", hint=f"the newest release is {known[-1]}")
        fitting = sorted((file for file in files if file.size <= LARGEST_ARCHIVE), key=lambda file: file.rank)
        if not fitting:
            raise SourceError(f"every archive of {package} {version} is too large", hint="install it and read that")
        file = fitting[0]
        with TemporaryDirectory(prefix="trainmedic-") as folder:
            path = Path(folder) / file.name
            self._client.download(file.url, path, sha256=file.sha256, most=LARGEST_ARCHIVE)
            yield path, file.released

    def _files(self, package: str) -> Sequence[File]:
        package = canonical(package)
        asked, files = self._listed.get(package, (0.0, ()))
        if not files or time.monotonic() > asked + _LISTED_S:
            files = tuple({file.name: file for file in reversed(tuple(self._asked(package)))}.values())
            if not files:
                raise NotFound(f"no index has the package {package}", hint="check its name, and: pip config list")
            self._listed[package] = (time.monotonic(), files)
        return files

    def _asked(self, package: str) -> Iterator[File]:
        if not self._configuration.indexes and not self._configuration.find_links:
            raise SourceError(
                "no package index is known", hint="set index-url of pip: pip config set global.index-url URL"
            )
        for index in self._configuration.indexes:
            url = f"{index.rstrip('/')}/{package}/"
            with suppress(NotFound):
                page = self._client.get(url, accept=_ACCEPT, most=_LARGEST_PAGE)
                links = _json_links(page.content) if page.kind == _JSON else _html_links(page.content)
                yield from _files_of(package, page.url, links)
        for place in self._configuration.find_links:
            yield from _files_of(package, "", self._found(place))

    def _found(self, place: str) -> Iterator[dict[str, Any]]:
        """The archives in a folder, or on a page with links."""
        folder = local_path(place) if place.startswith("file:") else Path(place)
        if folder.is_dir():
            for path in sorted(folder.iterdir()):
                yield {"url": path.absolute().as_uri(), "filename": path.name}
        elif "://" in place:
            with suppress(NotFound):
                page = self._client.get(place, accept="text/html", most=_LARGEST_PAGE)
                yield from ({**link, "url": urljoin(page.url, link["url"])} for link in _html_links(page.content))


def _files_of(package: str, base: str, links: Iterable[Mapping[str, Any]]) -> Iterator[File]:
    """The archives of a package among links; what is neither wheel nor sdist is not a release of source."""
    for link in links:
        try:
            name = str(link["filename"])
            found, version, is_wheel = file_release(name)
            size = int(link.get("size") or 0)
        except (InvalidRequest, KeyError, ValueError, TypeError):
            continue
        if found == package and "/" not in name and "\\" not in name:
            hashes = link.get("hashes")
            yield File(
                name=name,
                url=urljoin(base, str(link["url"])),
                version=version,
                is_wheel=is_wheel,
                sha256=str(hashes.get("sha256", "")) if isinstance(hashes, dict) else "",
                size=size,
                released=str(link["upload-time"])[:10] if link.get("upload-time") else None,
                yanked=bool(link.get("yanked")),
            )


def _json_links(content: bytes) -> list[dict[str, Any]]:
    try:
        files = json.loads(content)["files"]
        return [file for file in files if isinstance(file, dict)]
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError("the index did not answer with a list of files", hint="check index-url") from error


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        url, fragment = urldefrag(given.get("href") or "")
        if tag != "a" or not url:
            return
        kind, _, digest = fragment.partition("=")
        self.found.append(
            {
                "url": url,
                "filename": unquote(urlsplit(url).path.rpartition("/")[2]),
                "hashes": {kind: digest},
                "yanked": "data-yanked" in given,
            }
        )


def _html_links(content: bytes) -> list[dict[str, Any]]:
    parser = _Links()
    parser.feed(content.decode("utf-8", "replace"))
    return parser.found


def index_of_pip() -> Index:
    """The index that pip is configured for on this machine."""
    return Index(pip_configuration())
