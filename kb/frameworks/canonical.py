"""From options as written to canonical settings, defaults included.

A name that is absent from the answer is unknown: the framework does not have it, its default is computed, differs
between the releases in question, or the configuration is cut off. `kb.frameworks.settings` holds the names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.defaults import candidates, defaults, fitting, was_read
from trainmedic.kb.frameworks.derive import Draft, derive
from trainmedic.kb.frameworks.entries import is_class, owners
from trainmedic.kb.frameworks.profiles import BASE, CALLS, FOREIGN, profiles
from trainmedic.kb.frameworks.settings import Key, Spec, index, specs
from trainmedic.kb.frameworks.spelling import Spelling, spelling
from trainmedic.kb.frameworks.values import Nothing, normalise
from trainmedic.kb.model.run import CAST, Option, Setting, Value, VersionFact

__all__ = ["SETTINGS", "Spelling", "canonicalise", "flatten", "keys_of", "name_of", "spelling", "warm"]

SETTINGS: tuple[str, ...] = tuple(specs())
"""Every canonical name, in the page's order."""

_NONE: Mapping[str, VersionFact] = MappingProxyType({})
CHECKPOINT = "checkpoint"
"""The scope of what a model's own config.json says."""
PARTS = (*FOREIGN, CHECKPOINT)
"""The scopes of what a run is configured with besides the framework's own options."""
_LOADED = ("from_pretrained", CHECKPOINT)
_LOOSE = ("transformers", "deepspeed", "accelerate", "peft", "bnb", "trl", "axolotl")
"""Columns tried, in this order, where no framework was recognised."""


def canonicalise(
    options: Sequence[Option],
    framework: str | None,
    algorithm: str | None = None,
    stage: str | None = None,
    versions: Mapping[str, VersionFact] = _NONE,
    partial: bool = False,
    *,
    model_family: str | None = None,
    programs: Sequence[str] = (),
) -> Mapping[str, Setting]:
    """Canonical name → setting.

    Written settings always; the framework's default where it is certain (see `kb.frameworks.defaults`); settings that
    follow from others (``use_peft`` from a LoRA rank). The version of the framework is taken from ``versions`` or,
    failing that, bounded by the options used. ``partial``: a cut-off configuration gets no defaults. ``programs`` are
    those that the run starts.
    """
    flat = _in_force(tuple(flatten(options)), framework)
    fact = versions.get(framework or "") or _inferred(framework, flat)
    releases = fitting(framework, candidates(framework, fact), flat) if framework else ()
    pinned = versions.get(BASE)
    transformers = pinned.exact if pinned else None
    mine = owners(framework, algorithm, (option.scope for option in flat), programs) if framework else ()
    found = _written(flat, framework, algorithm, releases)
    if framework and not partial and profiles()[framework].defaults:
        for name, default in defaults(framework, releases, mine, algorithm, transformers).items():
            if name not in found:
                found[name] = Setting(
                    name=name, value=default.value, option=None, source=default.source, key=default.key
                )
    draft = Draft(
        framework=framework or "",
        algorithm=algorithm,
        stage=stage,
        releases=releases,
        versions=versions,
        partial=partial,
        options=flat,
        settings=found,
        model_family=model_family,
        unread=bool(framework and catalogue.versions(framework)) and not was_read(framework or "", releases),
    )
    derive(draft)
    return MappingProxyType({name: found[name] for name in SETTINGS if name in found})


def _in_force(options: tuple[Option, ...], framework: str | None) -> tuple[Option, ...]:
    """The options without those that another one switches off: those of the engine that is not used."""
    profile = profiles().get(framework or "")
    switches = profile.switches if profile is not None else {}
    written = {option.key: str(option.value).lower() for option in options if option.key in switches}
    off = tuple(start for key, value in written.items() for start in switches[key].get(value, ()))
    return tuple(option for option in options if not option.key.startswith(off)) if off else options


