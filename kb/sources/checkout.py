"""The code of a tag or commit of a git repository, bare or not. Nothing is checked out and nothing is fetched."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from trainmedic.kb.errors import InvalidRequest, SourceError
from trainmedic.kb.lazy import regex
from trainmedic.kb.sources.selection import LARGEST, Budget, canonical, checked_name, in_project, parsed, suffix_of
from trainmedic.kb.sources.tree import SourceTree, tree_of

# A repository may be set up to run programs: monitors, and the transport of a partial clone.
_QUIET = ("-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "--no-optional-locks", "--no-replace-objects")
_COMMITTER = regex(rb"^committer .* (\d{1,11}) [+-]\d{4}$", re.MULTILINE)
_LONGEST_S = 120
_ABSENT = 1 << 62
"""The size of what a partial clone has not got: it counts as too large, unless it is code."""
_REGULAR = ("100644", "100755")


def checkout_tree(folder: Path, tag: str, package: str, version: str, *, below: str = "") -> SourceTree:
    """The code of a release. ``below`` is the folder of the project in the repository.

    Raises `InvalidRequest` if there is no such tag, and `SourceError`.
    """
    commit = _git(folder, "rev-parse", "--verify", "--end-of-options", f"{tag}^{{commit}}").decode().strip()
    sizes: dict[str, tuple[str, int]] = {}
    for line in _git(folder, "ls-tree", "-r", "-l", "-z", commit).decode("utf-8", "replace").split("\0"):
        about, _, name = line.partition("\t")
        if about.startswith(_REGULAR):
            _, _, blob, bytes_ = about.split()
            sizes[checked_name(name)] = (blob, int(bytes_) if bytes_.isdigit() else _ABSENT)
    top = f"{below.strip('/')}/" if below else ""
    chosen, budget = {}, Budget()
    for path, name in in_project(sizes, top).items():
        blob, size = sizes[name]
        if size == _ABSENT and path.endswith(".py"):
            raise SourceError(f"{folder} lacks {name} of {tag}", hint="it is a partial clone: clone all of it")
        if size <= LARGEST[suffix_of(path)]:
            budget.take(size)
            chosen[path] = blob
    if not chosen:
        raise SourceError(f"{folder} has no Python code at {tag}", hint="name the folder of the project in it")
    blobs = _blobs(folder, list(chosen.values()))
    contents = dict(zip(chosen, blobs, strict=True))
    return tree_of(canonical(package), str(parsed(version)), "checkout", contents, _date(folder, commit))


def _date(folder: Path, commit: str) -> str | None:
    """The day of a commit. `git show` would tell, and run what the repository names for checking signatures."""
    stamp = _COMMITTER.search(_git(folder, "cat-file", "commit", commit))
    return datetime.fromtimestamp(int(stamp[1]), UTC).date().isoformat() if stamp else None


def _blobs(folder: Path, names: list[str]) -> list[bytes]:
    """The contents of blobs, by one process."""
    data = _git(folder, "cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode())
    contents, start = [], 0
    for _ in names:
        end = data.index(b"\n", start)
        size = int(data[start:end].split()[2])
        contents.append(data[end + 1 : end + 1 + size])
        start = end + size + 2
    return contents


def _git(folder: Path, *args: str, given: bytes = b"") -> bytes:
    command = ["git", *_QUIET, "-C", str(folder), *args]
    try:
        done = subprocess.run(command, input=given, capture_output=True, check=False, timeout=_LONGEST_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"git did not read {folder} ({error})", hint="is git installed?") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InvalidRequest(
            f"{folder}: {said[-1] if said else 'git failed'}", hint="name a checkout and one of its tags"
        )
    return done.stdout
