"""Programs, classes and option values that name a framework and an algorithm, as the profiles list them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from trainmedic.kb.frameworks.profiles import ALGORITHMS, profiles
from trainmedic.kb.frameworks.tables import table

_STAGES: Mapping[str, str] = ALGORITHMS["stages"]
_WORDS: Mapping[str, str] = {**ALGORITHMS["verbs"], **{name: name for name in _STAGES}}
_PURPOSES: Mapping[str, str] = {word: stage for stage, words in ALGORITHMS["purposes"].items() for word in words}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a program or class is. ``certain`` is False for bare script names that several projects could have."""

    framework: str
    algorithm: str | None = None
    stage: str | None = None
    certain: bool = True


def stage_of(algorithm: str) -> str:
    """The stage an algorithm belongs to; the algorithm's own name if it is unknown."""
    return _STAGES.get(algorithm, algorithm)


def _entry(framework: str, word: str | None, stage: str | None = None, *, certain: bool = True) -> Entry:
    word = (word or "").lower()
    algorithm = _WORDS.get(word)
    named = _PURPOSES.get(word) or _STAGES.get(algorithm or "")
    return Entry(framework=framework, algorithm=algorithm, stage=named or stage, certain=certain)


@cache
def _programs() -> tuple[tuple[re.Pattern[str], str, str | None, bool], ...]:
    """(pattern, framework, stage, certain), those that leave no doubt first."""
    found: list[tuple[re.Pattern[str], str, str | None, bool]] = []
    for profile in profiles().values():
        if profile.commands.names and profile.commands.recognised:
            names = "|".join(map(re.escape, profile.commands.names))
            found.append((re.compile(rf"^(?:{names})\s+([\w-]+)$"), profile.name, None, True))
        found += [(re.compile(each.match), profile.name, each.stage, each.certain) for each in profile.programs]
    return tuple(sorted(found, key=lambda program: not program[3]))


@lru_cache(maxsize=512)
def program_entry(program: str) -> Entry | None:
    """What a started program is: a module, a script path, or a command with its verb (``swift rlhf``)."""
    text = " ".join(program.split())
    for pattern, framework, stage, certain in _programs():
        match = pattern.search(text)
        if match:
            return _entry(framework, match[1] if pattern.groups else None, stage, certain=certain)
    return None


@lru_cache(maxsize=512)
def class_entry(scope: str) -> Entry | None:
    """What a class that the user's Python calls belongs to."""
    return next(_class_entries(scope), None)


def _class_entries(scope: str) -> Iterator[Entry]:
    known = profiles().values()
    stem = next((scope.removesuffix(end) for end in ("Config", "Trainer") if scope.endswith(end)), scope)
    for profile in known:
        if stem != scope and stem in profile.trainers:
            word = profile.trainers[stem]
            yield _entry(profile.name, word) if isinstance(word, str) else Entry(framework=profile.name, **word)
        if scope in profile.classes:
            yield _entry(profile.name, profile.classes[scope])
    for profile in known:
        if scope in profile.weak_classes:
            yield _entry(profile.name, profile.weak_classes[scope], certain=False)
    for profile in known:
        if profile.trainers and stem != scope and _catalogued(profile.name, stem + "Config"):
            yield Entry(framework=profile.name)


def _catalogued(framework: str, name: str) -> bool:
    """Whether the framework's catalogue has options of this class."""
    known = table(framework)
    return known is not None and any(name in group for group in known.owner_sets)


def algorithm_options(framework: str) -> Mapping[str, Mapping[str, str]]:
    """Option → value → algorithm; a later option outweighs an earlier one."""
    profile = profiles().get(framework)
    return profile.algorithm_options if profile is not None else {}