def _written(
    options: Sequence[Option], framework: str | None, algorithm: str | None, releases: Sequence[str]
) -> dict[str, Setting]:
    """Settings from the options, except those on which two loads of the trained model disagree."""
    written: dict[str, tuple[int, Setting]] = {}
    loaded: dict[str, Value] = {}
    doubtful: set[str] = set()
    for option in options:
        for rank, spec, key, negated in _meanings(option, framework, algorithm, releases):
            value = normalise(spec.kind, key.how, option.value, negated=negated)
            if isinstance(value, Nothing) or (
                rank == 1 and value == "auto" and spec.kind not in ("dtype", "attention")
            ):
                continue
            loads = option.scope in _LOADED and spec.name != "model"
            if loads and loaded.setdefault(spec.name, value) != value:
                doubtful.add(spec.name)
            old = written.get(spec.name)
            if old is None or old[0] <= rank:
                setting = Setting(
                    name=spec.name, value=value, option=option, source=f"written: {option.key}", key=option.key
                )
                written[spec.name] = (rank, setting)
    return {
        name: setting
        for name, (_, setting) in written.items()
        if name not in doubtful or (setting.option is not None and setting.option.scope not in _LOADED)
    }


def flatten(options: Iterable[Option]) -> Iterator[Option]:
    """The options; one whose value is a mapping is followed by a dotted option for each entry."""
    for option in options:
        yield option
        if isinstance(option.value, Mapping):
            for key in option.value:
                yield from flatten([replace(option, key=f"{option.key}.{key}", value=option.value[key])])


def warm() -> None:
    """Read every catalogue and work out every release's defaults once, so that no first question pays for it.

    Takes about a fifth of a second; for a service to call when it starts. Without it each table is read on first use.
    """
    for profile in profiles().values():
        for algorithm in profile.warm:
            canonicalise((), profile.name, algorithm)


def name_of(framework: str | None, key: str, scope: str = "", algorithm: str | None = None) -> str | None:
    for column, name in _columns(framework, key, scope):
        for spec, spelled in index(column).get(name, ()):
            if spelled.fits(algorithm):
                return spec.name
    return None


def keys_of(framework: str, name: str, version: str | None = None) -> tuple[str, ...]:
    """The framework's spellings of a canonical setting, newest first; only those of ``version`` if given."""
    spec = specs().get(name)
    if spec is None:
        return ()
    names = [key.key for key in spec.keys(framework)]
    if version is None:
        return tuple(names)
    return tuple(each for each in names if catalogue.exists(framework, each, version) is not False)


def _inferred(framework: str | None, options: Sequence[Option]) -> VersionFact | None:
    if framework is None:
        return None
    low, high, reason = catalogue.infer_versions(
        framework, (each.key for each in options if _own(framework, each.scope))
    )
    if low is None and high is None:
        return None
    return VersionFact(package=framework, exact=None, low=low, high=high, reason=reason)


def _own(framework: str, scope: str) -> bool:
    return not scope or is_class(framework, scope)


def _columns(framework: str | None, key: str, scope: str) -> list[tuple[str, str]]:
    """(column, option name in it) for an option, the most specific first."""
    lowered = scope.lower()
    if lowered in PARTS:
        return [(lowered, key)]
    if scope in CALLS:
        return [(CALLS[scope], key)]
    if scope == "BitsAndBytesConfig":
        return [("bnb", key)]
    if lowered.endswith(".from_pretrained"):
        return []  # a tokenizer, a reference model, a scorer: not the model that is trained
    if lowered == "generation_config":
        return []
    if lowered in ("from_pretrained", "config", CAST) or scope.startswith(("Auto", "FastL")):
        return [("model", key)]
    if scope.endswith("Trainer"):
        return [("trainer", key)]
    own = [framework] if framework else list(_LOOSE)
    columns = [(column, key) for column in own]
    head, _, rest = key.partition(".")
    if rest and head in ("deepspeed", "model_init_kwargs", "model_kwargs"):
        columns.append(("deepspeed" if head == "deepspeed" else "model", rest))
    return columns


def _meanings(
    option: Option, framework: str | None, algorithm: str | None, releases: Sequence[str]
) -> Iterator[tuple[int, Spec, Key, bool]]:
    """(rank, setting, spelling, negated) for each setting of one option. Higher ranks win, then later ones."""
    done: set[str] = set()
    for column, name in _columns(framework, option.key, option.scope):
        rank = 2 if column == "env" else 1 if column in PARTS else 3
        if column == framework:
            rank = 3
        pairs, negated = index(column).get(name, ()), False
        if not pairs and column == framework and not option.scope.endswith("Trainer"):
            info = catalogue.option(framework, name, releases[0] if len(releases) == 1 else None)
            if info is not None:
                pairs, negated = index(column).get(info.key, ()), info.negated
        for spec, key in pairs:
            if key.fits(algorithm) and spec.name not in done:
                done.add(spec.name)
                yield rank, spec, key, negated
