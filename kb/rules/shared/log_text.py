"""Lines of a log that are neither a row nor a traceback: warnings, notices, refusals. One place to find them.

Only literal text is looked for on the whole; a pattern sees the single line on which it stands. Code, configurations
and commands are left out (a script may hold the sentence that it prints), and so is a line in which a user denies it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.negation import LOG_LINE

MOST = 20
"""No more places of one text are looked at: a warning repeated a million times says it once."""
_CODE = frozenset({"python", "json", "toml", "command"})
_PAIRS = frozenset({"yaml", "ini"})
_FILES = (".yaml", ".yml", ".ini", ".cfg", ".conf")
"""Lines of the form ``name: words`` are a configuration in such a file; elsewhere a log may look like that."""


def lines(facts: Facts, literal: str, pattern: re.Pattern[str] | None = None, most: int = MOST) -> Iterator[Span]:
    """Where a text stands in what was pasted. With a pattern, what it matches on that line is the place."""
    for source in facts.evidence.sources:
        yield from _in_source(facts, source, literal, pattern, most)


def first(facts: Facts, literal: str, pattern: re.Pattern[str] | None = None) -> Span | None:
    """The first such place."""
    return next(lines(facts, literal, pattern), None)


def any_of(facts: Facts, texts: Iterable[tuple[str, re.Pattern[str] | None]]) -> Outcome:
    """The outcome of a rule that looks for one of several texts: the first of them, in the order given, that stands."""
    return told(next((span for text, pattern in texts if (span := first(facts, text, pattern)) is not None), None))


def told(span: Span | None, **shown: str) -> Outcome:
    """The outcome of a rule that looks for one line. Its absence from an excerpt proves nothing, so it is not false."""
    if span is None:
        return Outcome(value=None)
    return Outcome(value=True, evidence=(span,), user_provided=True, values=shown)


def _in_source(
    facts: Facts, source: Source, literal: str, pattern: re.Pattern[str] | None, most: int
) -> Iterator[Span]:
    text, at, seen = source.text, -1, 0
    while seen < most and (at := text.find(literal, at + 1)) >= 0:
        seen += 1
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        number = text.count("\n", 0, start) + 1
        kind = _kind(facts, source.name, number)
        if _is_code(kind, source.name) or (kind == "prose" and LOG_LINE.within(text[start:end])):
            continue
        match = pattern.search(text, start, end) if pattern is not None else None
        if pattern is not None and match is None:
            continue
        begin, stop = match.span() if match is not None else (at, at + len(literal))
        yield Span(
            attachment=source.name,
            line=number,
            column=begin - start + 1,
            end_line=number,
            end_column=stop - start + 1,
            text=text[begin:stop],
        )


def _is_code(kind: str, name: str | None) -> bool:
    return kind in _CODE or (kind in _PAIRS and name is not None and name.lower().endswith(_FILES))


def _kind(facts: Facts, name: str | None, line: int) -> str:
    """What kind of text stands on a line; empty where it belongs to no region that was read."""
    for region in facts.evidence.regions:
        if region.source == name and region.start_line <= line <= region.end_line:
            return region.kind
    return ""
