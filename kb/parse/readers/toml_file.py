"""TOML text → options with positions. A line scan finds every entry; broken TOML keeps the entries that can be read."""

from __future__ import annotations

import re

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Origin
from trainmedic.kb.parse.readers.literal import Scanner
from trainmedic.kb.parse.readers.nodes import Entries, Flattener, Items, Leaf, Node, Pair
from trainmedic.kb.parse.source import Piece, Reading, numbered

_TABLE = regex(r"[ \t]*(?P<array>\[)?\[(?P<name>[^\[\]\n]+)\]{1,2}[ \t]*(?:#.*)?$")
_ENTRY = regex(
    r"[ \t]*(?P<key>(?:[\w\-]+|\"[^\"\n]*\"|'[^'\n]*')(?:[ \t]*\.[ \t]*(?:[\w\-]+|\"[^\"\n]*\"))*)[ \t]*=[ \t]*(?=\S)"
)
MOST_PARTS = 100
_ENDLESS_KEY = regex(rf"^[ \t]*\[*(?:[\w\-]+\.){{{MOST_PARTS}}}", re.MULTILINE)
_DATE = regex(r"\d{4}-\d\d-\d\d[T ]?[\d:.+\-Z]*|\d\d:\d\d:\d\d[\d.]*")


def read(piece: Piece) -> Reading:
    """All entries, tables as dotted keys (``train.lr``), arrays of tables numbered (``datasets.0.path``)."""
    flattener = Flattener(piece, Origin.TOML)
    text = piece.text
    scanner = Scanner(text, code="toml_error")
    root = Entries(start=0, end=len(text))
    numbers: dict[str, int] = {}
    prefix = ""
    for start, line in numbered(text):
        if start < scanner.at:
            continue  # inside a value of several lines
        if table := _TABLE.match(line):
            prefix = _prefix(table, numbers)
        elif entry := _ENTRY.match(text, start):
            scanner.at = entry.end()
            value = _value(text, scanner)
            if value is not None:
                key = prefix + _plain(entry["key"])
                root.pairs.append(Pair(key=key, start=entry.start("key"), end=entry.end("key"), value=value))
        elif line.strip() and not line.lstrip().startswith("#"):
            scanner.flaw("not a key = value line", start, start + len(line))
    flattener.add(root)
    broken = _broken(text)
    flattener.flaws(scanner.flaws)
    if broken and not scanner.flaws:
        flattener.problem("toml_error", broken, 0, 0)
    return flattener.reading(partial=bool(broken))


def _prefix(table: re.Match[str], numbers: dict[str, int]) -> str:
    name = _plain(table["name"])
    if table["array"]:
        numbers[name] = numbers.get(name, -1) + 1
        return f"{name}.{numbers[name]}."
    parent = name.rpartition(".")[0]
    if parent in numbers:
        return f"{parent}.{numbers[parent]}.{name.rpartition('.')[2]}."
    return f"{name}."


def _plain(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _value(text: str, scanner: Scanner) -> Node | None:
    date = _DATE.match(text, scanner.at)
    if date:
        scanner.at = date.end()
        return Leaf(start=date.start(), end=date.end(), value=date[0].strip(), raw=date[0].strip())
    value = scanner.value()
    return value if isinstance(value, Leaf | Items | Entries) else None


def _broken(text: str) -> str:
    """Why the text is not TOML, or ""."""
    if _ENDLESS_KEY.search(text) is not None:  # tomllib takes the square of a key's parts
        return f"a key of more than {MOST_PARTS} parts"
    import tomllib  # most runs have no TOML

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return str(error)
    except (RecursionError, ValueError):
        return "nested too deeply, or a number too long, for a TOML reader"
    return ""
