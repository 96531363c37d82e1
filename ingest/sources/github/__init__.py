"""Issues and discussions of GitHub: a repository (OWNER/NAME) over the API, or files of what the API returned.

    gh issue list --state closed --limit 5000 --json number,title,body,author,comments,url,state,stateReason,updatedAt

The token is read from GITHUB_TOKEN or GH_TOKEN; public repositories can be read without one, slowly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainmedic.ingest.items import Discussion, Failure, Item, Options
from trainmedic.ingest.read.files import File, files, json_of
from trainmedic.ingest.sources.github.answers import discussions, listed
from trainmedic.ingest.sources.github.api import GitHub
from trainmedic.kb.lazy import regex

SUFFIXES = (".json", ".jsonl", ".ndjson")
MAX_BYTES = 2 * 1024**3
_REPOSITORY = regex(r"(?:https://github\.com/)?([\w.-]+/[\w.-]+?)(?:\.git)?(?:/(?:issues|discussions))?/?$")


def read(options: Options) -> Iterator[Item]:
    """Every issue or discussion of a repository, of a file, or of the files of a folder."""
    location, since = options.location, options.since
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
    if file.suffix == ".json":
        yield from _listed(file.origin, file.json(MAX_BYTES), numbered=True)
        return
    for line in file.lines():
        if isinstance(line, Failure):
            yield line
        else:
            yield from _listed(line[0], json_of(*line), numbered=False)


def _listed(origin: str, data: Any, *, numbered: bool) -> Iterator[Discussion | Failure]:
    """What one JSON value lists. ``numbered``: the place of an item in it is part of its origin even if it is alone."""
    if isinstance(data, Failure):
        yield data
        return
    items = listed(data)
    for number, item in enumerate(items, start=1):
        yield from discussions(item, f"{origin}#{number}" if numbered or len(items) > 1 else origin)
