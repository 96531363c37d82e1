"""Data derived from the releases at hand: computed once, and cached beside their packs.

A file is named after the tree that it was derived from and the code that derived it, so it is never out of date.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

from trainmedic.kb.error_messages import index, packages
from trainmedic.kb.error_messages import tables as columns
from trainmedic.kb.error_messages.tables import MessageTable
from trainmedic.kb.errors import Forbidden, InvalidRequest, NotFound, SourceError
from trainmedic.kb.frameworks import book, tables
from trainmedic.kb.frameworks.book import Entry, book_of, text_of
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.frameworks.tables import Table
from trainmedic.kb.sources.help import help_texts
from trainmedic.kb.sources.messages import collected, is_of_model, table
from trainmedic.kb.sources.names import Names, names_text
from trainmedic.kb.sources.options import extract
from trainmedic.kb.sources.sources import Sources
from trainmedic.kb.sources.store import mark_used, write_whole
from trainmedic.kb.sources.tree import SourceTree

MOST_FRAMES = 64
"""Places of one message in the files of a traceback."""
ALIKE = 0.5
"""The part of the nearest release's options that a release must have, or not all of its declarations were found: those
of some frameworks are in files that are not installed."""
T = TypeVar("T")
_LOG = logging.getLogger(__name__)


class Derived:
    """The derived facts of releases; what is not at hand has none."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._messages = lru_cache(maxsize=64)(self._message_tables)

    def attach(self) -> None:
        """Let everything that asks for a release find what is derived from it."""
        tables.read_with(self.catalogue, self.help)
        index.read_with(self.messages)

    def catalogue(self, known: Table, version: str) -> str | None:
        """The text of a catalogue with a further release; empty if that does not tell, None if it is not at hand."""
        framework = known.framework
        profile = profiles()[framework]
        tree = self.tree(profile.package, version) if profile.declares else None
        if tree is None:
            return None

        def added() -> str:
            try:
                options = extract(framework, tree)
            except NotFound:
                return ""
            return _with_release(known, tree, options) if _is_complete(known, version, options) else ""

        base = hashlib.sha256(f"{known.text} {profile.declares}".encode()).hexdigest()
        return self.kept(tree, f"options-{framework}", added, base)

    def help(self, known: Table, version: str, key: str) -> dict[str, str]:
        """The help texts of an option in a release that is at hand: class (empty: all) → text."""
        tree = self.tree(profiles()[known.framework].package, version)
        if tree is None:
            return {}
        word = key.rpartition(".")[2].replace("-", "_")
        files = {
            path: digest
            for path, digest in tree.files.items()
            if not is_of_model(path) and word in tree.text(path).replace("-", "_")
        }
        owners = {owner for group in known.owner_sets for owner in group}
        return help_texts(replace(tree, files=files), (key,), owners).get(key, {})

    def names(self, tree: SourceTree) -> Names:
        """The names in the code of a release."""
        return Names(self.kept(tree, "names", lambda: names_text(tree)))

    def messages(self, package: str, version: str, frames: Sequence[str] = ()) -> tuple[MessageTable, ...]:
        """The messages of a release, without those that only single models have; none if it cannot be read.

        With those of the files in ``frames`` (``path:line function``), whatever is in these.
        """
        return _had(package, version, lambda: self._messages(package, version, tuple(frames))) or ()

    def _message_tables(self, package: str, version: str, frames: tuple[str, ...]) -> tuple[MessageTable, ...]:
        tree = self.sources.open(package, version)
        about = packages.package(package)
        text = self.kept(tree, "messages", lambda: table(about, *collected([tree], about, models=False)))
        named = dict.fromkeys(path for frame in frames if (path := _path_in(tree, frame)))
        whole = MessageTable.of(text)
        if not named:
            return (whole,)
        everything = replace(about, code=(about.above,), skip=())
        near = replace(tree, files={path: tree.files[path] for path in named})
        few = table(everything, *collected([near], everything, general=False), most_places=MOST_FRAMES)
        return MessageTable.of(few), whole

    def tree(self, package: str, version: str) -> SourceTree | None:
        """The source of a release; None if it is not at hand, which the log explains."""
        return _had(package, version, lambda: self.sources.open(package, version))

    def kept(self, tree: SourceTree, kind: str, make: Callable[[], str], base: str = "") -> str:
        """The result of ``make`` for a release (and ``base``), from its file if it was made before."""
        name = hashlib.sha256(f"{tree.digest} {base} {_extractor()}".encode()).hexdigest()[:32]
        path = self.sources.store.folder / tree.package / f"{kind}-{name}.json"
        try:
            text = path.read_text(encoding="utf-8")
        except OSError:
            text = make()
        else:
            mark_used(path)
            return text
        try:
            write_whole(path, text.encode())
        except SourceError as error:
            _LOG.warning("%s", error)  # a folder that cannot be written costs time, not the answer
        return text


def _had(package: str, version: str, read: Callable[[], T]) -> T | None:
    """What is read of a release; None if that cannot be, which the log explains."""
    try:
        return read()
    except (NotFound, Forbidden, InvalidRequest) as error:
        _LOG.info("%s %s is not read: %s", package, version, error)
    except SourceError as error:
        _LOG.warning("%s %s cannot be read: %s", package, version, error)
    return None


def _path_in(tree: SourceTree, frame: str) -> str | None:
    """The file of a frame (``path:line function``), wherever the package was installed."""
    parts = frame.replace("\\", "/").partition(".py:")[0].split("/")
    ends = ("/".join(parts[start:]) + ".py" for start in range(len(parts)))
    return next((path for path in ends if path in tree), None)


def _with_release(known: Table, tree: SourceTree, options: dict[str, Entry]) -> str:
    added = book_of(known)
    added.add(tree.version, options)
    return text_of(added)


def _is_complete(known: Table, version: str, options: dict[str, Entry]) -> bool:
    near = known.nearest(version)
    there = known.options(near).keys()
    return len(there & options.keys()) >= ALIKE * len(there)


@cache
def _extractor() -> str:
    """A digest of the code that derives, and that writes what it derives."""
    code = (*sorted(Path(__file__).parent.rglob("*.py")), *(Path(str(each.__file__)) for each in (book, columns)))
    return hashlib.sha256(b"".join(path.read_bytes() for path in code)).hexdigest()
