"""The names in the code of a release, each with its place: that of its definition, else of its first use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from trainmedic.kb.error_messages import packages
from trainmedic.kb.lazy import regex
from trainmedic.kb.sources.tree import SourceTree

# Comments and longer texts name what is not there; a short text may be the name of an option or a choice.
_TOKEN = regex(
    r"#[^\n]*|\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<name>[A-Za-z_]\w*)"
)
_PLAIN = regex(r"[A-Za-z_][\w.-]*", re.ASCII)
_DEFINED = regex(
    r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(?P<name>\w+)|^[ \t]{0,4}(?P<text>\w+)[ \t]*(?::|=(?!=))", re.MULTILINE
)
_SHORTEST = 3
MOST_DEFINED = 60
"""Files that define one name."""


class Places(NamedTuple):
    """One for each file, those near the top of the package first."""

    defined: bool
    at: tuple[tuple[str, int], ...]


class Names:
    """``text`` is what `names_text` wrote."""

    def __init__(self, text: str) -> None:
        head, separator, rest = text.partition("\n")
        self._text = separator + rest
        self._files: list[str] = json.loads(head)

    def places(self, name: str) -> Places:
        """Where a name is defined, or its first use; a dotted module and the name of a file at their first line."""
        name = name.lstrip("-")
        if (path := self._module(name)) is not None:
            return Places(True, ((path, 1),))
        return self._found(name) or self._found(name.replace("-", "_")) or Places(False, ())

    def _found(self, name: str) -> Places | None:
        if not _PLAIN.fullmatch(name) or (at := self._text.find(f"\n{name} ")) < 0:
            return None
        _, kind, *places = self._text[at + 1 : self._text.index("\n", at + 1)].split(" ")
        pairs = (place.split(":") for place in places)
        return Places(kind == "d", tuple((self._files[int(file)], int(line)) for file, line in pairs))

    def _module(self, name: str) -> str | None:
        """The file of a dotted module, or of the end of a path."""
        if "." not in name:
            return None
        stem = name.removesuffix(".py").replace(".", "/")
        ends = tuple(f"/{end}" for end in (f"{stem}.py", *(() if name.endswith(".py") else (f"{stem}/__init__.py",))))
        return next((path for path in self._files if f"/{path}".endswith(ends)), None)


def names_text(tree: SourceTree) -> str:
    """The names of a release, without those that only code of single models has."""
    files = sorted(filter(_is_of(tree), tree.paths()), key=lambda path: (path.count("/"), path))
    used: dict[str, tuple[int, int]] = {}
    defined: dict[str, dict[int, int]] = {}
    for number, path in enumerate(files):
        text = tree.text(path)
        at = line = 0
        for name, start in _named(_TOKEN.finditer(text)):
            if name not in used:
                line, at = line + text.count("\n", at, start), start
                used[name] = (number, line + 1)
        at = line = 0
        for name, start in _named(_DEFINED.finditer(text)):
            line, at = line + text.count("\n", at, start), start
            if len(places := defined.setdefault(name, {})) <= MOST_DEFINED:
                places.setdefault(number, line + 1)
    lines = (
        f"{name} d {' '.join(f'{file}:{line}' for file, line in defined[name].items())}"
        if name in defined
        else f"{name} u {used[name][0]}:{used[name][1]}"
        for name in sorted(used)
    )
    return "\n".join((json.dumps(files), *lines, ""))


def _named(matches: Iterator[re.Match[str]]) -> Iterator[tuple[str, int]]:
    for match in matches:
        name, start = match["name"], match.start()
        if name is None:
            name = (match["text"] or "").strip("\"'")
        if len(name) >= _SHORTEST and _PLAIN.fullmatch(name):
            yield name, start


def _is_of(tree: SourceTree) -> Callable[[str], bool]:
    about = packages.package(tree.package) if tree.package in packages.names() else None
    code = tuple(part.removeprefix(about.above) for part in about.code) if about is not None else ("",)
    others = ("/models/", "/dummy_")  # placeholders for classes whose packages are missing define nothing
    return lambda path: (
        path.endswith(".py")
        and path.startswith(code)
        and not any(part in path.replace("/models/auto/", "/") for part in others)
    )
