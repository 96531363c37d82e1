"""The code of installed packages, found through their ``*.dist-info`` as text. No interpreter is started."""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from trainmedic.kb.errors import InvalidRequest, SourceError
from trainmedic.kb.sources.selection import LARGEST, Budget, canonical, in_project, in_wheel, parsed, suffix_of
from trainmedic.kb.sources.tree import SourceTree, tree_digest

_LARGEST_TABLE = 32 * 1024 * 1024
_PLACES = ("lib/python3*/site-packages", "lib/python3*/dist-packages", "Lib/site-packages")
_MOST_LINES = 1000
"""Of a ``.pth`` file."""


@dataclass(frozen=True, slots=True)
class Installed:
    """One installed distribution."""

    package: str
    version: str
    folder: Path = field(repr=False)

    @property
    def is_of_index(self) -> bool:
        """Whether it came from a package index, not from a folder or repository: https://peps.python.org/pep-0610/"""
        return not (self.folder / "direct_url.json").is_file()

    def tree(self) -> SourceTree | None:
        """Its code; None if it has none that can be found."""
        if not self.folder.is_dir():  # removed, or replaced by another release
            return None
        opened = time.time_ns()
        project = self._project()
        files = self._editable(project) if project else self._recorded() or self._listed()
        digests = {path: digest or _digest(file) for path, (file, digest) in sorted(files.items())}
        if not digests:
            return None
        return SourceTree(
            package=self.package,
            version=self.version,
            origin="installed",
            digest=tree_digest(digests),
            released=None,
            files=digests,
            read=lambda path: self._unchanged(files[path][0], digests[path], opened),
        )

    def _unchanged(self, file: str, digest: str, opened: int) -> bytes:
        """A file's content, unless it changed since its tree was opened: what is derived is kept under the digest.

        A digest may also differ because RECORD is wrong, which no installer checks.
        """
        content = _content(file)
        same = hashlib.sha256(content).hexdigest() == digest
        if not same and (os.stat(file).st_mtime_ns > opened or not self.folder.is_dir()):
            raise SourceError(f"{file} was changed just now", hint="try again")
        return content

    def _recorded(self) -> dict[str, tuple[str, str]]:
        """The files of RECORD. Its digest of a file is used unless the file was changed since."""
        record = self.folder / "RECORD"
        rows = {row[0]: row for row in csv.reader(_text(record).splitlines()) if len(row) == 3}
        below = self.folder.parent
        chosen = in_wheel(name for name in rows if ".." not in name.split("/") and not name.startswith("/"))
        written = record.stat().st_mtime_ns if chosen else 0
        found: dict[str, tuple[str, str]] = {}
        for path, file, state in _bounded((path, f"{below}/{name}") for path, name in chosen.items()):
            _, stated, size = rows[chosen[path]]
            same = stated.startswith("sha256=") and str(state.st_size) == size and state.st_mtime_ns <= written
            found[path] = (file, _hexadecimal(stated) if same else "")
        return found

    def _listed(self) -> dict[str, tuple[str, str]]:
        """The packages of ``top_level.txt``, where a packager left RECORD out."""
        tops = _text(self.folder / "top_level.txt").split() or [self.package.replace("-", "_")]
        below = self.folder.parent
        mapping = {top: below / top for top in tops if top.isidentifier()}
        return _mapped(mapping)

    def _project(self) -> Path | None:
        """The folder that is installed to be edited, if it is."""
        origin = _json(self.folder / "direct_url.json")
        about = origin.get("dir_info")
        editable = isinstance(about, dict) and about.get("editable")
        return _folder(str(origin.get("url", ""))) if editable else None

    def _editable(self, project: Path) -> dict[str, tuple[str, str]]:
        """The code where an editable installation says it is."""
        rows = [row[0] for row in csv.reader(_text(self.folder / "RECORD").splitlines()) if row]
        mapping: dict[str, Path] = {}
        for name in rows:
            if name.startswith("__editable__") and name.endswith("_finder.py"):
                mapping |= _finder_mapping(_text(self.folder.parent / name))
        if mapping:
            return _mapped(mapping)
        folders = [project]
        for name in rows:
            if name.endswith(".pth") and "/" not in name:
                folders = [folder for folder in pth_folders(self.folder.parent / name)] or folders
        tops = frozenset(_text(self.folder / "top_level.txt").split())
        names = {name: f"{folder}/{name}" for folder in folders for name in _walk(folder)}
        chosen = in_project(names, roots=tops)
        return _changing((path, names[name]) for path, name in chosen.items())


