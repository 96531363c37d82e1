"""Which files of a package are training code, and what they are called once it is installed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from posixpath import splitext

from packaging.version import InvalidVersion, Version

from trainmedic.kb.errors import InvalidRequest, SourceError
from trainmedic.kb.lazy import regex

MEBIBYTE = 1024 * 1024
_CODE = 4 * MEBIBYTE
_CONFIGURATION = MEBIBYTE // 2
LARGEST: Mapping[str, int] = {
    ".py": _CODE,
    **dict.fromkeys((".yaml", ".yml", ".json", ".toml", ".jinja", ".jinja2", ".j2"), _CONFIGURATION),
}
"""The suffixes that are read, each with the size of its largest file; larger ones are data."""
MOST_FILES = 30_000
MOST_BYTES = 256 * MEBIBYTE
"""Of one release, as selected and unpacked."""
_DEEPEST = 40
_LONGEST = 400
_NEVER = frozenset({"tests", "test", "__pycache__", "node_modules", "site-packages"})
"""Folders that are left out wherever they are."""
_NOT_AT_TOP = frozenset(
    {
        *("docs", "doc", "examples", "example", "benchmark", "benchmarks", "scripts", "tools", "docker", "assets"),
        *("csrc", "ci", "build", "dist", "requirements", "third_party", "recipe", "recipes", "notebooks"),
    }
)
_BUILD_MODULES = frozenset({"setup.py", "conftest.py", "noxfile.py", "tasks.py", "versioneer.py"})
_NAME = regex(r"[A-Z0-9]|[A-Z0-9][A-Z0-9._-]{0,98}[A-Z0-9]", re.IGNORECASE | re.ASCII)
_DASHES = regex(r"[-_.]+")
_ZEROS = regex(r"(?:\.0)+\Z")
_DATA_FOLDER = regex(r"[^/]+\.data/(?:purelib|platlib)/")
"""Where a wheel may keep what is installed like its other files."""


def suffix_of(path: str) -> str:
    """As `PurePath.suffix`, which takes a millisecond for a hundred files."""
    return splitext(path)[1]


def canonical(package: str) -> str:
    """A distribution's one name. Raises `InvalidRequest`."""
    # packaging.utils would do, but loading it takes longer than reading an installed package.
    if not _NAME.fullmatch(package):
        raise InvalidRequest(f"{package!r:.80} is not the name of a package", hint="as pip list shows it")
    return _DASHES.sub("-", package).lower()


def parsed(version: str) -> Version:
    """Raises `InvalidRequest`."""
    try:
        return Version(version)
    except InvalidVersion:
        raise InvalidRequest(f"{version!r} is not a version", hint="such as 1.16.0") from None


def release_key(version: str) -> str:
    """One spelling of a version: ``1.16`` is ``1.16.0``."""
    found = parsed(version)
    release = ".".join(map(str, found.release))
    return str(found).replace(release, _ZEROS.sub("", release), 1)


def same_release(wanted: str, found: str) -> bool:
    """Whether ``found`` is the release ``wanted``; a build (``+cu121``) only counts if it was asked for."""
    mine, other = parsed(wanted), parsed(found)
    return mine == other or (mine.local is None and mine.public == other.public)


def checked_name(name: str) -> str:
    """The name of an archive's member. Raises `SourceError` for one that points out of the archive."""
    parts = name.split("/")
    bad = name.startswith("/") or "\\" in name or ":" in parts[0] or ".." in parts
    if bad or any(ord(letter) < 32 for letter in name):
        raise SourceError(f"the archive has a member {name!r:.120}, which points out of it", hint=UNSAFE)
    if len(parts) > _DEEPEST or len(name) > _LONGEST:
        raise SourceError(f"the archive has a member with too long a name: {name!r:.120}", hint=UNSAFE)
    return name.removeprefix("./")


UNSAFE = "no published package looks like this; get the file from its publisher again"


def in_wheel(names: Iterable[str]) -> dict[str, str]:
    """The code of a wheel: path as installed → name of the member."""
    found: dict[str, str] = {}
    for name in names:
        data = _DATA_FOLDER.match(name)
        _place(found, name[data.end() :] if data else name, name)
    return _packages(found)


def in_project(names: Collection[str], top: str = "", roots: Collection[str] = ()) -> dict[str, str]:
    """The code of an sdist or checkout below the folder ``top``: path as installed → name of the member.

    ``roots``: what is installed of it, if it says so.
    """
    inner = f"{top}src/"
    has_src = f"{inner}__init__.py" not in names and any(
        name.startswith(inner) and name.endswith(".py") for name in names
    )
    found: dict[str, str] = {}
    for name in names:
        if name.startswith(top):
            _place(found, name.removeprefix(inner if has_src and name.startswith(inner) else top), name)
    chosen = _packages(found)
    wanted = {path: name for path, name in chosen.items() if path.split("/")[0].removesuffix(".py") in roots}
    if has_src and not wanted:
        wanted = {path: name for path, name in chosen.items() if name.startswith(inner)}
    return wanted or chosen


def _place(found: dict[str, str], path: str, name: str) -> None:
    if suffix_of(path) not in LARGEST:
        return
    parts = path.split("/")
    if any(part in _NEVER or part.startswith(".") or part.endswith((".dist-info", ".data")) for part in parts[:-1]):
        return
    if len(parts) == 1 and (parts[0] in _BUILD_MODULES or not path.endswith(".py")):
        return
    if len(parts) > 1 and parts[0] in _NOT_AT_TOP:
        return
    if path in found:
        raise SourceError(f"the archive has {path} twice", hint=UNSAFE)
    found[path] = name


def _packages(found: Mapping[str, str]) -> dict[str, str]:
    """Without top folders that hold no code."""
    code = {path.split("/")[0] for path in found if path.endswith(".py")}
    return {path: found[path] for path in sorted(found) if path.split("/")[0] in code}


class Budget:
    """The rest of what may be read of one release."""

    def __init__(self) -> None:
        self._files, self._bytes = MOST_FILES, MOST_BYTES

    def take(self, size: int) -> None:
        """Raises `SourceError` once a release has too much."""
        self._files, self._bytes = self._files - 1, self._bytes - size
        if self._files < 0 or self._bytes < 0:
            raise SourceError(
                f"the package has more than {MOST_FILES} files or {MOST_BYTES // MEBIBYTE} MiB of code",
                hint="it is not read; that is far above any package that trains models",
            )
