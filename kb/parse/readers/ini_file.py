"""``key = value`` lines → options: INI, CFG and ``.env`` files. A section's name is the first part of its keys."""

from __future__ import annotations

import re

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.run import Origin
from trainmedic.kb.parse.readers.literal import word
from trainmedic.kb.parse.readers.nodes import Flattener, Leaf, Pair
from trainmedic.kb.parse.source import Piece, Reading, numbered

_SECTION = regex(r"[ \t]*\[(?P<name>[^\[\]\n]+)\][ \t]*(?:[#;].*)?$")
_ENTRY = regex(r"[ \t]*(?:export[ \t]+)?(?P<key>[\w.\-/]+)[ \t]*[=:：][ \t]*(?P<value>.*)")
_COMMENT = regex(r"(?:^|[ \t])[#;].*$")
_MOST_LINES = 4000


def read(piece: Piece) -> Reading:
    flattener = Flattener(piece, Origin.INI)
    section, partial = "", False
    for offset, line in numbered(piece.text):
        if len(flattener.options) >= _MOST_LINES:
            partial = True
            break
        if found := _SECTION.match(line):
            section = "" if found["name"].lower() in ("default", "global") else found["name"].strip() + "."
        elif not line.strip() or line.lstrip()[0] in "#;":
            pass
        elif entry := _ENTRY.match(line):
            start, end = offset + entry.start("key"), offset + entry.end("key")
            pair = Pair(key=entry["key"], start=start, end=end, value=_value(offset, entry))
            flattener.option(pair, section + entry["key"], "")
        elif len(flattener.problems) < 50:
            flattener.problem("ini_error", "not a key = value line", offset, offset + len(line))
            partial = True
    return flattener.reading(partial=partial)


def _value(offset: int, entry: re.Match[str]) -> Leaf:
    written = entry["value"].strip()
    quoted = len(written) > 1 and written[0] in "\"'" and written.find(written[0], 1) > 0
    written = written[: written.index(written[0], 1) + 1] if quoted else _COMMENT.sub("", written).rstrip()
    start = offset + entry.end("value") - len(entry["value"].lstrip())
    raw = written[1:-1] if quoted else written
    value = raw if quoted else word(raw) if raw else None
    return Leaf(start=start, end=start + len(written), value=value, raw=raw, quoted=quoted)
