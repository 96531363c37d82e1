"""Anchors: the sources of a page that a program reads again at every release.

A source with ``text`` (literals) says that they stand in its file, with ``in`` in which releases of the package and in
no others. A commit or pull request takes ``in`` alone: the releases that contain it.
"""

from __future__ import annotations

import ast
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
    """``path`` is that of the repository, ``within`` a range of versions (empty: no bound); see the module."""

    page: str
    line: int
    url: str
    package: str
    version: str = ""
    path: str = ""
    change: str = ""
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
    refutations = (item.mapping() for item in (fields["refutations"].items() if "refutations" in fields else ()))
    yield from (anchor for each in refutations if "source" in each and (anchor := _anchor(each["source"])))
    checks = (item.mapping() for item in (fields["checks"].items() if "checks" in fields else ()))
    for each in (fields, *checks):
        yield from (a for item in (each["sources"].items() if "sources" in each else ()) if (a := _anchor(item)))


def _anchor(source: Field) -> Anchor | None:
    fields = source.mapping()
    if not {"text", "in"} & fields.keys():
        return None
    url = fields["url"].text()
    found = _URL.match(url)
    package = package_of(found["repository"]) if found else ""
    if found is None or not package:
        raise source.error("text and in go with a file, pull request or commit of a known package on GitHub")
    is_file = found["kind"] == "blob"
    if is_file != ("text" in fields):
        raise source.error("a file needs text" if is_file else "text goes with a file")
    within = fields["in"].text() if "in" in fields else ""
    try:
        Cut.of(package, within)
    except ValueError as error:
        raise fields["in"].error(str(error)) from None
    return Anchor(
        page=source.page,
        line=source.line,
        url=url,
        package=package,
        version=blob(url)[1],
        path=blob(url)[2],
        change=change(url)[1],
        texts=_texts(fields),
        symbol=fields["symbol"].text() if "symbol" in fields else "",
        within=within,
    )


def blob(url: str) -> tuple[str, str, str]:
    """Package, release (empty for a branch or commit) and path of a file on GitHub; all empty for another address."""
    found = _URL.match(url)
    package = package_of(found["repository"]) if found and found["kind"] == "blob" else ""
    if found is None or not package:
        return "", "", ""
    tag, _, path = found["rest"].partition("/")
    return package, version_of_tag(package, tag), path


def change(url: str) -> tuple[str, str]:
    """Package and ``pull NUMBER`` or ``commit NAME`` of an address on GitHub; both empty for another."""
    found = _URL.match(url)
    package = package_of(found["repository"]) if found and found["kind"] != "blob" else ""
    return (package, f"{found['kind']} {found['rest'].partition('/')[0]}") if found and package else ("", "")


def _texts(fields: Mapping[str, Field]) -> tuple[str, ...]:
    if "text" not in fields:
        return ()
    return fields["text"].texts() if fields["text"].is_list else (fields["text"].text(),)


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


def stands(anchor: Anchor, content: str | None) -> str:
    """What of an anchor does not stand in its file; empty if all does. None: there is no file."""
    if content is None:
        return f"{anchor.path} is not there"
    if anchor.symbol and (content := _code_of(anchor.symbol, content) or "") == "":
        return f"{anchor.symbol} is not there"
    whole = folded(content)
    return next((f"{text!r} is not there" for text in anchor.texts if folded(text) not in whole), "")


def _code_of(symbol: str, code: str) -> str | None:
    """The text of a (dotted) function or class."""
    try:
        scope: ast.AST = ast.parse(code)
    except SyntaxError:
        return None
    for name in symbol.split("."):
        named = (node for node in ast.walk(scope) if getattr(node, "name", "") == name)
        found = next((n for n in named if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))), None)
        if found is None:
            return None
        scope = found
    return ast.get_source_segment(code, scope)
