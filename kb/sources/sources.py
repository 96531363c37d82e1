"""Where the source of a release comes from: what is installed, what is stored, or the package index."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, get_args

from trainmedic.kb.data_files import load_table
from trainmedic.kb.errors import Forbidden, InvalidRequest, NotFound, SourceError
from trainmedic.kb.sources.arrivals import Arrivals
from trainmedic.kb.sources.installed import Installed, distributions, site_packages
from trainmedic.kb.sources.selection import canonical, parsed, same_release
from trainmedic.kb.sources.store import Store
from trainmedic.kb.sources.tree import Release, SourceTree

Mode = Literal["installed", "index", "off"]
"""The source that may be read: packages of this machine, also those of the index, or only what is stored."""
MODES: Mapping[str, Mode] = {mode: mode for mode in get_args(Mode)}
_ALLOW = "TRAINMEDIC_SOURCES=index"
ROOM = 2 * 1024**3
"""Bytes of the store up to which releases are fetched on demand."""


class Published(Protocol):
    """A package index."""

    def releases(self, package: str) -> Sequence[Release]:
        """All releases, newest last."""
        ...

    def fetch(self, package: str, version: str) -> SourceTree:
        """The code of one."""
        ...

    def requirements(self, package: str, version: str) -> Sequence[str]:
        """The requirements of a release, its extras included."""
        ...


class Sources:
    """The source of releases.

    ``index`` is only called for what may be fetched: what asks an index takes long to load. ``environments``, folders
    or interpreters, are looked at before the one that runs this. Of what is fetched on demand, a caller waits
    ``wait_s`` for a release, and the least recently used goes when the store has more than ``room`` bytes.
    """

    def __init__(
        self,
        folder: Path,
        mode: Mode = "installed",
        *,
        index: Callable[[], Published] | None = None,
        environments: Sequence[Path] = (),
        wait_s: float | None = None,
        room: int = ROOM,
    ) -> None:
        self.store = Store(folder)
        self._room = room
        self._arrivals = Arrivals(self._on_demand, wait_s)
        self.mode = mode
        self._index = index
        self._environments = environments

    @cached_property
    def installed(self) -> Mapping[str, Sequence[Installed]]:
        """The packages of the environments, by name; without other projects under the names of those we know."""
        found: dict[str, list[Installed]] = {}
        if self.mode != "off":
            places = [site_packages(environment) for environment in self._environments]
            for search in (*places, tuple(map(Path, filter(None, sys.path)))):
                for each in distributions(search):
                    if is_published(each.package) or not each.is_of_index:
                        found.setdefault(each.package, []).append(each)
        return found

    @cached_property
    def index(self) -> Published:
        if self._index is None:
            raise SourceError("no package index is asked here", hint="trainmedic kb sources fetch PACKAGE==VERSION")
        return self._index()

    def open(self, package: str, version: str) -> SourceTree:
        """The source of a release. Raises `NotFound`, and `SourceError` if it cannot be had."""
        package, wanted = canonical(package), parsed(version)
        for here in self.installed.get(package, ()):
            tree = here.tree() if same_release(version, here.version) else None
            if tree:
                return tree
        try:
            return self.store.open(package, version)
        except NotFound:
            if self.mode != "index":
                hint = f"trainmedic kb sources fetch {package}=={wanted} stores it; {_ALLOW} fetches what is missing"
                raise NotFound(f"the source of {package} {wanted} is not here", hint=hint) from None
        return self._arrivals.wait(package, str(wanted))

    def order(self, package: str, version: str) -> None:
        """Begin to fetch a release if `open` would; what is wrong with that, `open` says."""
        with suppress(SourceError, InvalidRequest):
            if self.mode == "index" and not self.has(package, version):
                self._arrivals.order(canonical(package), str(parsed(version)))

    def has(self, package: str, version: str) -> bool:
        """Whether a release is installed or stored."""
        here = self.installed.get(canonical(package), ())
        return any(same_release(version, each.version) for each in here) or self.store.has(package, version)

    def _on_demand(self, package: str, version: str) -> SourceTree:
        if not self.store.trim(self._room):
            raise SourceError("the store of sources is full", hint="raise TRAINMEDIC_SOURCES_MIB, or try again later")
        tree = self.fetch(package, version)
        self.store.trim(self._room)
        return tree

    def fetch(self, package: str, version: str) -> SourceTree:
        """Store the source of a release from the index, as its user asks for. Raises `Forbidden` if that is off."""
        self._ask_index(package)
        return self.store.add(self.index.fetch(package, version))

    def at_hand(self) -> tuple[Path, Mode, tuple[Path, ...]]:
        """Arguments of `Sources` for a process that fetches nothing."""
        return self.store.folder, "off" if self.mode == "off" else "installed", tuple(self._environments)

    def here(self, package: str) -> SourceTree:
        """The installed release of a package. Raises `NotFound`."""
        for found in self.installed.get(canonical(package), ()):
            if tree := found.tree():
                return tree
        raise NotFound(f"{package} is not installed here", hint="activate the environment that has it")

    def newest(self, package: str) -> str:
        """The newest published release that is neither a pre-release nor withdrawn. Raises `NotFound`."""
        usable = self.published(package)
        if not usable:
            raise NotFound(f"{package} has no final release", hint=f"name one: {package}==VERSION")
        return usable[-1].version

    def published(self, package: str) -> Sequence[Release]:
        """The releases of the index that are neither pre-releases nor withdrawn, newest last. Raises `NotFound`."""
        self._ask_index(package)
        return [each for each in self.index.releases(package) if not each.yanked and not each.prerelease]

    def requirements(self, package: str, version: str) -> Sequence[str]:
        """The requirements of a published release, its extras included. Raises `NotFound` and `SourceError`."""
        self._ask_index(package)
        return self.index.requirements(package, version)

    def _ask_index(self, package: str) -> None:
        """Raises `Forbidden` where nothing may be fetched, whoever asks; `NotFound` if the index cannot have it."""
        if self.mode == "off":
            raise Forbidden("sources are off, so nothing is fetched", hint=f"{_ALLOW}, or import a bundle")
        if not is_published(package):
            hint = "trainmedic kb sources fetch PACKAGE==VERSION --checkout FOLDER --tag TAG"
            raise NotFound(f"{package} is not published: the index has another package under this name", hint=hint)


def is_published(package: str) -> bool:
    """Whether the project that is known by this name is the one that the package index has."""
    published: bool = load_table("defects/packages.toml").get(canonical(package), {}).get("published", True)
    return published
