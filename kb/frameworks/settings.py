"""The page of canonical settings (``data/settings.txt``), read once.

The page's own head explains its format. A column is a framework, or one of the pieces that belong to several
frameworks (``hf``, ``deepspeed``, ``accelerate``, ``peft``, ``bnb``, ``model``, ``trainer``, ``env``, ``launcher``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from trainmedic.kb.frameworks.profiles import BASE, profiles

PAGE = Path(__file__).parent / "data" / "settings.txt"
HF = tuple(profile.name for profile in profiles().values() if BASE in (profile.name, profile.inherits, profile.base))
"""Frameworks whose options include HF TrainingArguments."""


@dataclass(frozen=True, slots=True)
class Key:
    """One spelling: the option's name, how its value is read, and the algorithms it is for or not for."""

    key: str
    how: str
    only: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    def fits(self, algorithm: str | None) -> bool:
        """Whether this spelling means this setting under ``algorithm``."""
        if self.only:
            return algorithm in self.only
        return algorithm not in self.unless or algorithm is None


@dataclass(frozen=True, slots=True)
class Spec:
    """One canonical setting. ``kind``: int, number, flag, text, enum (a member's name, in capitals), dtype,
    attention, list, targets, any. ``reports``: it changes what is logged, not what is trained."""

    name: str
    kind: str
    about: str
    columns: Mapping[str, tuple[Key, ...]]
    reports: bool = False

    def keys(self, column: str) -> tuple[Key, ...]:
        """The spellings in a column, newest first; a framework on TrainingArguments has those as well."""
        if column in profiles():
            column = profiles()[column].options_of or column
        own = self.columns.get(column, ())
        if column in profiles() and (base := profiles()[column].extends):
            own += tuple(key for key in self.columns.get(base, ()) if key not in own)
        if column in HF:
            seen = {each.key for each in own}
            return own + tuple(each for each in self.columns.get("hf", ()) if each.key not in seen)
        return own


@lru_cache(maxsize=1)
def specs() -> Mapping[str, Spec]:
    found: dict[str, Spec] = {}
    columns: dict[str, tuple[Key, ...]] = {}
    for line in PAGE.read_text(encoding="utf-8").split("\n"):
        if not line or line.startswith("#"):
            continue
        if not line.startswith(" "):
            head, _, about = line.partition(" | ")
            name, kind, *marks = head.split()
            if name in found:
                raise ValueError(f"{PAGE.name}: {name} twice")
            columns = {}
            found[name] = Spec(name, kind, about, columns, reports=marks == ["reports"])
        else:
            column, *keys = line.split()
            columns[column] = tuple(_key(text) for text in keys)
    return {name: replace(spec, columns={**spec.columns, **_of_profiles(name)}) for name, spec in found.items()}


def _of_profiles(setting: str) -> dict[str, tuple[Key, ...]]:
    """The spellings that the frameworks' own profiles list."""
    return {
        profile.name: tuple(_key(text) for text in profile.settings[setting].split())
        for profile in profiles().values()
        if setting in profile.settings
    }


def _key(text: str) -> Key:
    rest, _, condition = text.partition("@")
    name, _, how = rest.partition(":")
    if name.startswith("A."):
        name = "actor_rollout_ref." + name[2:]
    if condition.startswith("!"):
        return Key(name, how, unless=tuple(condition[1:].split(",")))
    return Key(name, how, only=tuple(condition.split(",")) if condition else ())


@lru_cache(maxsize=64)
def index(column: str) -> Mapping[str, tuple[tuple[Spec, Key], ...]]:
    settings: dict[str, tuple[tuple[Spec, Key], ...]] = {}
    for spec in specs().values():
        for key in spec.keys(column):
            settings[key.key] = (*settings.get(key.key, ()), (spec, key))
    return settings
