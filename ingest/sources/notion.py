"""The export of a Notion workspace as Markdown (folder or zip, with the zips inside it): each page as a write-up.

A page is ``Title <32 hexadecimal digits>.md``, and keeps its identity when its title changes. Tables (``.csv``) list
pages that are files of their own, so they are left out, like the files attached to pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from trainmedic.ingest.items import Failure, Item, Options
from trainmedic.ingest.read.files import File, contents, files
from trainmedic.ingest.sources.folder import read_bytes
from trainmedic.kb.lazy import regex

MAX_BYTES = 5 * 1024 * 1024
_ID = regex(r" ?([0-9a-f]{32})(?=\.|/|$)")
_LINK = regex(r"(\]\([^)]*?)(?:%20)?[0-9a-f]{32}")


def recognises(location: str) -> bool:
    names = [file.origin for file in files(location) if isinstance(file, File) and file.suffix in (".md", ".html")]
    return bool(names) and all(_ID.search(PurePosixPath(name).name) for name in names)


def read(options: Options) -> Iterator[Item]:
    """Every page, in the order of the paths."""
    for found in contents(options.location, (".md", ".html"), MAX_BYTES):
        item = found if isinstance(found, Failure) else read_bytes(found[1], found[0])
        if isinstance(item, Failure):
            yield item
            continue
        ids = _ID.findall(item.origin)
        origin = _ID.sub("", item.origin)
        yield replace(item, origin=origin, content=_LINK.sub(r"\1", item.content), key=ids[-1] if ids else origin)
