"""Issues and discussions of GitHub: a repository (OWNER/NAME) over the API, or files of what the API returned.

    gh issue list --state closed --limit 5000 --json number,title,body,author,comments,url,state,stateReason,updatedAt

The token is read from GITHUB_TOKEN or GH_TOKEN; public repositories can be read without one, slowly.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from trainmedic.ingest.document import Discussion, Failure, Item
from trainmedic.ingest.github.api import GitHub
from trainmedic.ingest.github.items import discussions, listed
from trainmedic.ingest.tree import File, files

SUFFIXES = (".json", ".jsonl", ".ndjson")
MAX_BYTES = 2 * 1024**3
_REPOSITORY = re.compile(r"(?:https://github\.com/)?([\w.-]+/[\w.-]+?)(?:\.git)?(?:/(?:issues|discussions))?/?$")


def read(location: str, since: str = "") -> Iterator[Item]:
    """Every issue or discussion of a repository, of a file, or of the files of a folder."""
    named = _REPOSITORY.match(location)
    if named is not None and not Path(location).exists():
        token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or ""
        with GitHub(token) as github:
            yield from github.read(named[1], since)
        return
    for file in files(location):
        if isinstance(file, Failure):
            yield file
        elif file.suffix in SUFFIXES:
            yield from _file(file)


def _file(file: File) -> Iterator[Discussion | Failure]:
    data = file.content(MAX_BYTES)
    if isinstance(data, Failure):
        yield data
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield Failure(origin=file.origin, reason=f"no UTF-8 text ({error.reason})")
        return
    if file.suffix == ".json":
        try:
            items = listed(json.loads(text))
        except (ValueError, RecursionError) as error:
            yield Failure(origin=file.origin, reason=f"no JSON ({error})")
            return
        for number, item in enumerate(items, start=1):
            yield from discussions(item, f"{file.origin}#{number}")
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Failure(origin=f"{file.origin}:{number}", reason=f"no JSON ({error})")
            continue
        yield from discussions(item, f"{file.origin}:{number}")
