"""Package versions from lock files and machine-readable listings, recognised by their content.

TOML locks (``uv.lock``, ``poetry.lock``, ``pdm.lock``, ``pylock.toml``), conda's explicit lists and
``environment.yml``, and JSON (``pip list --format json``, ``pip inspect``, ``conda list --json``, ``Pipfile.lock``,
CycloneDX and SPDX bills of materials). The TOML and YAML files are scanned line by line: they are written by programs,
and a part of one, as pasted, is not a document. Everything else is read by `kb.parse.readers.versions`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.parse.readers.versions import MAX_FACTS, bounds, next_release, package, public
from trainmedic.kb.parse.source import Piece
from trainmedic.kb.versions import parse_version, version_key

Entry = tuple[str, str, int, int]
"""Name, version or requirement, and where both are."""
_TABLES = ("[[package]]", "[[packages]]")
_ARCHIVES = (".conda", ".tar.bz2")
_MOST_JSON = 20_000_000
_LISTS = ("installed", "components", "packages", "artifacts")
_PYTHON_KINDS = ("pkg:pypi/", "pkg:conda/")


def read(piece: Piece) -> tuple[VersionFact, ...]:
    """One fact per package; empty if the text is not a lock file. Several locked versions give a range."""
    facts: dict[str, VersionFact] = {}
    for name, version, start, end in _entries(piece.text):
        fact = _fact(piece, name, version, start, end)
        if fact is None or len(facts) >= MAX_FACTS:
            continue
        other = facts.get(fact.package)
        facts[fact.package] = fact if other is None else _joined(other, fact)
    return tuple(facts.values())


def _entries(text: str) -> Iterator[Entry]:
    head = text[:200].lstrip()
    if "[[package" in text:
        yield from _toml(text)
    elif "@EXPLICIT" in text:
        yield from _explicit(text)
    elif "dependencies:" in text and _is_environment(text):
        yield from _environment(text)
    elif head.startswith(("[", "{")) and '"version' in text and len(text) <= _MOST_JSON:
        yield from _json(text)


def _is_environment(text: str) -> bool:
    lines = {line.partition(":")[0] for line in text.split("\n")}
    return "dependencies" in lines and ("channels" in lines or any(line.strip() == "- pip" for line in lines))


def _toml(text: str) -> Iterator[Entry]:
    """Name and version of each ``[[package]]`` table, before its inner tables."""
    name = version = ""
    start = end = at = 0
    is_open = False
    for line in (*text.split("\n"), "["):
        if line.startswith("["):
            if is_open and name and version:
                yield name, version, start, end
            is_open = line.rstrip() in _TABLES
            name = version = ""
        elif is_open:
            key, _, value = line.partition(" = ")
            if key in ("name", "version") and value[:1] in "\"'":
                word = value.strip().strip("\"'")
                if key == "name":
                    name, start = word, at
                else:
                    version = word
                end = at + len(line.rstrip())
        at += len(line) + 1


def _explicit(text: str) -> Iterator[Entry]:
    """``https://…/linux-64/pytorch-2.4.0-py3.11_cuda.conda#md5``."""
    at = 0
    for line in text.split("\n"):
        archive = line.strip().partition("#")[0].rpartition("/")[2]
        if line.startswith(("http", "file:")) and archive.endswith(_ARCHIVES):
            parts = archive.rsplit("-", 2)
            if len(parts) == 3:
                start = at + line.index(archive)
                yield parts[0], parts[1], start, start + len(archive)
        at += len(line) + 1


def _environment(text: str) -> Iterator[Entry]:
    """``- pytorch=2.4.0=build`` of conda, ``- trl==0.12`` of its ``pip:`` list."""
    at = 0
    for line in text.split("\n"):
        item = line.strip().partition(" #")[0].rstrip()
        if item.startswith("- "):
            requirement = item[2:].strip().strip("\"'").rpartition("::")[2]
            cut = next((place for place, char in enumerate(requirement) if char in "=<>~! ["), len(requirement))
            name, rest = requirement[:cut], requirement[cut:].partition(";")[0]
            if rest.startswith("["):
                rest = rest.partition("]")[2]
            if name and (rest := rest.replace(" ", "")):
                start = at + line.index("- ") + 2
                yield name, rest, start, at + len(line.rstrip())
        at += len(line) + 1


def _json(text: str) -> Iterator[Entry]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return
    at = 0
    for name, version in _named(document):
        # In the order of the document, so each name is looked for behind the one before it.
        found = text.find(json.dumps(name, ensure_ascii=False), at)
        at = max(found, at)
        end = text.find("\n", at)
        yield name, version, at, min(at + len(name) + 2, end if end >= 0 else len(text))


def _named(document: Any) -> Iterator[tuple[str, str]]:
    if isinstance(document, dict) and "_meta" in document:  # Pipfile.lock
        for group in ("default", "develop"):
            for key, entry in _mapping(document.get(group)).items():
                pinned = _mapping(entry).get("version")
                if isinstance(pinned, str):
                    yield key, pinned
        return
    lists = [document] if isinstance(document, list) else [_mapping(document).get(key) for key in _LISTS]
    for entries in lists:
        for entry in entries if isinstance(entries, list) else ():
            item = _mapping(_mapping(entry).get("metadata")) or _mapping(entry)
            name, version = item.get("name"), item.get("version", item.get("versionInfo"))
            purl = item.get("purl", "")
            if isinstance(name, str) and isinstance(version, str) and (not purl or str(purl).startswith(_PYTHON_KINDS)):
                yield name, version


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _fact(piece: Piece, name: str, version: str, start: int, end: int) -> VersionFact | None:
    """A fact about one entry; None if it bounds nothing."""
    exact = low = high = None
    plain = public(version.removeprefix("===").removeprefix("==").removeprefix("="))
    plain = plain.partition("=")[0]  # conda's build
    number = plain.removesuffix(".*")
    if parse_version(number) is not None and version[:1] not in "<>~!":
        if (version.startswith("=") and not version.startswith("==") and plain.count(".") < 2) or number != plain:
            low, high = number, next_release(number)  # conda's ``=2.4`` is any 2.4
        else:
            exact = plain
    else:
        low, high = bounds(version)
    if exact is None and low is None and high is None:
        return None
    name = package(name)
    return VersionFact(
        package=name,
        exact=exact,
        reason=f"{name} {version} in a lock file",
        span=piece.span(start, end),
        low=low,
        high=high,
    )


def _joined(first: VersionFact, second: VersionFact) -> VersionFact:
    """Two entries of one package: locked for different platforms, so either may be installed."""
    if first.exact is not None and first.exact == second.exact:
        return first
    numbers = [number for fact in (first, second) for number in (fact.exact, fact.low, fact.high) if number is not None]
    low, high = min(numbers, key=version_key), max(numbers, key=version_key)
    reason = f"{first.package} {low} or {high} in a lock file"
    return VersionFact(package=first.package, exact=None, reason=reason, span=first.span, low=low, high=high)
