"""How people word questions: word lists of ``vocabulary.yaml``, each compiled once to one pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping
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

    A wording may touch a Chinese character or an underscore, but no other letter or digit. ``numbers`` are called as
    the readers of first messages know them, and are no parts of longer names.
    """
    end = suffix or "(?![A-Za-z0-9])"
    if table == "numbers":
        worded = {name: map(_name, sorted(listed, key=len, reverse=True)) for name, listed in terms(table).items()}
        return {
            name: re.compile(f"(?<![A-Za-z0-9_])(?:{'|'.join(listed)}){end}", re.IGNORECASE)
            for name, listed in worded.items()
        }
    return {
        name: re.compile(f"(?<![A-Za-z0-9])(?:{'|'.join(map(_fragment, listed))}){end}", re.IGNORECASE)
        for name, listed in _data()["wordings"][table].items()
    }


@cache
def switches() -> frozenset[str]:
    """Settings that a sentence switches on or off by naming them."""
    return frozenset(_data()["switches"])


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
