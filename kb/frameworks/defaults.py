"""Defaults of a framework by release. A default is given only where it is certain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from trainmedic.kb.frameworks.catalogue import around, inherited_from
from trainmedic.kb.frameworks.entries import algorithm_options
from trainmedic.kb.frameworks.profiles import INHERITS
from trainmedic.kb.frameworks.settings import Key, Spec, specs
from trainmedic.kb.frameworks.tables import Table, of_tables, table
from trainmedic.kb.frameworks.values import Nothing, normalise
from trainmedic.kb.model.run import Option, Value, VersionFact
from trainmedic.kb.versions import bare, version_key


@dataclass(frozen=True, slots=True)
class Default:
    """A certain default: its value, the option it belongs to, and the releases it was read at."""

    value: Value
    key: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """An option with its default where that is certain. ``why`` it is not: required, computed or differs.

    ``computed`` is the expression of a default that is computed, or of one that refers to another option.
    """

    name: str
    framework: str
    value: Value = None
    why: str = ""
    computed: str = ""


_SEQ2SEQ = ("llamafactory", "ms-swift")
"""Their arguments extend Seq2SeqTrainingArguments."""
_UNKNOWN = object()
_NO_SUCH = object()


def candidates(framework: str, fact: VersionFact | None) -> tuple[str, ...]:
    """The releases that a run may use: the stated one, or all catalogued ones within the known bounds (inclusive).

    A bound beyond what was read stands for none: nothing is known of the releases there.
    """
    catalog = table(framework)
    if catalog is None:
        return ()
    if fact is not None and fact.exact:
        return (bare(fact.exact),)
    low = fact.low if fact else None
    high = fact.high if fact else None
    inside = [
        release
        for release in catalog.versions
        if (low is None or version_key(low) <= version_key(release))
        and (high is None or version_key(release) <= version_key(high))
    ]
    ends = [bare(release) for release in (low, high) if release is not None and catalog.around(bare(release))]
    distinct = {version_key(release): release for release in (*ends, *inside)}  # 0.24 and 0.24.0 are one release
    return tuple(distinct[key] for key in sorted(distinct))


def was_read(framework: str, releases: Sequence[str]) -> bool:
    """Whether something was read of each of these releases, which are at least one."""
    return bool(releases) and all(around(framework, release) for release in releases)


def fitting(framework: str, releases: tuple[str, ...], options: Sequence[Option]) -> tuple[str, ...]:
    """Those of ``releases`` that know the algorithm asked for: ``stage: kto`` is not a choice before LLaMA-Factory 0.8.

    All of them where none does (the value is misspelt, not the release wrong).
    """
    catalog = table(framework)
    if catalog is None or len(releases) < 2:
        return releases
    remaining = releases
    for option in options:
        if option.scope or option.key not in algorithm_options(framework) or not isinstance(option.value, str):
            continue
        remaining = (
            tuple(release for release in remaining if _offers(catalog, option.key, option.value, release)) or remaining
        )
    return remaining


def _offers(catalog: Table, key: str, value: str, release: str) -> bool:
    info = catalog.info(key, catalog.nearest(release))
    choices = info.get("choices") if info else None
    return not choices or value in choices


@of_tables
@lru_cache(maxsize=256)
def defaults(
    framework: str,
    releases: tuple[str, ...],
    owners: tuple[str, ...],
    algorithm: str | None,
    transformers: str | None,
) -> Mapping[str, Default]:
    """Every canonical setting whose default is the same in all ``releases`` and for all ``owners``.

    Left out: settings that these releases do not have, defaults computed at run time, and those that differ. A switch
    that is off where it exists counts as off in releases that do not have it. A release between two that were read has
    the defaults on which these agree; one beyond them has none.
    """
    catalog = table(framework)
    if catalog is None or not was_read(framework, releases):
        return {}
    hf = table("transformers") if framework in INHERITS else None
    places = [
        _At(release, near, _parents(framework, release, transformers) if hf else (), owners)
        for release in releases
        for near in catalog.around(release)
    ]
    answer: dict[str, Default] = {}
    for spec in specs().values():
        keys = [key for key in spec.keys(framework) if key.fits(algorithm)]
        if not keys:
            continue
        one = _agreed(_default(catalog, hf, spec, keys, at) for at in places)
        if one is not None:
            value, key = one
            answer[spec.name] = Default(value, key, _source(catalog, releases, key))
    return answer


@of_tables
@lru_cache(maxsize=64)
def declared(
    framework: str, releases: tuple[str, ...], owners: tuple[str, ...], transformers: str | None
) -> Mapping[str, Declared]:
    """Every option that all of ``releases`` have for ``owners`` (empty: for any), inherited ones included.

    Empty where nothing was read of one of the releases.
    """
    catalog = table(framework)
    if catalog is None or not was_read(framework, releases):
        return {}
    places = [
        _At(release, near, _parents(framework, release, transformers) if framework in INHERITS else (), owners)
        for release in releases
        for near in catalog.around(release)
    ]
    answer: dict[str, Declared] = {}
    hf = table("transformers") if framework in INHERITS else None
    if hf is not None:
        parents = [(parent, _hf_owners(framework)) for parent in dict.fromkeys(p for at in places for p in at.parents)]
        for name in hf.names:
            seen = [_written_at(hf, name, parent, parent, mine) for parent, mine in parents]
            if seen and _NO_SUCH not in seen:
                answer[name] = _declared(name, hf.framework, seen)
    mine = ("TrainingArguments", *owners) if framework == "transformers" and owners else owners
    for name in catalog.names:
        seen = [_written_at(catalog, name, at.release, at.near, mine) for at in places]
        if seen and _NO_SUCH not in seen:
            answer[name] = _declared(name, framework, seen)
    return MappingProxyType({name: answer[name] for name in sorted(answer)})


def _hf_owners(framework: str) -> tuple[str, ...]:
    return ("TrainingArguments", "Seq2SeqTrainingArguments") if framework in _SEQ2SEQ else ("TrainingArguments",)


def _written_at(catalog: Table, name: str, release: str, near: str, owners: tuple[str, ...]) -> Any:
    """The default as catalogued; _NO_SUCH where the release or the owners do not have the option."""
    pair = catalog.closest(name, near) if catalog.alive(name, release) is not False else None
    return _NO_SUCH if pair is None else _owned(pair[1], catalog, owners)


def _declared(name: str, framework: str, seen: Sequence[Any]) -> Declared:
    first = seen[0]
    if any(value is _UNKNOWN or not _same(value, first) for value in seen):
        return Declared(name=name, framework=framework, why="differs")
    if first in ("<required>", "???"):
        return Declared(name=name, framework=framework, why="required")
    if isinstance(first, dict) and "$expr" in first:
        return Declared(name=name, framework=framework, why="computed", computed=str(first["$expr"]))
    if isinstance(first, str) and "${" in first:
        return Declared(name=name, framework=framework, why="computed", computed=first)
    return Declared(name=name, framework=framework, value=tuple(first) if isinstance(first, list) else first)


def _parents(framework: str, release: str, transformers: str | None) -> tuple[str, ...]:
    """The releases of transformers that were read and say what is inherited; none for one beyond them."""
    hf = table("transformers")
    if transformers is not None and hf is not None:
        return hf.around(transformers)
    return inherited_from(framework, release)


@dataclass(frozen=True, slots=True)
class _At:
    release: str
    near: str
    parents: tuple[str, ...]
    owners: tuple[str, ...]


def _agreed(seen: Iterable[tuple[Any, str]]) -> tuple[Value, str] | None:
    """The value that all releases with the setting have, and its newest key."""
    first: Any = _NO_SUCH
    newest, missing = "", False
    for value, key in seen:
        if value is _NO_SUCH:
            missing = True
            continue
        if value is _UNKNOWN or (first is not _NO_SUCH and not _same(value, first)):
            return None
        first, newest = value, key
    return None if first is _NO_SUCH or (missing and first is not False) else (first, newest)


def _same(left: object, right: object) -> bool:
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _source(catalog: Table, releases: Sequence[str], key: str) -> str:
    span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
    if len(releases) == 1 and len(read := catalog.around(releases[0])) > 1:
        span += f" (as in {' and '.join(read)})"
    flag = "--" if catalog.framework == "openrlhf" else ""
    return f"default of {catalog.framework} {span} {flag}{key}"


def _default(catalog: Table, hf: Table | None, spec: Spec, keys: Sequence[Key], at: _At) -> tuple[Any, str]:
    """(value, key) at one release; the value may be _UNKNOWN or _NO_SUCH."""
    silent: str | None = None
    for key in keys:
        value = _raw(catalog, hf, key.key, at)
        if value is _NO_SUCH:
            continue
        if value is _UNKNOWN:
            return _UNKNOWN, key.key
        read = normalise(spec.kind, key.how, value)
        if isinstance(read, Nothing):
            silent = silent or key.key
            continue
        return read, key.key
    return (None, silent) if silent else (_NO_SUCH, "")


def _raw(catalog: Table, hf: Table | None, name: str, at: _At) -> Any:
    value = _certain(_written_at(catalog, name, at.release, at.near, at.owners))
    return _inherited(name, at.parents) if value is _NO_SUCH and hf is not None else value


@of_tables
@lru_cache(maxsize=8192)
def _inherited(name: str, parents: tuple[str, ...]) -> Any:
    hf = table("transformers")
    if hf is None or hf.line(name) is None:
        return _NO_SUCH
    first: Any = _UNKNOWN
    for parent in parents:
        info = hf.info(name, parent)
        value = _NO_SUCH if info is None else _certain(_owned(info, hf, ()))
        if value is _UNKNOWN or (first is not _UNKNOWN and not _same(value, first)):
            return _UNKNOWN
        first = value
    return first


def _owned(info: Mapping[str, Any], catalog: Table, owners: tuple[str, ...]) -> Any:
    """The default for these owners (none: all); _UNKNOWN if they differ, _NO_SUCH if none has the option."""
    special = info.get("default_by")
    if not owners and not special:
        return info.get("default")
    holders = catalog.owner_sets[info["in"]]
    mine = [owner for owner in owners if owner in holders] if owners else holders
    values = [(special or {}).get(owner, info.get("default")) for owner in mine]
    if not values:
        return _NO_SUCH
    return values[0] if all(_same(value, values[0]) for value in values) else _UNKNOWN


def _certain(value: Any) -> Any:
    """_UNKNOWN for a default that is required, computed, or refers to another option."""
    if isinstance(value, str):
        return _UNKNOWN if value in ("<required>", "???") or "${" in value else value
    if isinstance(value, dict):
        return _UNKNOWN
    return tuple(value) if isinstance(value, list) else value
