"""The source of one release of a package, as text.

`Sources` looks at what is installed before what is stored: what runs here counts more than a copy of what was
published.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trainmedic.kb.errors import NotFound
from trainmedic.kb.suggest import closest
from trainmedic.kb.versions import version_key

Origin = Literal["installed", "wheel", "sdist", "checkout", "bundle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTree:
    """``package`` is the canonical name of the distribution, ``released`` a date (ISO) if the origin knows it.

    ``files`` gives each path's SHA-256, ``read`` a file's bytes. Equal digests are equal trees, whatever the origin.
    """

    package: str
    version: str
    origin: Origin
    digest: str
    released: str | None
    files: Mapping[str, str] = field(repr=False, compare=False)
    read: Callable[[str], bytes] = field(repr=False, compare=False)

    def paths(self) -> Sequence[str]:
        """Sorted and as imported, such as ``trl/trainer/grpo_config.py``."""
        return tuple(self.files)

    def text(self, path: str) -> str:
        """Raises `NotFound`."""
        if path not in self.files:
            near = closest(path, self.paths())
            raise NotFound(
                f"{self.package} {self.version} has no file {path}", hint=f"did you mean {near}?" if near else None
            )
        return self.read(path).decode("utf-8-sig", "replace")

    def __contains__(self, path: object) -> bool:
        return path in self.files


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A published release. ``released`` is the date (ISO) of its first file, if the index tells."""

    version: str
    released: str | None = None
    yanked: bool = False

    @property
    def prerelease(self) -> bool:
        return version_key(self.version).is_prerelease


def tree_digest(files: Mapping[str, str]) -> str:
    """One digest of sorted paths and the digests of their contents."""
    return hashlib.sha256("".join(f"{files[path]} {path}\n" for path in sorted(files)).encode()).hexdigest()


def tree_of(
    package: str, version: str, origin: Origin, contents: Mapping[str, bytes], released: str | None = None
) -> SourceTree:
    """A tree whose files are in memory."""
    files = {path: hashlib.sha256(contents[path]).hexdigest() for path in sorted(contents)}
    return SourceTree(
        package=package,
        version=version,
        origin=origin,
        digest=tree_digest(files),
        released=released,
        files=files,
        read=contents.__getitem__,
    )
