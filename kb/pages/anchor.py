"""Anchors: the sources of a page that a program reads again at every release.

A source with ``text`` (literals) says that they stand in its file, with ``in`` in which releases of the package and in
no others. A commit or pull request takes ``in`` alone: the releases that contain it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from trainmedic.kb.data_files import load_table
from trainmedic.kb.pages.page import Field
from trainmedic.kb.sources.selection import release_key
from trainmedic.kb.versions import parse_range, parse_version, version_key

_URL = re.compile(r"https://github\.com/(?P<repository>[^/]+/[^/]+)/(?P<kind>blob|pull|commit)/(?P<rest>[^#?]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """``path`` is that of the repository, of a change without ``texts`` its name (`place`); ``within`` is a range of
    versions, empty: no bound."""

    page: str
    line: int
    url: str
    package: str
    version: str = ""
    path: str = ""
    texts: tuple[str, ...] = ()
    symbol: str = ""
    within: str = ""


@dataclass(frozen=True, order=True, slots=True)
class Cut:
    """Between two releases of a package: ``<0.27.1`` and ``>=0.27.1`` are the same; ``after``: behind that version."""

    package: str
    version: str
    after: bool = False

    @classmethod
    def of(cls, package: str, text: str) -> tuple[Cut, ...]:
        """Those of a range."""
        kinds = {">=": (False,), "<": (False,), ">": (True,), "<=": (True,)}
        return tuple(
            cls(package, release_key(str(clause.bound)), after)
            for clause in (parse_range(text) if text else ())
            for after in kinds.get(clause.operator, (False, True))
        )

    def __str__(self) -> str:
        return f"{self.package} {'>' if self.after else '>='}{self.version}"

    def above(self, releases: Sequence[str]) -> str:
        """The first of these ascending releases on the upper side; empty if there is none."""
        key = version_key(self.version)
        return next((r for r in releases if version_key(r) > key or (version_key(r) == key and not self.after)), "")


def anchors(front: Field) -> Iterator[Anchor]:
    """The anchors of a page's front matter. Raises `PageError`."""
    fields = front.mapping()
    parts = [fields, *(item.mapping() for item in (fields["checks"].items() if "checks" in fields else ()))]
    sources = [source for part in parts if "sources" in part for source in part["sources"].items()]
    refutations = [item.mapping() for item in (fields["refutations"].items() if "refutations" in fields else ())]
    for source in (*sources, *(each["source"] for each in refutations if "source" in each)):
        if {"text", "in"} & source.mapping().keys():
            yield _anchor(source)


def _anchor(source: Field) -> Anchor:
    fields = source.mapping()
    url = fields["url"].text()
    package, version, path = place(url)
    if not package:
        raise source.error("text and in go with a file, pull request or commit of a known package on GitHub")
    is_file = "/blob/" in url
    if is_file != ("text" in fields):
        raise source.error("a file needs text" if is_file else "text goes with a file")
    within = fields["in"].text() if "in" in fields else ""
    try:
        Cut.of(package, within)
    except ValueError as error:
        raise fields["in"].error(str(error)) from None
    texts = fields.get("text")
    return Anchor(
        page=source.page,
        line=source.line,
        url=url,
        package=package,
        version=version,
        path=path,
        texts=() if texts is None else texts.texts() if texts.is_list else (texts.text(),),
        symbol=fields["symbol"].text() if "symbol" in fields else "",
        within=within,
    )


def place(url: str) -> tuple[str, str, str]:
    """Package, release (empty: of a branch or commit) and path of a file on GitHub; of a change its name in place of
    the path, ``pull 4912``. All empty for another address."""
    found = _URL.match(url)
    package = package_of(found["repository"]) if found else ""
    if found is None or not package:
        return "", "", ""
    tag, _, path = found["rest"].partition("/")
    return (
        (package, version_of_tag(package, tag), path)
        if found["kind"] == "blob"
        else (package, "", f"{found['kind']} {tag}")
    )


@cache
def _packages() -> Mapping[str, Mapping[str, object]]:
    return {**load_table("error_messages/packages.toml"), **load_table("defects/packages.toml")}


@cache
def package_of(repository: str) -> str:
    """The package of a repository, under whichever owner; empty if it is not known."""
    name = repository.partition("/")[2].lower()
    for package, about in _packages().items():
        if isinstance(about, dict) and "repository" in about:
            names = (about["repository"].partition("/")[2], *about.get("checkouts", ()))
            if name in map(str.lower, names):
                return package
    return ""


def version_of_tag(package: str, tag: str) -> str:
    """The release of a tag; empty for a branch or a commit."""
    before, _, after = str(_packages()[package].get("tags", "v{version}")).partition("{version}")
    version = tag.removeprefix(before).removesuffix(after)
    return version if version[:1].isdigit() and parse_version(version) is not None and len(version) < 40 else ""


def folded(text: str) -> str:
    """With all white space as single blanks."""
    return " ".join(text.split())
