"""``key = value`` lines → options: INI, CFG and ``.env`` files. A section's name is the first part of its keys."""

from __future__ import annotations

import re

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Problem
from trainmedic.kb.model.run import Option, Origin
from trainmedic.kb.parse.readers.literal import word
from trainmedic.kb.parse.source import Piece, Reading, numbered

_SECTION = regex(r"[ \t]*\[(?P<name>[^\[\]\n]+)\][ \t]*(?:[#;].*)?$")
_ENTRY = regex(r"[ \t]*(?:export[ \t]+)?(?P<key>[\w.\-/]+)[ \t]*[=:：][ \t]*(?P<value>.*)")
_COMMENT = regex(r"(?:^|[ \t])[#;].*$")
_MOST_LINES = 4000


def read(piece: Piece) -> Reading:
    options: list[Option] = []
    problems: list[Problem] = []
    section, partial = "", False
    for offset, line in numbered(piece.text):
        if len(options) >= _MOST_LINES:
            partial = True
            break
        if found := _SECTION.match(line):
            section = "" if found["name"].lower() in ("default", "global") else found["name"].strip() + "."
        elif not line.strip() or line.lstrip()[0] in "#;":
            pass
        elif entry := _ENTRY.match(line):
            options.append(_option(piece, offset, entry, section))
        elif len(problems) < 50:
            span = piece.span(offset, offset + len(line))
            problems.append(Problem(code="ini_error", message="not a key = value line", span=span))
            partial = True
    return Reading(options=tuple(options), problems=tuple(problems), partial=partial)


def _option(piece: Piece, offset: int, entry: re.Match[str], section: str) -> Option:
    written = entry["value"].strip()
    quoted = len(written) > 1 and written[0] in "\"'" and written.find(written[0], 1) > 0
    if quoted:
        written = written[: written.index(written[0], 1) + 1]
    else:
        written = _COMMENT.sub("", written).rstrip()
    start = offset + entry.start("value")
    start += len(entry["value"]) - len(entry["value"].lstrip())
    raw = written[1:-1] if quoted else written
    key_start, key_end = offset + entry.start("key"), offset + entry.end("key")
    return Option(
        key=section + entry["key"],
        value=raw if quoted else word(raw) if raw else None,
        raw=raw,
        span=piece.span(key_start, max(start + len(written), key_end)),
        key_span=piece.span(key_start, key_end),
        value_span=piece.span(start, start + len(written)),
        origin=Origin.INI,
        quoted=quoted,
    )
