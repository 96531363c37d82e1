"""The frameworks: one folder each, ``<name>/profile.toml``, with the catalogue of its options beside it.

`kb/frameworks/README.md` explains every key. A profile needs none of them: the folder's name is then the title, the
package and the word that users write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trainmedic.kb.data_files import read_toml
from trainmedic.kb.model.run import Value

FOLDER = Path(__file__).parent
ALGORITHMS: Mapping[str, Any] = read_toml(FOLDER / "data" / "algorithms.toml")


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands that take a verb (``swift sft``). ``idle`` verbs train nothing; torchrun's flags and a program follow
    ``launches`` verbs; with ``overrides`` they accept ``key=value`` words; ``recognised`` commands name the framework
    of a run."""

    names: tuple[str, ...] = ()
    trains: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    launches: tuple[str, ...] = ()
    overrides: bool = False
    recognised: bool = True


@dataclass(frozen=True, slots=True)
class Program:
    """A program by its path or module; the group of ``match``, if any, is the word that names algorithm or stage."""

    match: str
    certain: bool = True
    stage: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSpec:
    """Who takes some of a run's options, if the list of what it knows is closed: see ``readers`` in the README."""

    of: str
    how: str
    strict: bool = True
    owners: tuple[str, ...] = ()
    recognised: bool = False
    program: str = ""
    scope: str = ""
    classes: str = ""
    keys: str = ""
    having: tuple[str, ...] = ()
    having_any: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    unless: str = ""
    unless_text: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """Where the source declares options, and how: see ``declares`` in the README."""

    how: str
    owner: str = ""
    files: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    within: str = ""
    names: tuple[str, ...] = ()
    first: bool = False
    decorated: str = ""
    prefix: str = ""
    sections: Mapping[str, str] = field(default_factory=dict)
    unions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: str = ""
    imported: str = ""
    functions: tuple[str, ...] = ()
    positional: bool = False
    aliases: bool = False
    by_alias: bool = False
    dashed: bool = False
    least: int = 1
    beyond: str = ""
    unless: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFile:
    """The file of its own that a library reads beside a trainer's options: see ``[file]`` in the README."""

    keys: tuple[str, ...]
    several: tuple[str, ...] = ()
    setting: str = ""
    name: str = ""
    variable: str = ""
    json: bool = False
    launched: bool = False
    handed_to: str = ""
    fill: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def has(self, names: Set[str]) -> bool:
        """Whether a file of these names is one."""
        return not names.isdisjoint(self.keys) or len(names & set(self.several)) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """A command (with a ``verb``) or modules that start a program once for each device; with ``sets_devices`` it
    chooses these itself."""

    command: str
    verb: str = ""
    modules: tuple[str, ...] = ()
    sets_devices: bool = False


