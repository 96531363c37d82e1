"""Which releases of a package came since the newest one that was read, and their source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmedic.ingest.update.history import PACKAGES, History
from trainmedic.kb.data_files import load_table
from trainmedic.kb.error_messages import packages
from trainmedic.kb.error_messages.index import load_index
from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.frameworks.tables import table
from trainmedic.kb.sources.checkout import checkout_tree
from trainmedic.kb.sources.options import FRAMEWORKS
from trainmedic.kb.sources.selection import canonical
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.tree import Release, SourceTree
from trainmedic.kb.versions import version_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """``after`` are the newer releases to read, the last of each minor version, lowest first."""

    package: str
    before: Release
    after: tuple[Release, ...]


def catalogues(package: str) -> tuple[str, ...]:
    """The frameworks whose options are read from a package."""
    return tuple(name for name in FRAMEWORKS if home(name) == package)


def home(framework: str) -> str:
    """The package that declares a framework's options: for those of a class, the library that has the class."""
    profile = profiles()[framework]
    return profile.declared_in or profile.package


def known_packages() -> tuple[str, ...]:
    """All of which options or messages are committed."""
    return tuple(dict.fromkeys((*packages.names(), *map(home, FRAMEWORKS))))


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """The packages of these names, all if there are none. Raises `InvalidRequest`."""
    known, wanted = known_packages(), tuple(map(canonical, names))
    for name in wanted:
        if name not in known:
            raise InvalidRequest(f"no data is committed for {name}", hint=f"one of: {', '.join(sorted(known))}")
    return wanted or known


def newest_read(package: str) -> str:
    """The newest release of which everything that is committed knows; else the one that a catalogue begins with."""
    found = [known.versions[-1] for name in catalogues(package) if (known := table(name)) is not None]
    found.extend(indexed(package)[-1:])
    begins = (profiles()[name].begins for name in catalogues(package))
    return min(found, key=version_key) if found else next(filter(None, begins), "")


def indexed(package: str) -> Sequence[str]:
    """The releases whose messages are committed, lowest first."""
    return next((known.releases for known in load_index().tables if known.package == package), ())


class Published:
    """The releases of packages: of the index, or of the tags of checkouts where the index does not have them."""

    def __init__(self, sources: Sources, checkouts: Collection[Path] = ()) -> None:
        self.sources = sources
        histories = [History(folder) for folder in checkouts]
        for history in histories:
            if not history.releases:
                raise InvalidRequest(f"{history.checkout} has no releases", hint="clone all of it, with its tags")
        self.histories = {history.package: history for history in histories}

    def step(self, package: str, since: str = "") -> Step:
        """Releases since the newest that was read, or since a day. Raises `NotFound` if its releases are not known."""
        releases = self.releases(package)
        read = newest_read(package) or releases[0].version
        before = next((each for each in releases if each.version == read), Release(version=read))
        if since:
            before = next((each for each in reversed(releases) if (each.released or since) < since), before)
        newer = [each for each in releases if version_key(each.version) > version_key(before.version)]
        series = {version_key(each.version).release[:2]: each for each in newer}
        return Step(package=package, before=before, after=tuple(series.values()))

    def releases(self, package: str) -> Sequence[Release]:
        """The final releases, lowest first."""
        if load_table(PACKAGES).get(package, {}).get("published", True):
            return self.sources.published(package)
        if package not in self.histories:
            raise NotFound(
                f"{package} is not on the package index", hint=f"--checkout FOLDER: a git checkout of {package}"
            )
        return [Release(version=version) for version, _ in self.histories[package].releases]

    def tree(self, package: str, version: str) -> SourceTree:
        """The source of a release as it was published, which is stored."""
        try:
            return self.sources.store.open(package, version)
        except NotFound:
            if load_table(PACKAGES).get(package, {}).get("published", True):
                return self.sources.fetch(package, version)
        history = self.histories[package]
        return self.sources.store.add(
            checkout_tree(history.checkout, dict(history.releases)[version], package, version)
        )
