"""Reads again what anchors name, in the releases around their bounds, that of the address, and the newest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from trainmedic.ingest.update.history import History
from trainmedic.ingest.update.releases import Published
from trainmedic.kb.errors import Forbidden, InvalidRequest, NotFound, SourceError
from trainmedic.kb.pages.anchor import Anchor, Cut, anchors, folded
from trainmedic.kb.pages.case import CAUSES, is_cause
from trainmedic.kb.pages.page import discover, read_page
from trainmedic.kb.sources.search import defined
from trainmedic.kb.sources.selection import in_project
from trainmedic.kb.versions import holds, parse_range, version_key


def checkouts_in(folder: Path) -> tuple[Path, ...]:
    """The clones of known packages in a folder, of several of one package that with most releases."""
    found: dict[str, History] = {}
    for place in sorted(each for each in (*folder.iterdir(), *folder.glob("*/repo")) if each.is_dir()):
        try:
            history = History(place)
        except InvalidRequest:
            continue
        other = found.get(history.package)
        if history.git("rev-parse", "--absolute-git-dir") and len(history.releases) > len(
            other.releases if other else ()
        ):
            found[history.package] = history
    return tuple(history.checkout for history in found.values())


@cache
def every_anchor() -> tuple[Anchor, ...]:
    """Those of all shipped pages."""
    texts = ((name, path.read_bytes()) for path, name in discover(CAUSES))
    return tuple(
        anchor
        for name, text in texts
        if is_cause(text) and (b" text: " in text or b" in: " in text)
        for anchor in anchors(read_page(text.decode(), name)[1])
    )


class Spots:
    """The files of releases: of the tags of checkouts, else of the store and the package index."""

    def __init__(self, published: Published) -> None:
        self.published = published
        self.releases = cache(self._releases)
        self.tree = cache(published.tree)

    def _releases(self, package: str, path: str = "") -> Sequence[str]:
        """All final releases, ascending; of a file that is not installed only those of the checkout."""
        tags = dict(self.published.histories[package].releases) if package in self.published.histories else {}
        try:
            listed = [each.version for each in self.published.releases(package)] if _is_code(path) else []
        except (NotFound, Forbidden, SourceError):
            listed = []
        keyed = {version_key(version): version for version in (*tags, *listed)}
        return tuple(keyed[key] for key in sorted(keyed))

    def file(self, package: str, version: str, path: str) -> str | None:
        """A file of the repository; None if the release has it not. Raises `NotFound` and `SourceError`."""
        history = self.published.histories.get(package)
        tag = dict(history.releases).get(version) if history else None
        if history and tag:
            return history.git("show", f"{tag}:{path}") or None
        tree = self.tree(package, version)
        inside = path.removeprefix("src/").removeprefix("python/")
        if not _is_code(path):
            raise NotFound(f"{package} {version} is installed here, but without {path}")
        return tree.text(inside) if inside in tree else None

    def problem(self, anchor: Anchor) -> str:
        """Why an anchor does not hold; empty if it does. Raises as `file`."""
        known = self.releases(anchor.package, anchor.path if anchor.texts else "")
        if not known:
            raise NotFound(f"no release of {anchor.package} is at hand")
        if not anchor.texts:
            return self._of_change(anchor, known)
        for version in self.beside(anchor, known):
            wanted = holds(version_key(version), parse_range(anchor.within)) if anchor.within else True
            missing = _lacks(anchor, self.file(anchor.package, version, anchor.path))
            if bool(missing) == bool(wanted):
                return f"{anchor.package} {version}: {missing or f'{anchor.texts[0]!r} is there'} ({anchor.path})"
        return ""

    def beside(self, anchor: Anchor, known: Sequence[str]) -> Sequence[str]:
        """The releases to read."""
        named = [version for version in known if anchor.version and version_key(version) == version_key(anchor.version)]
        chosen = {*named, *known[-1:]}
        for cut in Cut.of(anchor.package, anchor.within):
            above = cut.above(known)
            chosen.update(known[:1] if above == known[0] else next((p for p in pairwise(known) if p[1] == above), ()))
        return sorted(chosen, key=version_key)

    def _of_change(self, anchor: Anchor, known: Sequence[str]) -> str:
        first = self.first(anchor.package, anchor.path)
        above = Cut.of(anchor.package, anchor.within)[0].above(known)
        return "" if above == first else f"{anchor.path} came with {anchor.package} {first}, not {above or 'yet'}"

    def first(self, package: str, change: str) -> str:
        """The lowest release with a ``pull NUMBER`` or ``commit NAME``. Raises `NotFound`."""
        history = self.published.histories.get(package)
        kind, _, name = change.partition(" ")
        if history is None:
            raise NotFound(f"{package} {change} needs a checkout")
        commit = (
            history.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip() if kind == "commit" else ""
        )
        first = history.release_of(commit, f"(#{name})" if kind == "pull" else "")
        if not first:
            raise NotFound(f"no release of the checkout has {change}")
        return first


def _lacks(anchor: Anchor, content: str | None) -> str:
    """What of an anchor does not stand in its file; empty if all does. None: there is no file."""
    if content is None:
        return f"{anchor.path} is not there"
    if anchor.symbol:
        first, last = defined(content).get(anchor.symbol, (1, 0))
        if not last:
            return f"{anchor.symbol} is not there"
        content = "\n".join(content.splitlines()[first - 1 : last])
    whole = folded(content)
    return next((f"{text!r} is not there" for text in anchor.texts if folded(text) not in whole), "")


def _is_code(path: str) -> bool:
    """Whether a file is installed, or none is named."""
    return not path or path in in_project([path, f"{path.rpartition('/')[0]}/_.py"]).values()


def problems(spots: Spots, found: Iterable[Anchor]) -> Iterator[tuple[Anchor, str, bool]]:
    """The anchors that do not hold or (False) cannot be read, with why."""
    for anchor in found:
        try:
            if problem := spots.problem(anchor):
                yield anchor, problem, True
        except (NotFound, Forbidden, SourceError, InvalidRequest) as error:
            yield anchor, str(error), False
