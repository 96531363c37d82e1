"""Programs, classes and option values that name a framework and an algorithm, as the profiles list them.

Also which of a framework's commands and classes a run uses, because each has its own options and defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from trainmedic.kb.frameworks.profiles import ALGORITHMS, profiles
from trainmedic.kb.frameworks.tables import of_tables, table

_STAGES: Mapping[str, str] = ALGORITHMS["stages"]
_WORDS: Mapping[str, str] = {**ALGORITHMS["verbs"], **{name: name for name in _STAGES}}
_PURPOSES: Mapping[str, str] = {word: stage for stage, words in ALGORITHMS["purposes"].items() for word in words}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A known program or class. ``certain`` is False for bare script names that several projects could have."""

    framework: str
    algorithm: str | None = None
    stage: str | None = None
    certain: bool = True


def stage_of(algorithm: str) -> str:
    return _STAGES.get(algorithm, algorithm)


def _entry(framework: str, word: str | None, stage: str | None = None, *, certain: bool = True) -> Entry:
    word = (word or "").lower()
    algorithm = _WORDS.get(word)
    named = _PURPOSES.get(word) or _STAGES.get(algorithm or "")
    return Entry(framework=framework, algorithm=algorithm, stage=named or stage, certain=certain)


@cache
def _programs() -> tuple[tuple[re.Pattern[str], str, str | None, bool], ...]:
    """(pattern, framework, stage, certain), the certain ones first."""
    patterns: list[tuple[re.Pattern[str], str, str | None, bool]] = []
    for profile in profiles().values():
        if profile.commands.names and profile.commands.recognised:
            names = "|".join(map(re.escape, profile.commands.names))
            patterns.append((re.compile(rf"^(?:{names})\s+([\w-]+)$"), profile.name, None, True))
        patterns += [(re.compile(p.match), profile.name, p.stage, p.certain) for p in profile.programs]
    return tuple(sorted(patterns, key=lambda program: not program[3]))


@lru_cache(maxsize=512)
def program_entry(program: str) -> Entry | None:
    """``program`` is a module, a script path, or a command with its verb (``swift rlhf``)."""
    text = " ".join(program.split())
    for pattern, framework, stage, certain in _programs():
        match = pattern.search(text)
        if match:
            return _entry(framework, match[1] if pattern.groups else None, stage, certain=certain)
    return None


@of_tables
@lru_cache(maxsize=512)
def class_entry(scope: str) -> Entry | None:
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
            yield Entry(framework=profile.name, certain=False)


def _catalogued(framework: str, name: str) -> bool:
    known = table(framework)
    return known is not None and any(name in group for group in known.owner_sets)


def algorithm_options(framework: str) -> Mapping[str, Mapping[str, str]]:
    """Option → value → algorithm; a later option outweighs an earlier one."""
    profile = profiles().get(framework)
    return profile.algorithm_options if profile is not None else {}


def owners(
    framework: str, algorithm: str | None, scopes: Iterable[str] = (), programs: Iterable[str] = ()
) -> tuple[str, ...]:
    """The commands or classes whose options and defaults apply.

    Empty if the algorithm does not decide: a default is then certain only if all owners agree. ``scopes`` are the
    classes that the user's Python calls; a script of flags has none and gets TRL's ModelConfig as well. ``programs``
    are the started ones: OpenRLHF once had a PPO that DeepSpeed launches, without the actors of Ray.
    """
    if framework == "openrlhf" and any(_module(program) == "train_ppo" for program in programs):
        return ("train_ppo",)
    classes = [scope for scope in scopes if is_class(framework, scope)]
    profile = profiles().get(framework)
    if profile is None:
        return ()
    if profile.options_of:
        profile = profiles()[profile.options_of]
    if profile.trainers and classes:
        return tuple(sorted(set(classes)))
    if framework == "transformers":
        return ("Seq2SeqTrainingArguments",) if "Seq2SeqTrainingArguments" in classes else ("TrainingArguments",)
    return tuple(profile.owners.get(algorithm or "", profile.owners.get("*", ())))


def is_class(framework: str, scope: str) -> bool:
    """Whether ``scope`` is a configuration class of the framework (or of transformers, which several build on)."""
    if not scope or not scope[0].isupper():
        return False
    for name in (framework, "transformers"):
        if _catalogued(profiles()[name].options_of or name if name in profiles() else name, scope):
            return True
    return False


def _module(program: str) -> str:
    return program.removesuffix(".py").replace("/", ".").rpartition(".")[2]
