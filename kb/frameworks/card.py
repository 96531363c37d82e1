"""Everything the catalogues tell about one option, for a question about it. Nothing is said of releases not read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType

from trainmedic.kb.data_files import load_texts
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.canonical import name_of
from trainmedic.kb.frameworks.catalogue import OptionInfo
from trainmedic.kb.frameworks.entries import owners
from trainmedic.kb.frameworks.horizon import Horizon, Kind, horizon
from trainmedic.kb.frameworks.mentions import LIBRARIES
from trainmedic.kb.frameworks.profiles import profiles, select
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.frameworks.tables import HELP, of_tables, read_help, table
from trainmedic.kb.model.run import Value, VersionFact
from trainmedic.kb.versions import bare, version_key

COMPUTED = "<computed>"
"""A default that is worked out at run time."""
REQUIRED = "<required>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Consecutive catalogued releases with one default; ``others`` are the owners with another one."""

    first: str
    last: str
    value: Value
    others: Mapping[Value, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One option of a framework. ``owner`` is the command or class that is asked about, empty for all of them.

    ``now``: its default in the releases that ``version`` allows, if these were read and agree; ``read_up_to`` is the
    newest catalogued release, ``beyond``: the version asked about was not read. ``setting`` is the canonical name,
    ``elsewhere`` what other frameworks call it.
    """

    info: OptionInfo
    owner: str
    history: tuple[Stretch, ...]
    read_up_to: str
    setting: str
    elsewhere: tuple[tuple[str, str], ...]
    help: str
    version: VersionFact | None = None
    now: Stretch | None = None
    beyond: Horizon | None = None

    @property
    def absent(self) -> bool:
        """Whether the version asked about certainly lacks it."""
        exact = self.version.exact if self.version is not None else None
        return exact is not None and catalogue.exists(self.info.framework, self.info.key, exact) is False


def card(
    framework: str, key: str, algorithm: str | None = None, versions: Mapping[str, VersionFact] = MappingProxyType({})
) -> Card | None:
    """Card of an option, written as the framework's parser takes it; None if no release has it."""
    found = _card(framework, key, algorithm)
    fact = versions.get(found.info.framework) if found is not None else None
    catalog = table(found.info.framework) if found is not None else None
    if found is None or fact is None or catalog is None:
        return found
    beyond = horizon(fact, (Kind.OPTIONS,))
    now = None if beyond else _now(found.history, fact, catalog.versions)
    told = read_help(catalog.framework, bare(fact.exact), found.info.key) if fact.exact is not None else {}
    help = told.get(found.owner) or next(iter(told.values()), found.help)
    return replace(found, version=fact, now=now, beyond=beyond, help=help)


@of_tables
@lru_cache(maxsize=512)
def _card(framework: str, key: str, algorithm: str | None) -> Card | None:
    info = catalogue.option(framework, key)
    if info is None or info.abbreviated:
        return None
    owner = next((name for name in owners(info.framework, algorithm) if name in info.owners), "")
    setting = name_of(framework, info.key, "", algorithm) or ""
    return Card(
        info=info,
        owner=owner,
        history=tuple(_history(info, owner)),
        read_up_to=catalogue.versions(info.framework)[-1],
        setting=setting,
        elsewhere=tuple(_elsewhere(setting, info, algorithm)) if setting else (),
        help=help_of(info.framework, info.key, owner),
    )


@of_tables
@cache
def best_known() -> tuple[str, ...]:
    """The catalogued frameworks: those of Hugging Face, on whose arguments others build, first."""
    libraries = [name for name in LIBRARIES if profiles()[name].kind == "library" or profiles()[name].hf_trainer]
    return tuple(name for name in dict.fromkeys((*libraries, *catalogue.frameworks())) if table(name) is not None)


@of_tables
@lru_cache(maxsize=1024)
def homes(name: str) -> tuple[str, ...]:
    """The frameworks that have an option of this name, or one that ends so; those that still have it first."""
    now: list[str] = []
    once: list[str] = []
    for framework in best_known():
        found = (catalogue.option(framework, spelled) for spelled in dict.fromkeys((name, name.replace("_", "-"))))
        info = next((info for info in found if info is not None and not info.abbreviated), None)
        if info is not None or longer_names(framework, name):
            home = info.framework if info is not None else framework
            (once if info is not None and info.last is not None else now).append(home)
    return tuple(dict.fromkeys((*now, *once)))


@of_tables
@lru_cache(maxsize=1024)
def longer_names(framework: str, ending: str) -> tuple[str, ...]:
    """The options of a framework with dotted names that end so, the shortest first; those of the newest release."""
    catalog = table(framework)
    if catalog is None:
        return ()
    newest = catalog.versions[-1]
    names = (name for name in catalog.names if name.endswith(f".{ending}") and catalog.alive(name, newest))
    return tuple(sorted(names, key=lambda name: (name.count("."), name)))


def help_of(framework: str, key: str, owner: str = "") -> str:
    """The description of an option in the framework's own source; empty if there is none or it was not read."""
    texts = _help(framework).get(key, {})
    return texts.get(owner) or next(iter(texts.values()), "")


@lru_cache(maxsize=32)
def _help(framework: str) -> Mapping[str, Mapping[str, str]]:
    text = load_texts(HELP).get(framework)
    options: dict[str, dict[str, str]] = json.loads(text)["options"] if text is not None else {}
    return options


def _history(info: OptionInfo, owner: str) -> Iterator[Stretch]:
    """Its defaults through all catalogued releases that have it, equal neighbours joined."""
    begun: Stretch | None = None
    for release in catalogue.versions(info.framework):
        at = catalogue.option(info.framework, info.key, release)
        if at is None or at.version != release or at.framework != info.framework or (owner and owner not in at.owners):
            continue
        value, others = _default(at, owner)
        if begun is not None and (value, others) == (begun.value, dict(begun.others)):
            begun = Stretch(first=begun.first, last=release, value=value, others=begun.others)
            continue
        if begun is not None:
            yield begun
        begun = Stretch(first=release, last=release, value=value, others=MappingProxyType(others))
    if begun is not None:
        yield begun


def _default(info: OptionInfo, owner: str) -> tuple[Value, dict[Value, tuple[str, ...]]]:
    common: Value = REQUIRED if info.required else info.default if info.default_known else COMPUTED
    if owner:
        return info.default_by.get(owner, common), {}
    others: dict[Value, tuple[str, ...]] = {}
    for name, value in info.default_by.items():
        shown = str(value) if isinstance(value, Mapping) else value
        others[shown] = (*others.get(shown, ()), name)
    return common, others


def _now(history: Sequence[Stretch], fact: VersionFact, read: Sequence[str]) -> Stretch | None:
    """The default where the releases read within the version, or those on either side of it, agree."""
    low, high = fact.exact or fact.low or read[0], fact.exact or fact.high or read[-1]
    inside = [name for name in read if version_key(low) <= version_key(name) <= version_key(high)]
    before = [name for name in read if version_key(name) <= version_key(low)][-1:]
    after = [name for name in read if version_key(name) >= version_key(high)][:1]
    around = inside or (before + after if before and after else [])
    spans = [
        next((s for s in history if version_key(s.first) <= version_key(name) <= version_key(s.last)), None)
        for name in around
    ]
    return spans[0] if spans and all(span is not None and span == spans[0] for span in spans) else None


def _elsewhere(setting: str, info: OptionInfo, algorithm: str | None) -> Iterator[tuple[str, str]]:
    for framework in select("trainer", "library"):
        known = [key for key in specs()[setting].keys(framework) if key.fits(algorithm) and key.how == ""]
        found = ((key, catalogue.option(framework, key.key)) for key in known)
        here = next((key.key for key, at in found if at is not None and at.last is None), None)
        # What builds on the same arguments spells it alike.
        if (
            here is not None
            and framework != info.framework
            and here != info.key
            and not profiles()[framework].options_of
        ):
            yield framework, here
