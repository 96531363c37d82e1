"""The words that a condition may use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from trainmedic.kb.engine.facts import WORDS
from trainmedic.kb.frameworks.canonical import SETTINGS
from trainmedic.kb.parse.logs.signal_kinds import KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """``names``: canonical settings and the other facts of a run; ``signals``: their kinds; ``concepts``: the
    glossary's; ``flaws``: checks of training code. Empty ones but names and settings are not checked."""

    names: Collection[str]
    settings: Collection[str]
    signals: Collection[str] = ()
    concepts: Collection[str] = ()
    flaws: Collection[str] = ()


NO_WORDS = Vocabulary(names=(), settings=())


@cache
def vocabulary() -> Vocabulary:
    """The words of the shipped pages. The checks of code are loaded here: checking a run needs none of the words."""
    return Vocabulary(
        names=frozenset((*SETTINGS, *WORDS)),
        settings=frozenset(SETTINGS),
        signals=frozenset(KINDS),
        flaws=frozenset(import_module("trainmedic.kb.parse.code.flaws").CHECKS),
    )
