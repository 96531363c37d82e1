"""The catalogues, read one line at a time: only the options that are asked for are ever parsed."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import _lru_cache_wrapper, cached_property, lru_cache
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias, TypeVar

from packaging.version import Version

from trainmedic.kb.data_files import load_texts
from trainmedic.kb.versions import version_key

OPTIONS, HELP = "frameworks/data/options.xz", "frameworks/data/help.xz"
"""The catalogues of all frameworks, and what the sources of their newest releases say of options."""
Cached = TypeVar("Cached", bound="_lru_cache_wrapper[Any]")


class Table:
    """One framework's options. ``versions`` are catalogued in full, ``examined`` only for options' lives."""

    def __init__(self, text: str) -> None:
        self.text = text
        head, *lines = text.split("\n")
        meta = json.loads(head)
        self.framework: str = meta["framework"]
        self.versions: tuple[str, ...] = tuple(meta["versions"])
        self.examined: tuple[str, ...] = tuple(meta["examined"])
        self.owner_sets: tuple[tuple[str, ...], ...] = tuple(tuple(owners) for owners in meta["owners"])
        self._lines: dict[str, str] = dict(zip(meta["names"], lines, strict=True))
        self._parsed: dict[str, dict[str, Any]] = {}
        self._places = {version: place for place, version in enumerate(self.versions)}
        self._nearest: dict[str, str] = {}

    @cached_property
    def _keys(self) -> Sequence[tuple[Version, str]]:
        return tuple((version_key(version), version) for version in self.versions)

    @cached_property
    def _examined(self) -> Sequence[Version]:
        return tuple(map(version_key, self.examined))

    @property
    def names(self) -> Mapping[str, str]:
        """All option names of any release (the keys; the values are unparsed)."""
        return self._lines

    def line(self, name: str) -> dict[str, Any] | None:
        known = self._parsed.get(name)
        if known is None:
            raw = self._lines.get(name)
            if raw is None:
                return None
            life, runs = json.loads(raw)
            known = self._parsed[name] = {"life": life, "runs": _whole_runs(runs)}
        return known

    def info(self, name: str, version: str) -> Mapping[str, Any] | None:
        """The option at a catalogued release (always the same mapping), or None."""
        line = self.line(name)
        if line is None:
            return None
        index = self._places[version]
        for start, stop, info in line["runs"]:
            if start <= index <= stop:
                options: Mapping[str, Any] = info
                return options
        return None

    def options(self, version: str) -> dict[str, dict[str, Any]]:
        """All options at a catalogued release, each with its owners under ``in``."""
        found = ((name, self.info(name, version)) for name in self.names)
        return {
            name: {"type": None, "default": None, **info, "in": list(self.owner_sets[info["in"]])}
            for name, info in found
            if info is not None
        }

    def closest(self, name: str, version: str) -> tuple[str, Mapping[str, Any]] | None:
        """The option at the catalogued release nearest to ``version`` that has it; later before earlier ones."""
        line = self.line(name)
        if line is None or not line["runs"]:
            return None
        index = self._places[version]
        for start, stop, info in line["runs"]:
            if index <= stop:
                return (version if start <= index else self.versions[start]), info
        _, stop, info = line["runs"][-1]
        return self.versions[stop], info

    def nearest(self, version: str) -> str:
        """The catalogued release that stands for ``version``.

        The latest not after it; but where that is of an older minor (or major) series and a release of the same
        series is catalogued, the earliest of the same series: defaults change at the start of a series.
        """
        release = self._nearest.get(version)
        if release is None:
            release = self._find_nearest(version)
            if len(self._nearest) < 1000:  # versions come from users: no end of them
                self._nearest[version] = release
        return release

    def around(self, version: str) -> tuple[str, ...]:
        """The releases read in full that speak for ``version``: itself, or those on either side of it.

        Empty before the first and after the last: nothing was read of it, and nothing is said of its defaults.
        """
        wanted = version_key(version)
        place = bisect_left(self._keys, wanted, key=itemgetter(0))
        if place < len(self._keys) and self._keys[place][0] == wanted:
            return self.versions[place : place + 1]
        return self.versions[place - 1 : place + 1] if 0 < place < len(self._keys) else ()

    def _find_nearest(self, version: str) -> str:
        wanted = version_key(version)
        before = [known for key, known in self._keys if key <= wanted]
        best = before[-1] if before else self.versions[0]
        for digits in (2, 1):
            series = _padded(wanted)[:digits]
            if _padded(version_key(best))[:digits] == series:
                return best
            same = [known for key, known in self._keys if _padded(key)[:digits] == series]
            if same and (digits == 2 or not before or wanted.major > 0):
                return same[0] if version_key(same[0]) > wanted else same[-1]
        return best

    def alive(self, name: str, version: str) -> bool | None:
        """Whether a release has the option; None if no examined release decides it."""
        line = self.line(name)
        if line is None:
            return False
        life = line["life"]
        wanted = version_key(version)
        first, last = version_key(life[0]), None if life[1] is None else version_key(life[1])
        if first <= wanted and (last is None or wanted <= last):
            if len(life) == 2:
                return True
            return self.info(name, self.nearest(version)) is not None
        if wanted < first:
            before = bisect_left(self._examined, first)
            return None if before and wanted > self._examined[before - 1] else False
        after = len(self._examined) if last is None else bisect_right(self._examined, last)
        return False if after < len(self._examined) and wanted >= self._examined[after] else None


def _whole_runs(runs: Iterable[list[Any]]) -> list[tuple[int, int, dict[str, Any]]]:
    """The runs of an option, each with all that holds in it."""
    info: dict[str, Any] = {}
    found = []
    for start, stop, changed in runs:
        info = {key: value for key, value in {**info, **changed}.items() if value is not None}
        found.append((start, stop, info))
    return found


def _padded(version: Version) -> tuple[int, ...]:
    return (*version.release, 0, 0)


ReleaseReader: TypeAlias = Callable[[Table, str], str | None]
"""A catalogue and a release → the text of the catalogue with that release; empty if the release does not tell its
options, None if it is not at hand now."""

HelpReader: TypeAlias = Callable[[Table, str, str], Mapping[str, str]]
"""A catalogue, a release and an option → what the release says of it by class (empty: all)."""


class _Catalogues:
    """The committed catalogues, and releases that were read since. ``reader`` gives a catalogue with one more."""

    def __init__(self) -> None:
        self.tables: dict[str, Table | None] = {}
        self.reader: ReleaseReader | None = None
        self.describe: HelpReader | None = None
        self.asked: set[tuple[str, str]] = set()
        self.caches: list[Callable[[], None]] = []
        self.lock = Lock()

    def clear(self) -> None:
        for each in self.caches:
            each()


_CATALOGUES = _Catalogues()


def of_tables(cached: Cached) -> Cached:
    """A cached function whose answers rest on the tables: it forgets them when a further release is read."""
    _CATALOGUES.caches.append(cached.cache_clear)
    return cached


def read_with(reader: ReleaseReader | None, describe: HelpReader | None = None) -> None:
    """Read releases that are not catalogued with ``reader`` from now on; None: only the committed ones are known."""
    _CATALOGUES.reader, _CATALOGUES.describe = reader, describe
    if _CATALOGUES.asked:
        _CATALOGUES.asked.clear()
        _CATALOGUES.tables.clear()
        _CATALOGUES.clear()


def is_unread(framework: str, version: str) -> bool:
    """Whether a release is not catalogued, and there is a reader that has not had it."""
    known, reader = table(framework), _CATALOGUES.reader
    asked = (framework, version) in _CATALOGUES.asked
    return not (reader is None or known is None or asked or len(known.around(version)) == 1)


def learn(framework: str, version: str) -> None:
    """Read a release that is unread, if it is at hand."""
    while is_unread(framework, version):
        known, reader = table(framework), _CATALOGUES.reader
        assert known is not None
        assert reader is not None
        text = reader(known, version)
        with _CATALOGUES.lock:
            if text and table(framework) is not known:
                continue  # another release was read meanwhile
            if text is not None:
                _CATALOGUES.asked.add((framework, version))
            if text:
                _CATALOGUES.tables[framework] = Table(text)
                _CATALOGUES.clear()
        return


def read_so_far() -> int:
    """How many releases were read beside the catalogues: what was made of a text before may differ now."""
    return len(_CATALOGUES.asked)


def read_help(framework: str, version: str, key: str) -> Mapping[str, str]:
    """The help texts of an option in a release that was read on demand: class (empty: all) → text."""
    known, describe = table(framework), _CATALOGUES.describe
    was_read = (framework, version) in _CATALOGUES.asked and known is not None and version in known.versions
    return describe(known, version, key) if describe is not None and known is not None and was_read else {}


def table(framework: str) -> Table | None:
    if framework not in _CATALOGUES.tables:
        _CATALOGUES.tables[framework] = _committed(framework)
    return _CATALOGUES.tables[framework]


def _committed(framework: str) -> Table | None:
    text = load_texts(OPTIONS).get(framework)
    return Table(text) if text is not None else None


@lru_cache(maxsize=8)
def side(name: str) -> Mapping[str, Any]:
    """A side table: ``pins``, ``renames`` or ``dates`` (of the releases, as the package index or the tag has them)."""
    path = Path(__file__).parent / "data" / f"_{name}.json"
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document