@dataclass(frozen=True, slots=True)
class EngineArguments:
    """Options below a ``prefix`` that the framework hands to an inference engine as they are, except ``unless``."""

    engine: str
    prefix: str
    how: str
    owner: str
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Implication:
    """A setting that the code of the framework sets where it is not written: see ``implies`` in the README."""

    set: str
    source: str
    value: Value = None
    when: str = ""
    holds: Value = True
    equals: Value = None
    differs: Value = None
    written: bool = False
    over_unset: bool = False
    default: bool = False
    since: str = ""
    below: str = ""
    unless_stage: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """The algorithm, ``inference`` or ``export`` of a run that names no algorithm: by a part of its program's name, or
    by the options of its file (``started = false``: only where no program is started as well)."""

    means: str
    program: str = ""
    started: bool = True
    having: tuple[str, ...] = ()
    having_any: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How values are written; ``nothing`` empty: the option is left out."""

    attention: Mapping[str, str] = field(default_factory=dict)
    all_linear: str = "all-linear"
    joint: str = " "
    nothing: str = ""
    short_dtypes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHabits:
    """Properties that decide the memory of a run and are not options: see ``[memory]`` in the README."""

    recomputes: bool = False
    shards: bool = False
    master_weights: bool = False
    trained_dtype: str = ""
    fused_loss: bool = False
    logit_bytes: tuple[float, ...] = ()
    engine_sleeps: bool = False
    shards_with: str = ""
    chunked_loss: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    name: str
    title: str
    kind: str = "trainer"
    rank: int = 99
    library: int = 0
    standalone: bool = False
    defaults: bool = True
    backend: bool = False
    package: str
    aliases: tuple[str, ...] = ()
    mention: str
    modules: tuple[str, ...]
    folders: tuple[str, ...] = ()
    inherits: str = ""
    options_of: str = ""
    extends: str = ""
    declared_in: str = ""
    builds_on: str = ""
    dashes: bool = False
    exact_names: bool = False
    common_names: bool = False
    lenient: bool = False
    needs_file: bool = False
    tree: bool = False
    dotted: bool = False
    nested: tuple[str, ...] = ()
    free: str = ""
    open: str = ""
    sampled: bool = False
    converts: bool = False
    still_taken: tuple[str, ...] = ()
    translates: str = ""
    leftovers: str = ""
    alias_prefix: str = ""
    batch: str = ""
    batch_filled_to: int = 0
    one_step: bool = False
    every_gpu: bool = False
    hf_trainer: bool = False
    lora_by_rank: bool = False
    abbreviations: bool = False
    bare_module: bool = False
    overrides: tuple[str, ...] = ()
    python_settings: tuple[str, ...] = ()
    signature: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    log_style: str = ""
    warm: tuple[str, ...] = ()
    training: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    commands: Commands = Commands()
    programs: tuple[Program, ...] = ()
    readers: tuple[ReaderSpec, ...] = ()
    declares: tuple[Declaration, ...] = ()
    begins: str = ""
    file: OwnFile | None = None
    launcher: Launcher | None = None
    defaults_for: str = ""
    scripted: bool = False
    patches: bool = False
    calls: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    joined_lists: Mapping[str, str] = field(default_factory=dict)
    abbreviated: bool = False
    text_none: bool = False
    none_since: str = ""
    auto_presets: str = ""
    fills_auto: tuple[str, ...] = ()
    named_engines: bool = False
    loss_summed: str = ""
    wrong_metrics: Mapping[str, str] = field(default_factory=dict)
    engine_arguments: EngineArguments | None = None
    implies: tuple[Implication, ...] = ()
    purposes: tuple[Purpose, ...] = ()
    words: Words = Words()
    memory: MemoryHabits = MemoryHabits()
    classes: Mapping[str, str] = field(default_factory=dict)
    weak_classes: Mapping[str, str] = field(default_factory=dict)
    trainers: Mapping[str, Any] = field(default_factory=dict)
    algorithm_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sections: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The framework that the one whose options it takes inherits from."""
        return profiles()[self.options_of].inherits if self.options_of else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Its package and aliases in every spelling: ``ms-swift``, ``ms_swift``, ``ms swift``."""
        names = (self.package, *self.aliases)
        return tuple(dict.fromkeys(name.replace("-", joint) for name in names for joint in "-_ "))


_TABLES: Mapping[str, Callable[..., Any]] = {
    **{"commands": Commands, "file": OwnFile, "launcher": Launcher, "words": Words, "memory": MemoryHabits},
    **{"programs": Program, "readers": ReaderSpec, "declares": Declaration, "implies": Implication},
    **{"purposes": Purpose, "engine_arguments": EngineArguments},
}
"""Keys of a profile that are tables, or lists of such, with what they become."""


@cache
def profiles() -> Mapping[str, Profile]:
    """Every framework by name, in the order of their ranks."""
    loaded = [load(path) for path in FOLDER.glob("*/profile.toml")]
    return MappingProxyType(
        {profile.name: profile for profile in sorted(loaded, key=lambda profile: (profile.rank, profile.name))}
    )


def title(name: str) -> str:
    """The name as its project writes it; ``name`` itself if it is not a framework."""
    known = profiles().get(name)
    return known.title if known is not None else name


def select(*kinds: str) -> tuple[str, ...]:
    """The names of the frameworks of these kinds (``trainer``, ``library``, ``options``, ``server``)."""
    return tuple(profile.name for profile in profiles().values() if profile.kind in kinds)


def load(path: Path) -> Profile:
    """One profile. Raises ValueError for a key that a profile does not have."""
    name = path.parent.name
    values = read_toml(path)
    unknown = set(values) - {known.name for known in fields(Profile)} | ({"name"} & set(values))
    if unknown:
        raise ValueError(f"{path}: unknown key {min(unknown)!r}")
    spellings = (name, *values.get("aliases", ()))
    values.setdefault("title", name)
    values.setdefault("package", name)
    values.setdefault("mention", "|".join(re.escape(word).replace(r"\-", "[-_ ]?") for word in spellings))
    values.setdefault("modules", [name.replace("-", "_")])
    for before, each in pairwise(values.get("declares", ())):
        each.setdefault("files", before["files"])
    for key, kind in _TABLES.items():
        if isinstance(given := values.get(key), list):
            values[key] = tuple(kind(**_frozen(each)) for each in given)
        elif given is not None:
            values[key] = kind(**_frozen(given))
    values["algorithm_options"] = {
        option: ALGORITHMS["values"][words] if isinstance(words, str) else words
        for option, words in values.get("algorithm_options", {}).items()
    }
    values["owners"] = _frozen(values.get("owners", {}))
    return Profile(name=name, **_frozen(values))


def _frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


INHERITS = tuple(each.name for each in profiles().values() if each.inherits)
"""Frameworks whose arguments extend HF TrainingArguments."""
HF_TRAINERS = tuple(each.name for each in profiles().values() if each.hf_trainer)
"""Frameworks that train with HF's Trainer, and read its DeepSpeed and accelerate files."""
BASE = profiles()[INHERITS[0]].inherits
"""The library whose TrainingArguments they extend."""
SCRIPTED = tuple(each.name for each in sorted(profiles().values(), key=lambda each: each.library) if each.scripted)
"""Libraries whose classes users call in scripts of their own, the most telling one first."""
BESIDE = {each.name: each.file for each in profiles().values() if each.file is not None}
"""Libraries with a file of their own; its options have the library's name as their scope."""
FOREIGN = ("launcher", "env", *BESIDE)
"""Scopes of options that another program than the trainer reads."""
SETTINGS_OF_FILES = {name: file.setting for name, file in BESIDE.items() if file.setting}
"""Library → the setting that names its file."""
LAUNCHED = tuple(name for name, file in BESIDE.items() if file.launched)
"""Those whose file their own launcher reads."""
LAUNCHERS: Mapping[str, Launcher] = {
    each.launcher.command: each.launcher for each in profiles().values() if each.launcher is not None
}
CALLS = {call: each.name for each in profiles().values() for call in each.calls}
"""Class or function → the library whose keywords it takes, wherever it is called."""