def distributions(search: Iterable[Path]) -> Iterator[Installed]:
    """The installed distributions; the first on the path hides later ones, as for Python."""
    seen: set[str] = set()
    for folder in search:
        try:
            names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".dist-info"))
        except OSError:
            continue
        for name in names:
            package, _, version = name.removesuffix(".dist-info").rpartition("-")
            try:
                package, version = canonical(package), str(parsed(version))
            except InvalidRequest:
                continue
            if package not in seen:
                seen.add(package)
                yield Installed(package, version, folder / name)


def site_packages(interpreter: Path) -> tuple[Path, ...]:
    """Where an interpreter (or the folder of its environment) has its packages, told from files alone."""
    prefix = interpreter if interpreter.is_dir() else interpreter.parent.parent
    prefixes = [prefix]
    for line in _text(prefix / "pyvenv.cfg").splitlines():
        key, _, value = (part.strip() for part in line.partition("="))
        if key == "home":
            home = Path(value).parent
        elif key == "include-system-site-packages" and value.lower() == "true":
            prefixes.append(home)
    found: list[Path] = []
    for each in prefixes:
        for pattern in _PLACES:
            found += sorted(each.glob(pattern))
    for folder in tuple(found):
        for pth in sorted(folder.glob("*.pth")):
            found += pth_folders(pth)
    return tuple(dict.fromkeys(found))


def pth_folders(path: Path) -> list[Path]:
    """The folders that a ``.pth`` file adds; its lines of code are not run."""
    lines = (line.strip() for line in _text(path).splitlines()[:_MOST_LINES])
    folders = (path.parent / line for line in lines if line and not line.startswith(("#", "import ", "import\t")))
    return [folder for folder in folders if folder.is_dir()]


def _folder(url: str) -> Path:
    """The folder of a file: address. `urllib.request` would tell, and takes longest of all to load."""
    path = unquote(urlsplit(url).path)
    return Path(path.lstrip("/") if os.name == "nt" else path)


def _finder_mapping(text: str) -> dict[str, Path]:
    """The table of the finder that setuptools writes for an editable installation."""
    try:
        for node in ast.parse(text).body:
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "MAPPING" and node.value:
                table = ast.literal_eval(node.value)
                return {str(name).replace(".", "/"): Path(str(folder)) for name, folder in table.items()}
    except (SyntaxError, ValueError, AttributeError, RecursionError):
        pass
    return {}


def _mapped(mapping: Mapping[str, Path]) -> dict[str, tuple[str, str]]:
    """The code of packages and modules by where each is."""
    names: dict[str, str] = {}
    for top, place in mapping.items():
        if place.is_dir():
            names |= {f"{top}/{name}": f"{place}/{name}" for name in _walk(place)}
        elif place.with_suffix(".py").is_file():
            names[f"{top}.py"] = str(place.with_suffix(".py"))
    chosen = in_wheel(names)
    return _changing((path, names[name]) for path, name in chosen.items())


def _changing(files: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Files whose digests no one keeps."""
    return {path: (file, "") for path, file, _ in _bounded(files)}


def _walk(folder: Path) -> Iterator[str]:
    """The files below a folder that may be code, without following links to folders."""
    for here, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith(".") and name != "node_modules")
        start = Path(here).relative_to(folder)
        yield from ((start / name).as_posix() for name in sorted(names) if suffix_of(name) in LARGEST)


def _bounded(files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str, os.stat_result]]:
    """The files that exist and are not too large."""
    budget = Budget()
    for path, file in files:
        try:
            state = os.stat(file)
        except OSError:
            continue
        if stat.S_ISREG(state.st_mode) and state.st_size <= LARGEST[suffix_of(file)]:
            budget.take(state.st_size)
            yield path, file, state


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as stream:
            return stream.read(LARGEST[suffix_of(file)])
    except OSError as error:
        raise SourceError(f"{file} cannot be read ({error.strerror})", hint="install the package again") from error


def _digest(file: str) -> str:
    return hashlib.sha256(_content(file)).hexdigest()


def _hexadecimal(stated: str) -> str:
    """RECORD's spelling of a digest in hexadecimal digits; empty if it is none."""
    try:
        digest = base64.urlsafe_b64decode(stated.removeprefix("sha256=") + "=").hex()
    except ValueError:
        return ""
    return digest if len(digest) == 64 else ""


def _text(path: Path) -> str:
    """A small file's text; empty without one."""
    try:
        with path.open("rb") as stream:
            return stream.read(_LARGEST_TABLE).decode("utf-8", "replace")
    except OSError:
        return ""


def _json(path: Path) -> dict[str, object]:
    try:
        found = json.loads(_text(path) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
