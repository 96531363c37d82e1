"""The names in the code of a release, each with its place: that of its definition, else of its first use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

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


class Names:
    """``text`` is what `names_text` wrote."""

    def __init__(self, text: str) -> None:
        head, separator, rest = text.partition("\n")
        self._text = separator + rest
        self._files: list[str] = json.loads(head)

    def place(self, name: str) -> tuple[str, int] | None:
        """File and line of a name, of a dotted one those of its last part; the first line of a module or file."""
        name = name.lstrip("-")
        if (path := self._module(name)) is not None:
            return path, 1
        first, dot, last = name.rpartition(".")
        owner = first.rpartition(".")[2]
        if dot and owner[:1].isupper() and self._found(owner) is None:
            return None
        return self._found(last) or self._found(last.replace("-", "_"))

    def _found(self, name: str) -> tuple[str, int] | None:
        if not _PLAIN.fullmatch(name) or (at := self._text.find(f"\n{name} ")) < 0:
            return None
        _, file, line = self._text[at + 1 : self._text.index("\n", at + 1)].split(" ")
        return self._files[int(file)], int(line)

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
    defined: dict[str, tuple[int, int]] = {}
    for number, path in enumerate(files):
        text = tree.text(path)
        for found, where in ((defined, _DEFINED.finditer(text)), (used, _TOKEN.finditer(text))):
            at = line = 0
            for name, start in _named(where):
                if name not in found:
                    line += text.count("\n", at, start)
                    at = start
                    found[name] = (number, line + 1)
    places = used | {name: place for name, place in defined.items() if name in used}
    return "\n".join(
        (json.dumps(files), *(f"{name} {file} {line}" for name, (file, line) in sorted(places.items())), "")
    )


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
    return lambda path: (
        path.endswith(".py") and path.startswith(code) and "/models/" not in path.replace("/models/auto/", "/")
    )
