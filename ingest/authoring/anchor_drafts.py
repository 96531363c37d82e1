"""Proposes anchors: for a bound the change that the page cites, or a line that came or went there and names a word of
the page."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from trainmedic.ingest.authoring.anchored import Claim, Claims
from trainmedic.ingest.update.anchors import Spots
from trainmedic.ingest.update.history import PACKAGES
from trainmedic.kb.data_files import load_table
from trainmedic.kb.errors import Forbidden, InvalidRequest, NotFound, SourceError
from trainmedic.kb.lazy import regex
from trainmedic.kb.pages.anchor import Cut, folded, place

MOST, LONGEST = 3, 120
_WORD = regex(r"[A-Za-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w+")
_TICKED = regex(r"`-{0,2}([A-Za-z][\w.]{3,})`")
_UNREADABLE = (NotFound, Forbidden, SourceError, InvalidRequest)


@dataclass(frozen=True, slots=True)
class Draft:
    """A text of a release for a claim; the higher ``score`` is, the more of the page is in it. Without a text ``path``
    is the address of the change that came with the release."""

    claim: Claim
    package: str
    version: str
    path: str
    text: str
    score: float

    def entry(self, spots: Spots) -> str:
        """The source as a page has it."""
        if not self.text:
            return f"{{url: {json.dumps(self.path)}, says: source, in: {json.dumps('>=' + self.version)}}}"
        within = spots.range(self.package, self.path, self.text, self.version)
        url = spots.url(self.package, self.version, self.path)
        rest = f", in: {json.dumps(within)}" if within else ""
        return f"{{url: {json.dumps(url)}, says: source, text: {json.dumps(self.text, ensure_ascii=False)}{rest}}}"


def with_entry(page: str, entry: str) -> str:
    """A page with a source more, or with the text and range in the source of this address that has none."""
    head, _, rest = entry.partition(", says: source, ")
    bare = re.search(rf"{re.escape(head)}, says: \w+, (?=note: )", page)
    if bare:
        return f"{page[: bare.end()]}{rest[:-1]}, {page[bare.end() :]}"
    listed = re.search(r"^sources:\n(?: .*\n)+", page, re.MULTILINE)
    if listed is None:
        raise InvalidRequest("its sources are not one per line", hint="write them as a list")
    return f"{page[: listed.end()]}  - {entry}\n{page[listed.end() :]}"


class Drafts:
    def __init__(self, spots: Spots) -> None:
        self.spots = spots

    def of(self, page: Claims) -> Iterator[tuple[Draft, ...]]:
        """For each bound that rests on nothing the best drafts, if there are any."""
        for claim in page.all():
            with suppress(*_UNREADABLE):
                found = self._of_bound(page, claim, claim.cut) if claim.cut and not claim.by else ()
                if best := sorted(found, key=lambda draft: (-draft.score, len(draft.text)))[:MOST]:
                    yield tuple(best)

    def _of_bound(self, page: Claims, claim: Claim, cut: Cut) -> Iterator[Draft]:
        """The change that the page cites, or the lines that one of both releases lacks and that name words of the page:
        those of the files that it cites, else of all that differ. Rare words count more."""
        package, known = cut.package, self.spots.releases(cut.package)
        above = cut.above(known)
        before = next((a for a, b in pairwise(known) if b == above), "")
        if not before or package not in load_table(PACKAGES):
            return
        for url in page.urls:
            name, version, what = place(url)
            with suppress(NotFound):
                if name == package and not version and self.spots.first(package, what) == above:
                    yield Draft(claim, package, above, url, "", 0)
                    return
        words = _words(page)
        lines = [each for path in _cited(page, package) for each in self._changed(package, path, before, above, words)]
        if not lines:
            old, new = (self.spots.tree(package, version).files for version in (before, above))
            differ = (path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path))
            lines = [e for p in differ for e in self._changed(package, _outer(package, p), before, above, words)]
        often = Counter(word for *_, hits in lines for word in hits)
        for path, version, line, hits in lines:
            yield Draft(claim, package, version, path, line, sum(1 / often[word] + 0.1 for word in hits))

    def _changed(
        self, package: str, path: str, before: str, above: str, words: frozenset[str]
    ) -> Iterator[tuple[str, str, str, list[str]]]:
        """Path, release, line and words of the lines that only one of two releases has."""
        old, new = (self.spots.file(package, version, path) or "" for version in (before, above))
        for version, mine, other in ((above, new, folded(old)), (before, old, folded(new))):
            for line in dict.fromkeys(map(str.strip, mine.splitlines())):
                hits = [word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line)]
                if (
                    hits
                    and len(line) <= LONGEST
                    and not line.startswith(("#", "import "))
                    and folded(line) not in other
                ):
                    yield path, version, line, hits


def _cited(page: Claims, package: str) -> list[str]:
    return list(dict.fromkeys(path for name, version, path in map(place, page.urls) if name == package and version))


def _outer(package: str, path: str) -> str:
    """The path in the repository of a file as it is installed."""
    return f"src/{path}" if str(load_table(PACKAGES)[package]["code"][0]).startswith("src/") else path


def _words(page: Claims) -> frozenset[str]:
    front = page.text.partition("\n---\n")[0]
    return frozenset((*_WORD.findall(front), *(w.rpartition(".")[2] for w in _TICKED.findall(page.text)), *page.said))
