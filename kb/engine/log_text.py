"""Lines of a log that are neither a metric row nor a traceback: warnings, notices, refusals.

A cheap search for a literal text comes first; a pattern sees only the line on which the literal was found. Code,
configurations and commands are skipped, since a script may hold the very sentence that it prints, and so is a line in
which the user says that the message no longer appears.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.negation import LOG_LINE

MOST = 20
"""Occurrences of one text that are looked at: a warning may be repeated a million times."""
LEAST_LITERAL = 4
"""Characters of a pattern that must be literal in a row; the search for them keeps long logs cheap."""
_CODE = frozenset({"python", "json", "toml", "command"})
_PAIRS = frozenset({"yaml", "ini"})
_FILES = (".yaml", ".yml", ".ini", ".cfg", ".conf")
"""Lines of the form ``name: words`` are a configuration in such a file; elsewhere a log may look like that."""
_WORD = regex(r"\w+")
_WILDCARDS = regex(r"(\*|\?|\[[^\]]+\])")


def lines(evidence: Evidence, literal: str, pattern: re.Pattern[str] | None = None, most: int = MOST) -> Iterator[Span]:
    """The places of a literal text, at most ``most`` a source; with a pattern, of what it matches on that line."""
    for source in evidence.sources:
        yield from _in_source(evidence, source, literal, pattern, most)


def first(evidence: Evidence, literal: str, pattern: re.Pattern[str] | None = None) -> Span | None:
    """The first of `lines`."""
    return next(lines(evidence, literal, pattern), None)


def find(evidence: Evidence, text: str) -> Span | None:
    """The first place of a text with wildcards (see `pattern_of`)."""
    return first(evidence, literal_of(text), pattern_of(text))


class Haystack:
    """All text of some evidence, in which hundreds of texts are looked for that are hardly ever there.

    A text with a whole word that the evidence does not have is not looked for any further.
    """

    __slots__ = ("_evidence", "_text", "_words")

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._text: str | None = None
        self._words: frozenset[str] = frozenset()

    @property
    def words(self) -> frozenset[str]:
        """All whole words of the text."""
        self._read()
        return self._words

    def find(self, text: str) -> Span | None:
        """As `find`."""
        everything = self._read()
        literal, words = _needle(text)
        if not words <= self._words or literal not in everything:
            return None
        return find(self._evidence, text)

    def _read(self) -> str:
        if self._text is None:
            self._text = "\n".join(source.text for source in self._evidence.sources)
            self._words = frozenset(_WORD.findall(self._text))
        return self._text


@cache  # bounded: the texts are those of the pages
def _needle(text: str) -> tuple[str, frozenset[str]]:
    """The literal part of a text, and the words that are whole in it: those at its ends may be parts of longer ones."""
    literal = literal_of(text)
    inner = (match[0] for match in _WORD.finditer(literal) if match.start() > 0 and match.end() < len(literal))
    return literal, frozenset(inner)


def inner_words(text: str) -> frozenset[str]:
    """The words without which a text with wildcards is nowhere."""
    return _needle(text)[1]


def literal_of(text: str) -> str:
    """The longest literal part of a text with wildcards."""
    return max(_WILDCARDS.split(text)[::2], key=len)


@cache  # bounded: the texts are those of the pages
def pattern_of(text: str) -> re.Pattern[str] | None:
    """The pattern of a text with wildcards, None without any.

    ``*`` is the shortest stretch of the line that fits, ``?`` one character, ``[ab]`` one of these characters. At the
    end, ``*`` is the rest of the word and ``**`` the rest of the line.
    """
    parts = [part for part in _WILDCARDS.split(text) if part]
    if len(parts) == 1 and not _WILDCARDS.fullmatch(parts[0]):
        return None
    ending = ""
    if parts[-2:] == ["*", "*"]:
        parts, ending = parts[:-2], r"[^\n]{0,120}"
    elif parts[-1:] == ["*"]:
        parts, ending = parts[:-1], r"[!-~]{0,120}[0-9A-Za-z_]"
    pieces = [_translated(part, before) for before, part in zip(["", *parts], parts, strict=False)]
    return re.compile("".join(pieces) + ending)


def _translated(part: str, before: str) -> str:
    if part == "*":  # a stretch that holds the text before it again would not be the shortest one
        again = "" if not before or _WILDCARDS.fullmatch(before) else f"(?!{re.escape(before)})"
        return rf"(?:{again}[^\n]){{0,200}}?"
    if part == "?":
        return r"[^\n]"
    return f"[{re.escape(part[1:-1])}]" if _WILDCARDS.fullmatch(part) else re.escape(part)


def _in_source(
    evidence: Evidence, source: Source, literal: str, pattern: re.Pattern[str] | None, most: int
) -> Iterator[Span]:
    text, at, seen = source.text, -1, 0
    while seen < most and (at := text.find(literal, at + 1)) >= 0:
        seen += 1
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        number = text.count("\n", 0, start) + 1
        kind = _kind(evidence, source.name, number)
        if in_code(evidence, source.name, number) or (kind == "prose" and LOG_LINE.within(text[start:end])):
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


def in_code(evidence: Evidence, name: str | None, line: int) -> bool:
    """Whether a line is of a script, a command or a configuration, which may hold the sentence that it prints."""
    kind = _kind(evidence, name, line)
    return kind in _CODE or (kind in _PAIRS and name is not None and name.lower().endswith(_FILES))


def _kind(evidence: Evidence, name: str | None, line: int) -> str:
    for region in evidence.regions:
        if region.source == name and region.start_line <= line <= region.end_line:
            return region.kind
    return ""
