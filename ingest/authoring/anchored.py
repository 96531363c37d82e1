"""Claims of a page anchored to source that is read again: its version bounds, options, defaults, messages.

Besides the anchors that are written (`kb.pages.anchor`) the shipped tables count, which are made from source: the
options and messages of releases, and the defects with their fixes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from trainmedic.ingest.update import quoted
from trainmedic.kb.error_messages.index import load_index
from trainmedic.kb.error_messages.template import skeleton
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.profiles import profiles, select
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.frameworks.tables import Table, table
from trainmedic.kb.lazy import regex
from trainmedic.kb.pages.anchor import Cut, anchors, folded, place
from trainmedic.kb.pages.defect import defects_of
from trainmedic.kb.pages.page import Field, read_page
from trainmedic.kb.versions import version_key

Kind = Literal["bound", "option", "default", "message"]
LIBRARIES = select("library", "server")
LEAST, CLEAR = 4, 12
"""Characters in a row by which a message is told; by which a template is, of which it has more than the name."""
WILD = regex(r"[*?\d]+|\[[^\]]*\]")
_BLANK = regex(r"[*?]+|\[[^\]]*\]")
_NAME = regex(r"`-{0,2}([A-Za-z][\w.-]+)")
_OPTION = ("option", "has_option", "option_has_value", "option_origin")
_SETTING = ("", "written", "default_used")
_SAID = ("log_says", "traceback")
_NO_MESSAGE = regex(r"\w*(?:Error|Exception)(?:: None)?$|\.py\b|\bin \w+$|^/|^host=")
"""An exception's name, a place in a traceback, an address."""
_OF_PYTHON = regex(
    r"keyword argument|cannot import name|has no attribute|KeyError: '|No module named|positional argument"
)
"""What the interpreter says of a name."""
_QUOTED = regex(r"'(\w+)'|(\w+)\(\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """``by`` is what it rests on: ``anchor``, ``options``, ``messages``, ``defects``; empty if nothing is known."""

    kind: Kind
    what: str
    page: str
    line: int
    by: str = ""


class Claims:
    """The claims of one page."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        page, self.front = read_page(path.read_text(encoding="utf-8"), name)
        self.text = page.text
        self.anchors = tuple(anchors(self.front))
        self.fields = self.front.mapping()
        checks = self.fields["checks"].items() if "checks" in self.fields else ()
        self.checks = [check.mapping() for check in checks]
        self.applies = [check["applies"].mapping() for check in self.checks if "applies" in check]

    def all(self) -> tuple[Claim, ...]:
        return (*self._bounds(), *self._options(), *self._defaults(), *self._messages())

    @property
    def urls(self) -> list[str]:
        """The addresses of its sources."""
        listed = (fields["sources"].items() for fields in (self.fields, *self.checks) if "sources" in fields)
        return [source.mapping()["url"].text() for sources in listed for source in sources]

    @cached_property
    def frameworks(self) -> tuple[str, ...]:
        """Those whose tables count, libraries last."""
        named = list(self.fields["frameworks"].texts() if "frameworks" in self.fields else ())
        named += (name for applies in self.applies if "framework" in applies for name in applies["framework"].texts())
        return tuple(dict.fromkeys((*(named or catalogue.frameworks()), *LIBRARIES)))

    @cached_property
    def _terms(self) -> tuple[tuple[Field, str, tuple[str, ...]], ...]:
        """What conditions and fixes read: field, function (empty: a bare name), its literal arguments."""
        whens = [check["when"] for check in self.checks if "when" in check]
        fixes = [fix.mapping() for check in self.checks if "fix" in check for fix in check["fix"].items()]
        found: list[tuple[Field, str, tuple[str, ...]]] = []
        for field in (*whens, *(fix["when"] for fix in fixes if "when" in fix)):
            tree = ast.parse(" ".join(field.raw.split()), mode="eval")
            called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and id(node) not in called:
                    found.append((field, "", (node.id,)))
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    literal = (a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
                    found.append((field, node.func.id, tuple(literal)))
        return tuple(found)

    def _claim(self, kind: Kind, what: str, line: int, by: str) -> Claim:
        return Claim(kind=kind, what=what, page=self.name, line=line, by=by)

    def _ranges(self) -> Iterator[tuple[Field, str, str]]:
        """Field, package and range of every statement about versions."""
        whole = [self.fields[name] for name in ("affected", "fixed") if name in self.fields]
        for field in (*whole, *(each["versions"] for each in self.applies if "versions" in each)):
            for package, value in field.mapping().items():
                text = value.text()
                yield value, package, text if text[0] in "<>=!~" else f">={text}"
        for field, function, arguments in self._terms:
            if function in ("version", "pinned") and len(arguments) > 1:
                yield field, arguments[-2], arguments[-1]

    @cached_property
    def _keys(self) -> Mapping[str, tuple[Field, tuple[str, ...], tuple[str, ...]]]:
        """Options and settings of the conditions: field, spellings, scopes."""
        found: dict[str, tuple[Field, tuple[str, ...], tuple[str, ...]]] = {}
        for field, function, (name, *scopes) in (term for term in self._terms if term[2]):
            if function in _OPTION:
                found.setdefault(name, (field, (name,), tuple(scopes)))
            elif function in _SETTING and name in specs():
                keys = (key.key for framework in self.frameworks for key in specs()[name].keys(framework))
                found.setdefault(name, (field, tuple(keys), ()))
        return found

    @cached_property
    def options(self) -> frozenset[str]:
        """The spellings of all options that the page names."""
        named = {key for _, keys, _ in self._keys.values() for key in keys}
        return frozenset(map(_plain, named.union(_NAME.findall(self.text), *(each.texts for each in self.anchors))))

    def _bounds(self) -> Iterator[Claim]:
        found: dict[Cut, Field] = {}
        for field, package, text in self._ranges():
            for cut in Cut.of(package, text):
                found.setdefault(cut, field)
        for cut, field in found.items():
            yield self._claim("bound", str(cut), field.line, self._rests(cut))

    def _rests(self, cut: Cut) -> str:
        known = known_releases(cut.package)
        wanted = cut.above(known) or cut.version
        own = [each for a in self.anchors if a.package == cut.package for each in Cut.of(cut.package, a.within)]
        if any(_is_same(each, cut, known) for each in own):
            return "anchor"
        number = re.compile(rf"(?<![\w.]){re.escape(cut.version)}(?:\.0)*(?!\.?\d)")
        if "." in cut.version and any(number.search(text) for anchor in self.anchors for text in anchor.texts):
            return "anchor"  # the code asks for this version
        if any(self.options & _turning(known, cut) for known in _tables_of(cut.package)):
            return "options"
        cited = {name for package, _, name in map(place, self.urls) if package == cut.package}
        repairs = (defect for defect in defects_of([cut.package]) if f"pull {defect.pull}" in cited)
        return "defects" if any(version_key(each.fixed or "") == version_key(wanted) for each in repairs) else ""

    def _options(self) -> Iterator[Claim]:
        for name, (field, keys, scopes) in self._keys.items():
            there = any(_knows(scope, key) for scope in (*scopes, *self.frameworks) for key in keys)
            by = "options" if there else "anchor" if self._is_named([name, *keys]) else ""
            yield self._claim("option", name, field.line, by)

    def _is_named(self, words: Sequence[str]) -> bool:
        texts = " ".join(text for anchor in self.anchors for text in (*anchor.texts, anchor.symbol))
        last = (re.escape(_plain(word).rpartition(".")[2]).replace("_", "[-_]") for word in words)
        return any(re.search(rf"(?<![^\W_]){word}(?!\w)", texts) for word in last)

    def _defaults(self) -> Iterator[Claim]:
        for quote in quoted.quotes_of(self.path):
            holds = quoted.history(quote, {}) and not any(quoted.faults([quote]))
            by = "options" if holds else "anchor" if self._is_named([quote.option]) else ""
            yield self._claim("default", f"{quote.option} = {quote.value}", int(quote.place.rpartition(":")[2]), by)

    def _messages(self) -> Iterator[Claim]:
        for said, field in self.said.items():
            yield self._claim("message", said, field.line, self._message_rests(said))

    @cached_property
    def said(self) -> Mapping[str, Field]:
        """The messages that conditions look for."""
        terms = ((said, field) for field, function, arguments in self._terms if function in _SAID for said in arguments)
        return {said: field for said, field in terms if not _NO_MESSAGE.search(said)}

    def _message_rests(self, said: str) -> str:
        if any(_is_of(folded(text).lower(), said) for anchor in self.anchors for text in anchor.texts):
            return "anchor"
        if _OF_PYTHON.search(said):
            names = ["".join(found) for found in _QUOTED.findall(said)][-1:]
            if any(_knows(framework, name) for framework in self.frameworks for name in names):
                return "options"
            return "anchor" if self._is_named(names) else ""
        filled = _BLANK.sub("x", said)  # what a literal says may be the value in a hole of a message
        return "messages" if _is_shipped(said) or load_index().find([filled]) else ""


def _is_same(own: Cut, cut: Cut, known: Sequence[str]) -> bool:
    """Whether two cuts are one: ``>4.48`` is ``>=4.48.1``; ``>=4.46`` is ``>=4.46.1`` where there is no 4.46.0."""
    mine, other, above = (version_key(v) for v in (own.version, cut.version, cut.above(known)))
    if cut.after:
        return mine > other and version_key(own.above(known)) == above
    first = mine.release[:2] == other.release[:2] and mine.micro <= 1 and above >= mine
    return mine == other or (mine > other and first)


def _knows(framework: str, key: str) -> bool:
    """Whether a catalogue has an option, by its whole name or the end of it."""
    known = table(framework)
    return known is not None and (_plain(key) in _ends(known) or catalogue.option(framework, key) is not None)


def _plain(name: str) -> str:
    return name.replace("-", "_")


@cache
def _ends(known: Table) -> frozenset[str]:
    """The names of all options and what is behind their dots."""
    split = (_plain(name).split(".") for name in known.names)
    return frozenset(".".join(parts[at:]) for parts in split for at in range(len(parts)))


@cache
def _turning(known: Table, cut: Cut) -> frozenset[str]:
    """The options that come, go or change at a cut, by whole and last name; none if a release beside it is unread."""
    above = cut.above(known.examined)
    before = known.examined[known.examined.index(above) - 1] if above and above != known.examined[0] else ""
    exact = version_key(above) == version_key(cut.version) or (cut.after and before == cut.version)
    found = set()
    for name in known.names if before and exact else ():
        line = known.line(name) or {}
        changed = before in known.versions and any(known.versions[start] == above for start, _, _ in line["runs"])
        if changed or line["life"][0] == above or line["life"][1] == before:
            found |= {_plain(name), _plain(name).rpartition(".")[2]}
    return frozenset(found)


@cache
def _tables_of(package: str) -> tuple[Table, ...]:
    return tuple(
        known
        for framework in catalogue.frameworks()
        if (profiles()[framework].declared_in or profiles()[framework].package) == package
        and (known := table(framework)) is not None
    )


@cache
def known_releases(package: str) -> tuple[str, ...]:
    """The releases that the shipped tables know, ascending."""
    found = {release for known in _tables_of(package) for release in known.examined}
    found.update(r for known in load_index().tables if known.package == package for r in known.releases)
    return tuple(sorted(found, key=version_key))


def _says(said: str, literal: str) -> bool:
    """Whether the parts of a literal between wildcards and numbers stand in a text in their order."""
    at = 0
    for part in (part.strip().lower() for part in WILD.split(literal)):
        if len(part) >= LEAST:
            at = said.find(part, at)
            if at < 0:
                return False
            at += len(part)
    return at > 0


def _is_of(text: str, literal: str) -> bool:
    """Whether a text has a literal, or is a template that says it."""
    pieces = [part.rpartition("}")[2] for part in text.split("{")]
    return _says(text, literal) or (len(max(pieces, key=len)) >= CLEAR and _says(literal.lower(), "*".join(pieces)))


@cache
def _skeletons() -> frozenset[str]:
    tables = load_index().tables
    return frozenset(folded(skeleton(t.template(n)[0])).lower() for t in tables for n in range(len(t)))


@cache
def _is_shipped(literal: str) -> bool:
    """Whether a shipped message contains a literal."""
    longest = max((part.strip().lower() for part in WILD.split(literal)), key=len, default="")
    return len(longest) >= LEAST and any(longest in text and _says(text, literal) for text in _skeletons())
