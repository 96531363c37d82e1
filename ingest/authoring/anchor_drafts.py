"""Proposes anchors: for a bound a line that came or went there and names a word of the page, for a message or an option
the line that has it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from trainmedic.ingest.authoring.anchored import WILD, Claim, Claims
from trainmedic.ingest.update.anchors import Spots
from trainmedic.ingest.update.history import PACKAGES
from trainmedic.kb.data_files import load_table
from trainmedic.kb.errors import Forbidden, InvalidRequest, NotFound, SourceError
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.lazy import regex
from trainmedic.kb.pages.anchor import blob, change, folded

MOST, LONGEST, SHORTEST = 3, 120, 8
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
        raise InvalidRequest("its sources are not one to a line", hint="write them as a list")
    return f"{page[: listed.end()]}  - {entry}\n{page[listed.end() :]}"


class Drafts:
    def __init__(self, spots: Spots) -> None:
        self.spots = spots
        self._texts = cache(self._all_texts)

    def of(self, page: Claims) -> Iterator[tuple[Draft, ...]]:
        """For each claim that rests on nothing the best drafts, if there are any."""
        for claim in page.all():
            if not claim.by:
                with suppress(*_UNREADABLE):
                    found = self._of_bound(page, claim) if claim.cut else self._of_words(page, claim)
                    best = sorted(found, key=lambda draft: (-draft.score, len(draft.text)))[:MOST]
                    if best:
                        yield tuple(best)

    def _cited(self, page: Claims, package: str) -> list[str]:
        return list(dict.fromkeys(path for name, _, path in map(blob, page.urls) if name == package))

    def _of_bound(self, page: Claims, claim: Claim) -> Iterator[Draft]:
        assert claim.cut is not None
        package, known = claim.cut.package, self.spots.releases(claim.cut.package)
        above = claim.cut.above(known)
        before = next((a for a, b in pairwise(known) if b == above), "")
        if not before or package not in load_table(PACKAGES):
            return
        for url in page.urls:
            name, what = change(url)
            with suppress(NotFound):
                if name == package and self.spots.first(package, what) == above:
                    yield Draft(claim, package, above, url, "", 9.0)
        words = _words(page)
        found = [each for path in self._cited(page, package) for each in self._changed(package, path, before, above)]
        bonus = 1.0
        if not any(_named(words, line) for _, _, line in found):
            bonus, found = 0.0, []
            old, new = (self.spots.tree(package, version) for version in (before, above))
            for path in sorted(old.files.keys() | new.files.keys()):
                if old.files.get(path) != new.files.get(path) and path.endswith((".py", ".yaml")):
                    found += self._changed(package, _outer(package, path), before, above)
        named = [(path, is_new, line, _named(words, line)) for path, is_new, line in found]
        often = Counter(word for *_, hits in named for word in hits)
        for path, is_new, line, hits in named:
            if hits:
                score = bonus + sum(1 / often[word] for word in hits) + len(hits) / 10
                yield Draft(claim, package, above if is_new else before, path, line, score)

    def _changed(self, package: str, path: str, before: str, above: str) -> Iterator[tuple[str, bool, str]]:
        """The lines of a file that one of two releases has: path, whether it is the later, line."""
        old, new = (self.spots.file(package, version, path) or "" for version in (before, above))
        for is_new, mine, other in ((True, new, folded(old)), (False, old, folded(new))):
            for line in dict.fromkeys(map(str.strip, mine.splitlines())):
                if (
                    SHORTEST <= len(line) <= LONGEST
                    and not line.startswith(("#", "import "))
                    and folded(line) not in other
                ):
                    yield path, is_new, line

    def _of_words(self, page: Claims, claim: Claim) -> Iterator[Draft]:
        """Where the words of a message, or an option, stand in the newest release."""
        if claim.kind == "message":
            text = max((part.strip() for part in WILD.split(claim.what)), key=len)
            pattern = re.compile(re.escape(text), re.IGNORECASE)
        else:
            name = claim.what.partition(" ")[0].rpartition(".")[2]
            pattern = re.compile(rf"(?:^|[\"'\s(-]){re.escape(name)}[\"']?\s*[:=,)\]].*")
        named = (
            *(blob(url)[0] for url in page.urls),
            *(profiles()[name].package for name in page.frameworks if name in profiles()),
        )
        for package in dict.fromkeys(name for name in named if name in load_table(PACKAGES)):
            with suppress(*_UNREADABLE):
                newest = self.spots.releases(package)[-1]
                for path in self._cited(page, package):
                    yield from self._line(claim, pattern, package, newest, path, 1.0)
                for path, text in self._texts(package, newest) if claim.kind == "message" else ():
                    if pattern.search(text):
                        yield from self._line(claim, pattern, package, newest, _outer(package, path), 0.0)

    def _all_texts(self, package: str, version: str) -> tuple[tuple[str, str], ...]:
        tree = self.spots.tree(package, version)
        return tuple((path, tree.text(path)) for path in tree.paths() if path.endswith(".py"))

    def _line(
        self, claim: Claim, pattern: re.Pattern[str], package: str, version: str, path: str, score: float
    ) -> Iterator[Draft]:
        for line in (self.spots.file(package, version, path) or "").splitlines():
            if found := pattern.search(line):
                text = found[0].strip() if claim.kind == "message" else line.strip()
                yield Draft(claim, package, version, path, text[:LONGEST], score)
                return


def _outer(package: str, path: str) -> str:
    """The path in the repository of a file as it is installed."""
    return f"src/{path}" if str(load_table(PACKAGES)[package]["code"][0]).startswith("src/") else path


def _words(page: Claims) -> frozenset[str]:
    front = page.text.partition("\n---\n")[0]
    return frozenset((*_WORD.findall(front), *(w.rpartition(".")[2] for w in _TICKED.findall(page.text)), *page.said))


def _named(words: frozenset[str], line: str) -> list[str]:
    return [word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", line)]
