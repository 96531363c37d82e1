"""Many releases in one file, for machines without internet. A bundle is not trusted: its releases are read with the
bounds of any archive, and must have the digest that they state."""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

from trainmedic.kb.errors import InvalidRequest, NotFound, SourceError, TrainmedicError
from trainmedic.kb.sources.archives import zip_bytes, zip_contents, zip_members, zip_of
from trainmedic.kb.sources.selection import MEBIBYTE, MOST_BYTES, canonical, parsed
from trainmedic.kb.sources.store import ABOUT, DAMAGED, Store
from trainmedic.kb.sources.tree import SourceTree, tree_of

_LARGEST_ABOUT = 32 * MEBIBYTE
_MOST_RELEASES = 5_000
_AGAIN = "copy it again, or export it again: trainmedic kb sources export"


def export_bundle(store: Store, target: Path, packages: Iterable[str] = ()) -> int:
    """Write the stored releases (of some packages, if any are named) to one file; how many there are."""
    wanted = tuple(map(canonical, packages)) or ("",)
    trees = [tree for package in wanted for tree in store.releases(package)]
    if not trees:
        raise NotFound("no release of these is stored", hint="trainmedic kb sources fetch PACKAGE==VERSION")
    unfinished = target.with_name(f".{target.name}.new")
    try:
        with ZipFile(unfinished, "w", ZIP_STORED) as archive:
            for tree in trees:
                archive.write(store.path(tree.package, tree.version), f"{tree.package}/{tree.version}.zip")
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise SourceError(f"{target} cannot be written ({error.strerror})", hint="name a file elsewhere") from error
    return len(trees)


def import_bundle(store: Store, source: Path) -> int:
    """Store the releases of a bundle; how many there are. Raises `InvalidRequest` and `SourceError`."""
    if not source.is_file():
        raise InvalidRequest(f"{source} is not a file", hint="name what trainmedic kb sources export wrote")
    try:
        with source.open("rb") as stream, zip_of(stream) as archive:
            members = [info for name, info in zip_members(archive).items() if name.endswith(".zip")]
            if not members or len(members) > _MOST_RELEASES:
                raise ValueError(f"{len(members)} releases")
            for info in members:
                store.add(_tree(zip_bytes(archive, info, MOST_BYTES)))
    except TrainmedicError:
        raise
    except DAMAGED as error:
        raise SourceError(f"{source} is no bundle, or damaged ({error})", hint=_AGAIN) from error
    return len(members)


def _tree(content: bytes) -> SourceTree:
    with BytesIO(content) as stream, zip_of(stream) as archive:
        members = zip_members(archive)
        about = json.loads(zip_bytes(archive, members.pop(ABOUT), _LARGEST_ABOUT))
        contents = zip_contents(archive, members, {path: path for path in sorted(members)})
    released = str(about["released"])[:10] if about["released"] else None
    tree = tree_of(canonical(about["package"]), str(parsed(about["version"])), "bundle", contents, released)
    if not contents or tree.digest != about["digest"]:
        raise ValueError(f"{tree.package} {tree.version} has other files than it states")
    return tree
