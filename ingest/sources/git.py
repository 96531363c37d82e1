"""The write-ups of a git checkout as they are committed: what changed since the last run, by git itself.

Only the newest commit is read, never the working tree; the address of a file is that at its host, if the remote tells.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from trainmedic.ingest.items import Checkpoint, Discussion, Failure, Gone, Item, Options, Raw
from trainmedic.ingest.read.conversion import SUFFIXES as CONVERTED
from trainmedic.ingest.read.files import too_large
from trainmedic.ingest.sources.folder import FORMATS, most_bytes, read_bytes
from trainmedic.kb.lazy import regex

_REMOTE = regex(r"(?:https://(?:[^@/]+@)?|ssh://git@|git@)([\w.-]+)[:/](.+?)(?:\.git)?/?$")
_COMMIT = regex(r"[0-9a-f]{40}|[0-9a-f]{64}")


def read(options: Options) -> Iterator[Item]:
    """Every write-up of the newest commit, or those that changed since the commit ``since``."""
    location, since = options.location, options.since
    try:
        head = _git(location, "rev-parse", "HEAD^{commit}").decode().strip()
        known = bool(since) and bool(_COMMIT.fullmatch(since)) and _has(location, since)
        changed, deleted = _changes(location, since, head) if known else (_all(location, head), ())
        # Of a folder inside a checkout, git lists paths below that folder, and reads those below the checkout.
        below = _git(location, "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").strip("\n")
        base = _address(location, head)
    except (OSError, subprocess.CalledProcessError) as error:
        stderr = getattr(error, "stderr", b"") or b""
        reason = stderr.decode(errors="replace").strip().splitlines()
        yield Failure(origin=location, reason=f"no git checkout with a commit ({reason[-1] if reason else error})")
        return
    yield from (Gone(key=path) for path in deleted)
    for path in changed:
        yield _file(location, f"{head}:{below}{path}", path, f"{base}/{below}{path}" if base else "")
    yield Checkpoint(value=head)


def _all(location: str, head: str) -> Sequence[str]:
    return _written(_git(location, "ls-tree", "-r", "-z", "--name-only", head))


def _changes(location: str, since: str, head: str) -> tuple[Sequence[str], Sequence[str]]:
    """(changed and new files, deleted files); a renamed file is both."""
    listed = ["diff", "-z", "--name-only", "--no-renames", "--relative"]
    changed = _written(_git(location, *listed, "--diff-filter=d", since, head))
    return changed, _written(_git(location, *listed, "--diff-filter=D", since, head))


def _written(output: bytes) -> list[str]:
    """The paths of write-ups among git's."""
    paths = (path.decode("utf-8", "surrogateescape") for path in output.split(b"\0") if path)
    kinds = (*FORMATS, *CONVERTED)
    return sorted(
        path
        for path in paths
        if PurePosixPath(path).suffix.lower() in kinds
        and not any(part.startswith(".") for part in PurePosixPath(path).parts)
    )


def _file(location: str, blob: str, path: str, url: str) -> Raw | Discussion | Failure:
    most = most_bytes(PurePosixPath(path).suffix.lower())
    try:
        if int(_git(location, "cat-file", "-s", blob)) > most:
            return too_large(path, most)
        item = read_bytes(_git(location, "cat-file", "blob", blob), path)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return Failure(origin=path, reason="cannot be read from git")
    if isinstance(item, Failure):
        return item
    return replace(item, url=url, key=path)


def _address(location: str, head: str) -> str:
    """Where a host shows the files of a commit; empty if the remote does not tell."""
    try:
        remote = _git(location, "remote", "get-url", "origin").decode().strip()
    except subprocess.CalledProcessError:
        return ""
    named = _REMOTE.match(remote)
    if named is None:
        return ""
    between = "/-/blob/" if "gitlab" in named[1] else "/blob/"
    return f"https://{named[1]}/{named[2]}{between}{head}"


def _has(location: str, commit: str) -> bool:
    try:
        _git(location, "cat-file", "-e", f"{commit}^{{commit}}")
    except subprocess.CalledProcessError:
        return False
    return True


def _git(location: str, *arguments: str) -> bytes:
    # A repository's own configuration must not start programs.
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", str(Path(location))]
    return subprocess.run([*command, *arguments], check=True, capture_output=True).stdout
