"""How people word questions: word lists of ``vocabulary.yaml``, each compiled once to one pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from trainmedic.kb.data_files import load_yaml
from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.said.settings import terms

_PART = regex(r"\{([a-z_]+)\}")
_GROUP = regex(r"(?<!\\)\((?!\?)")


@cache
def phrases(*entries: str) -> re.Pattern[str]:
    """One pattern for all phrases of these entries."""
    alternatives: list[str] = []
    for entry in entries:
        lists = _data()["phrases"][entry]
        alternatives += [_whole_word(phrase) for phrase in lists.get("words", ())]
        alternatives += [_fragment(phrase) for phrase in lists.get("text", ())]
    return re.compile("|".join(alternatives), re.IGNORECASE)


@cache
def wordings(table: str, suffix: str = "") -> Mapping[str, re.Pattern[str]]:
    """For each name of a table the pattern of its wordings with ``suffix`` behind them, in the order of the file.

    A wording may touch a Chinese character or an underscore, but no other letter or digit. Those of ``numbers``,
    ``attention`` and ``precision`` are the names that the readers of first messages know, and no parts of longer names.
    """
    end = suffix or "(?![A-Za-z0-9])"
    if (listed := _said(table)) is not None:
        worded = {name: map(_name, sorted(names, key=len, reverse=True)) for name, names in listed.items()}
        start = "(?<![A-Za-z0-9_])"
    else:
        worded = {name: map(_fragment, names) for name, names in _data()["wordings"][table].items()}
        start = "(?<![A-Za-z0-9])"
    return {name: re.compile(f"{start}(?:{'|'.join(names)}){end}", re.IGNORECASE) for name, names in worded.items()}


def _said(table: str) -> Mapping[str, Sequence[str]] | None:
    """The names of settings, or of the values of a setting, of a table that belongs to the readers."""
    if table == "numbers":
        return terms(table)
    values = {key.partition("="): names for key, names in terms("choices").items()}
    if table == "precision":
        return {name: names for (name, _, _), names in values.items() if name in ("bf16", "fp16")}
    if table != "attention":
        return None
    switched = terms("switches")
    return {
        value: (*names, *switched.get(f"{table}={value}", ()))
        for (name, _, value), names in values.items()
        if name == table
    }


@cache
def switches() -> frozenset[str]:
    """Settings that a sentence switches on or off by naming them."""
    return frozenset(name for name in terms("switches") if "=" not in name)


@cache
def _data() -> Mapping[str, Any]:
    return load_yaml("trainmedic.service.dialogue", "vocabulary.yaml")


def _name(term: str) -> str:
    """A name as a pattern: written apart, together or with hyphens, and in the plural."""
    return re.escape(term).replace(r"\ ", "[-_ ]?") + ("s?" if term.isascii() else "")


def _fragment(phrase: str) -> str:
    """The phrase as a pattern: named parts put in, and no group that captures."""
    parts = _data()["parts"]
    return _GROUP.sub("(?:", _PART.sub(lambda name: parts[name[1]], phrase))


def _whole_word(phrase: str) -> str:
    start = "" if phrase.startswith("…") else r"\b"
    end = "" if phrase.endswith("…") else r"\b"
    return f"{start}(?:{_fragment(phrase.strip('…'))}){end}"
