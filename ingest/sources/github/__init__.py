"""Issues and discussions of GitHub: a repository (OWNER/NAME) over the API, or files of what the API returned.

    gh issue list --state closed --limit 5000 --json number,title,body,author,comments,url,state,stateReason,updatedAt

The token is read from GITHUB_TOKEN or GH_TOKEN; public repositories can be read without one, slowly.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from trainmedic.ingest.items import Discussion, Failure, Item, Options
from trainmedic.ingest.read.files import File, files
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
    if file.suffix != ".json":
        for line in file.lines():
            if isinstance(line, Failure):
                yield line
            else:
                yield from _listed(*line, numbered=False)
        return
    data = file.content(MAX_BYTES)
    if isinstance(data, Failure):
        yield data
    else:
        yield from _listed(file.origin, data, numbered=True)


def _listed(origin: str, data: bytes, *, numbered: bool) -> Iterator[Discussion | Failure]:
    """What one JSON text lists. ``numbered``: the place of an item in it is part of its origin even if it is alone."""
    try:
        items = listed(json.loads(data))
    except (ValueError, RecursionError) as error:
        yield Failure(origin=origin, reason=f"no JSON ({error})")
        return
    for number, item in enumerate(items, start=1):
        yield from discussions(item, f"{origin}#{number}" if numbered or len(items) > 1 else origin)
