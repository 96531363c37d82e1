"""Statements about the run in a message: "no, I use bf16", "I have only 4 GPUs", "升级到 0.3.5 了". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmedic.kb.frameworks.catalogue import is_option
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.model.place import Span
from trainmedic.kb.parse.readers.versions import PACKAGES, package
from trainmedic.service.dialogue.supposition import changes_in
from trainmedic.service.dialogue.vocabulary import phrases

MAX_REPORT = 2_000
"""Code points of a message that are read."""
MAX_REPORTED_CLAUSE = 200
FEW_LINES = 3
"""Lines of a message in whose sentences a bare ``name: value`` is said of the run; longer ones are pasted."""
_BREAKS = regex(r"([,;!?，。；！？\n]+|\.(?=\s|$)|\bbut\b|\band (?=it|still|now|the|that|[a-z]{2,10}\d{1,2} ))")
_RELEASE = regex(r"[A-Za-z版本].{0,20}\d\.\d+\.\d|version|版本|cuda|python|torch", re.IGNORECASE)
FEW_WORDS = 5
"""Words of a clause that goes on with the one before it: "it is a 7B model, 8 generations"."""
IT = "it"
"""The setting that the answer before told to change."""
_IT = regex(
    r"\b(?:set|changed|raised|raising|lowered|lowering|put|increased|reduced) (?:it|that|this) (?:to|at)\s?"
    r"(?P<value>[\d.eE+-]{1,16})|"
    r"(?:改|调|设|升|降|加)(?:成|到|为|了)\s?(?P<value_zh>[\d.eE+-]{1,16})",
    re.IGNORECASE,
)
_ASKS = regex(r"[?？]|[吗呢么]\s*$")
# A version behind a verb or the word "version", with at most one name and the old version between them.
_REPORTED_VERSION = regex(
    r"(?:(?:(?P<owner>[A-Za-z][\w-]{0,20})\s)?version|grad\w{1,3}|updated?|updating|bumped|moved|now on|"
    r"版本|升级|更新|降级|升|降)\s?(?P<name>[A-Za-z][\w-]{1,20}(?=\s))?"
    r"[\s:=是为]{0,3}(?:(?:from|从)\s?v?[\d.]{1,14}\s)?(?:to|is|at|到了?|成)?[\s:=]{0,3}v?"
    r"(?P<version>\d{1,4}(?:\.\d{1,4}){1,3})(?![\w.]*\w)",
    re.IGNORECASE,
)
_NO_NAMES = frozenset({"it", "to", "is", "from", "at", "the", "on", "my", "its", "our", "which", "installed"})
# A name that no word has, with its value.
_VALUED = regex(r"(?<![\w.])-{0,2}(?P<name>[A-Za-z]\w{1,60})\s?[:=]\s?[\w.+-]")
_EQUALS = regex(r"\b(?:is|are|=)\b|[是为=]")
_PAIR = regex(r"(?<![\w.])-{0,2}(?P<name>[A-Za-z][A-Za-z0-9]*_\w{1,60})\s?(?:[:=]|is|是)\s?(?P<value>[\w.+-]{1,60})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A setting, option or package with its present value, and where the message says so.

    ``done``: it was changed, so that what was pasted of the run is from before. ``about`` is the cause of the answer
    before, where the message says only "it".
    """

    value: str
    place: Span
    done: bool = False
    about: tuple[str, ...] = ()


def statements_in(
    text: str, framework: str | None, glossary: Glossary, read: Read, source: str | None = None
) -> dict[str, Statement]:
    """The settings, options and packages that a message says, by name. ``source`` is the message's name.

    A version without a name is that of the framework.
    """
    text = text[:MAX_REPORT]
    states = _RELEASE.search(text) is not None and phrases("worked_with").search(text) is None
    found = {
        fact.package: Statement(value=fact.exact, place=stretch(text, 0, len(text), source))
        for fact in (read(text, ()).versions.values() if states else ())
        if fact.exact is not None
    }
    corrected = listing = False
    for start, clause, asks in _clauses(text):
        place = stretch(text, start, start + len(clause), source)
        corrected = corrected or phrases("corrects").search(clause) is not None
        named = changes_in(clause, glossary)
        for match in _REPORTED_VERSION.finditer("" if asks else clause):
            name = match["name"] or match["owner"]
            if name is None or name.lower() in _NO_NAMES:
                name = framework if match["version"] not in named.values() else None
            if name is not None and package(name) in PACKAGES:
                done = not match[0].lower().startswith(("version", "版本"))
                found[package(name)] = Statement(value=match["version"], place=place, done=done)
        done = phrases("reported_change").search(clause) is not None
        equals = _EQUALS.search(clause) is not None and any(value[-1:].isdigit() for value in named.values())
        said = _is_said(clause, text, corrected=corrected, equals=equals)
        listing = not asks and (said or (listing and _is_short(clause)))
        if done or listing:
            pairs = {match["name"]: match["value"] for match in _PAIR.finditer("" if asks else clause)}
            for name, value in ({**pairs, **named}).items():
                found.setdefault(name, Statement(value=value, place=place, done=done))
    if not found and (it := _IT.search(text)) is not None:
        found[IT] = Statement(value=it["value"] or it["value_zh"], place=stretch(text, *it.span(), source), done=True)
    return found


def _is_short(clause: str) -> bool:
    return len(clause.split()) <= FEW_WORDS and phrases("was", "past", "is_not").search(clause) is None


def corrects(text: str) -> bool:
    """Whether a message contradicts what was read of the run."""
    return phrases("corrects").search(text[:MAX_REPORT]) is not None


def _is_said(clause: str, text: str, *, corrected: bool, equals: bool) -> bool:
    """Whether a clause says how the run is: not how it was, nor what it is not."""
    if phrases("past", "is_not", "measured").search(clause) or (phrases("was").search(clause) and not corrected):
        return False
    if equals or phrases("states").search(clause) or (corrected and phrases("is", "was").search(clause)):
        return True
    return text.count("\n") < FEW_LINES and (
        _PAIR.search(clause) is not None or any(is_option(match["name"]) for match in _VALUED.finditer(clause))
    )


def _clauses(text: str) -> Iterator[tuple[int, str, bool]]:
    """The clauses with their offsets, and whether each asks."""
    at = 0
    parts = _BREAKS.split(text)
    for clause, mark in zip(parts[::2], [*parts[1::2], ""], strict=True):
        if clause and len(clause) <= MAX_REPORTED_CLAUSE:
            yield at, clause, _ASKS.search(clause + mark) is not None
        at += len(clause) + len(mark)


def stretch(text: str, start: int, end: int, source: str | None) -> Span:
    """``text[start:end]`` without the blanks around it, as a place in the text named ``source``."""
    start += len(text[start:end]) - len(text[start:end].lstrip())
    end = start + len(text[start:end].rstrip())
    line, column = text.count("\n", 0, start) + 1, start - (text.rfind("\n", 0, start) + 1) + 1
    last, stop = text.count("\n", 0, end) + 1, end - (text.rfind("\n", 0, end) + 1) + 1
    return Span(attachment=source, line=line, column=column, end_line=last, end_column=stop, text=text[start:end])
