"""The history of one package in a local checkout: its releases, and the first release that contains a commit.

The checkout may be bare and is only read. Nothing of it is imported or run.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trainmedic.kb.data_files import load_table
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.lazy import regex
from trainmedic.kb.versions import parse_version, version_key

_PULL = regex(r"\(#(\d+)\)")
_VERSION = regex(r"""^__version__\s*=\s*["']([^"']+)["']""", re.MULTILINE)
_RANGE = regex(r"^@@ -(\d+)(?:,(\d+))? ")
UNRELEASED = ""
PACKAGES = "defects/packages.toml"


def package_of(checkout: Path) -> str:
    """The package that a checkout belongs to, by its folder's name. Raises `InvalidRequest`."""
    names = [re.split(r"[+/]", part)[-1] for part in reversed(checkout.resolve().parts)]
    for name in names[:2]:
        for package, entry in load_table(PACKAGES).items():
            if name.removesuffix(".git") in (package, *entry["checkouts"]):
                return package
    raise InvalidRequest(
        f"{checkout}: no package is known by this name", hint=f"one of: {', '.join(sorted(load_table(PACKAGES)))}"
    )


@dataclass(frozen=True, slots=True)
class Hunk:
    """A changed stretch of one file: where it was before the commit, and the lines that it removed and added."""

    path: str
    start: int
    length: int
    removed: tuple[tuple[int, str], ...]
    added: tuple[str, ...]


class History:
    """One package's commits and releases."""

    def __init__(self, checkout: Path, package: str | None = None) -> None:
        self.checkout = checkout
        self.package = package or package_of(checkout)
        self.entry = load_table(PACKAGES)[self.package]

    def git(self, *arguments: str) -> str:
        """The output of a git command; empty if it fails."""
        command = ["git", "-C", str(self.checkout), *arguments]
        return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False).stdout

    @cached_property
    def releases(self) -> tuple[tuple[str, str], ...]:
        """(version, commit or tag) of every final release, lowest version first."""
        if "version_file" in self.entry:
            return tuple(self._raised_versions())
        before, _, after = self.entry["tags"].partition("{version}")
        found = {}
        for tag in self.git("tag").split():
            if tag.startswith(before) and tag.endswith(after):
                text = tag[len(before) : len(tag) - len(after) or None]
                version = parse_version(text) if text[:1].isdigit() else None
                if version is not None and not version.is_prerelease:
                    found[str(version)] = tag
        return tuple((version, found[version]) for version in sorted(found, key=version_key))

    def _raised_versions(self) -> Iterator[tuple[str, str]]:
        path = self.entry["version_file"]
        commits = self.git("log", "--reverse", "--format=%H", "-G", "^__version__", "--", path).split()
        raised: dict[str, str] = {}
        for commit in commits:
            match = _VERSION.search(self.git("show", f"{commit}:{path}"))
            if match and parse_version(match[1]) is not None:
                raised.setdefault(match[1], commit)
        yield from sorted(raised.items(), key=lambda item: version_key(item[0]))

    @cached_property
    def _first(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Commit → lowest release with it; pull request → lowest release with a commit of it (a cherry-pick too)."""
        commits: dict[str, str] = {}
        pulls: dict[str, str] = {}
        earlier: list[str] = []
        for version, tag in self.releases:
            for line in self.git("log", "--format=%H %s", tag, "--not", *earlier).splitlines():
                commit, _, subject = line.partition(" ")
                commits.setdefault(commit, version)
                if (pull := pull_of(subject)) is not None:
                    pulls.setdefault(pull, version)
            earlier.append(tag)
        return commits, pulls

    def release_of(self, commit: str, subject: str = "") -> str:
        """The lowest release that contains a commit or another commit of its pull request; `UNRELEASED` if none."""
        commits, pulls = self._first
        found = [commits.get(commit), pulls.get(pull_of(subject) or "")]
        return min((version for version in found if version), key=version_key, default=UNRELEASED)

    def hunks(self, commit: str) -> tuple[Hunk, ...]:
        """The changes of a commit to the package's code."""
        text = self.git(
            "show",
            "--format=",
            "--unified=0",
            "--no-renames",
            "-w",
            "--first-parent",
            commit,
            "--",
            *self.entry["code"],
        )
        return tuple(hunks(text))

    def introduced(self, commit: str, changes: tuple[Hunk, ...], fixed: str) -> tuple[str, str]:
        """(release, how) of the defect that a commit repairs.

        By blame of the removed lines: all of them exist from the latest of their releases on. Where nothing was
        removed, the lines around the insertion bound it from below (``how`` is then ``around``). ("", "unknown") if
        neither can be told, ("", "never released") if what was removed first appears in the release that repairs it.
        """
        removed = [hunk for hunk in changes if any(_is_code(line) for _, line in hunk.removed)]
        how = "removed" if removed else "around"
        blamed: set[str] = set()
        unreleased = False
        for hunk in (removed or changes)[:12]:
            if how == "removed":
                numbers = [number for number, line in hunk.removed if _is_code(line)]
                ranges = [f"{number},{number}" for number in numbers[:40]]
            else:
                ranges = [f"{max(1, hunk.start)},+1"] if hunk.start else []
            if not ranges:
                continue
            options = [part for item in ranges for part in ("-L", item)]
            lines = self.git("blame", "-w", "-s", "-l", "--root", *options, f"{commit}^", "--", hunk.path)
            for line in lines.splitlines():
                origin = line.split(" ", 1)[0].lstrip("^")
                subject = self._subjects.get(origin, "")
                release = self.release_of(origin, subject)
                unreleased = unreleased or not release
                if release:
                    blamed.add(release)
        if not blamed:
            return ("", "never released" if unreleased and how == "removed" else "unknown")
        latest = max(blamed, key=version_key)
        if unreleased or (fixed and version_key(latest) >= version_key(fixed)):
            shipped = any(not fixed or version_key(release) < version_key(fixed) for release in blamed)
            # A part of the lines had shipped, another part had not: when it began is open.
            return ("", "unknown") if shipped else ("", "never released")
        return latest, how

    @cached_property
    def _subjects(self) -> Mapping[str, str]:
        lines = self.git("log", "--all", "--format=%H %s").splitlines()
        return {line[:40]: line[41:] for line in lines}


def pull_of(subject: str) -> str | None:
    """The pull request that a commit's subject names last: ``Fix the mask (#4140)`` → ``4140``."""
    numbers = _PULL.findall(subject)
    return numbers[-1] if numbers else None


def hunks(diff: str) -> Iterator[Hunk]:
    """The hunks of a unified diff without context."""
    path, start, length = "", 0, 0
    removed: list[tuple[int, str]] = []
    added: list[str] = []
    number = 0
    is_open = False
    for line in diff.splitlines():
        if line.startswith("diff --git") or line.startswith("@@"):
            if is_open:
                yield Hunk(path, start, length, tuple(removed), tuple(added))
            removed, added, is_open = [], [], False
        if line.startswith("--- "):
            path = line[4:].removeprefix("a/")
        elif match := _RANGE.match(line):
            start, length = int(match[1]), int(match[2] or 1)
            number, is_open = start, path != "/dev/null"
        elif is_open and line.startswith("-"):
            removed.append((number, line[1:]))
            number += 1
        elif is_open and line.startswith("+") and not line.startswith("+++ "):
            added.append(line[1:])
    if is_open:
        yield Hunk(path, start, length, tuple(removed), tuple(added))


def _is_code(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and not bare.startswith(("#", "//", '"""', "import ", "from "))
