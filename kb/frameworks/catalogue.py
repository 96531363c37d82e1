"""Which options a framework has at which release, with types, defaults and owners.

The facts were read from the tagged sources of the frameworks by `ingest.extract`; nothing is guessed. A framework is
named as in `kb.frameworks`; a release as on the package index (``0.8.11``; a leading ``v`` is accepted).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import islice, takewhile
from types import MappingProxyType
from typing import Any

from trainmedic.kb.frameworks.profiles import INHERITS, profiles
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.frameworks.tables import Table, is_unread, learn, of_tables, side, table
from trainmedic.kb.model.run import Value, VersionFact
from trainmedic.kb.suggest import closest
from trainmedic.kb.versions import bare, permits, version_key

NOT_READ: Mapping[str, Any] = MappingProxyType({"$expr": ""})
"""The default of a release that was not read, which is as little known as one that is computed."""
_STATED = ("default", "default_by", "choices")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionInfo:
    """One option at one catalogued release.

    ``framework`` is the catalogue it was found in (``transformers`` for an inherited one), ``key`` its full name.
    ``default_known`` is False where the default is computed at run time or the option is required, and in a release
    that was not read unless those on either side agree.
    ``default_by`` holds the owners (commands, classes) whose default differs. ``last`` None: still there.
    ``negated``: the option was written as the ``--no_x`` switch of ``x``. ``abbreviated``: as a unique prefix.
    """

    framework: str
    key: str
    version: str
    type: str | None
    default: Value
    default_known: bool
    required: bool
    owners: tuple[str, ...]
    first: str
    last: str | None
    default_by: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    choices: tuple[Value, ...] = ()
    nargs: str | int | None = None
    action: str | None = None
    deprecated: bool = False
    negated: bool = False
    abbreviated: bool = False

    @property
    def switch(self) -> bool:
        """Whether it is an argparse switch that takes no value (``store_true``)."""
        return self.action in ("store_true", "store_false")

    @property
    def boolean(self) -> bool:
        return self.switch or (self.type or "").replace("Optional[", "").rstrip("]") in ("bool", "bool | None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """First and last release with an option; ``last`` is None if it still exists; ``gap``: some between lack it."""

    first: str
    last: str | None
    gap: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """``old`` became ``new`` between two releases, for one command (``*``: all)."""

    old: str
    new: str
    last_old: str
    first_new: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A replacement for an unknown option. ``why``: renamed | removed | later | framework | spelling."""

    key: str
    why: str
    framework: str
    first: str | None = None
    last: str | None = None


@of_tables
@cache
def frameworks() -> tuple[str, ...]:
    """The catalogued frameworks, in the order of their ranks."""
    return tuple(name for name in profiles() if table(name) is not None)


def _dashes(framework: str) -> bool:
    return framework in profiles() and profiles()[framework].dashes


def _abbreviates(framework: str) -> bool:
    return framework in profiles() and profiles()[framework].abbreviations


def versions(framework: str) -> tuple[str, ...]:
    """The catalogued releases, oldest first; empty for an unknown framework."""
    catalog = table(framework)
    return catalog.versions if catalog else ()


def nearest(framework: str, version: str | None) -> str | None:
    """The catalogued release used for ``version``; the newest if that is None."""
    catalog = table(framework)
    if catalog is None:
        return None
    return catalog.nearest(version) if version else catalog.versions[-1]


def around(framework: str, version: str) -> tuple[str, ...]:
    """The catalogued releases that speak for ``version`` (`Table.around`); empty for an unknown framework."""
    catalog = table(framework)
    return catalog.around(version) if catalog else ()


def read_releases(versions: Mapping[str, VersionFact]) -> None:
    """Read the exact releases among these that are not catalogued, where a reader is set (`tables.read_with`)."""
    for framework, version in unread(versions):
        learn(framework, version)


def unread(versions: Mapping[str, VersionFact]) -> tuple[tuple[str, str], ...]:
    """The frameworks and releases among these that `read_releases` would read."""
    facts = ((framework, versions.get(profiles()[framework].package)) for framework in frameworks())
    exact = ((framework, bare(fact.exact)) for framework, fact in facts if fact is not None and fact.exact is not None)
    return tuple(each for each in exact if is_unread(*each))


def keys(framework: str, version: str | None = None) -> tuple[str, ...]:
    """Sorted option names of a release, or of all releases; without inherited ones."""
    catalog = table(framework)
    if catalog is None:
        return ()
    if version is None:
        return tuple(sorted(catalog.names))
    return tuple(sorted(name for name in catalog.names if catalog.alive(name, version)))


def history(framework: str) -> Mapping[str, Life]:
    catalog = table(framework)
    return {name: _life(catalog, name) for name in sorted(catalog.names)} if catalog else {}


def pins(framework: str, version: str) -> Mapping[str, str]:
    """Package → range that this release requires. Between two catalogued releases only what both require."""
    known: Mapping[str, Mapping[str, str]] = side("pins").get(framework, {})
    wanted = version_key(version)
    before = [release for release in known if version_key(release) <= wanted]
    after = [release for release in known if version_key(release) >= wanted]
    if not before or not after:
        return {}
    low, high = known[before[-1]], known[after[0]]
    return {package: spec for package, spec in low.items() if high.get(package) == spec}


def exists(framework: str, key: str, version: str | None, *, transformers: str | None = None) -> bool | None:
    """Whether a release accepts an option by its full name.

    None where it cannot be told: no version given and it came or went, or no examined release decides.
    """
    catalog = table(framework)
    if catalog is None:
        return None
    if key in catalog.names:
        if version is not None:
            own = catalog.alive(key, version)
        else:
            life = _life(catalog, key)
            own = True if life.last is None and life.first == catalog.examined[0] and not life.gap else None
        if own is not False:
            return own
    absent = None if version is not None and is_newer(catalog, version) else False
    if framework not in INHERITS:
        return absent
    answers = {exists("transformers", key, release) for release in inherited_from(framework, version, transformers)}
    answer = answers.pop() if len(answers) == 1 else None
    return absent if answer is False else answer


def is_newer(catalog: Table, version: str) -> bool:
    """Whether a release is newer than all that were examined: what it has that they lack is not known."""
    return version_key(version) > version_key(catalog.examined[-1])


@of_tables
@lru_cache(maxsize=256)
def inherited_from(framework: str, version: str | None, transformers: str | None = None) -> tuple[str, ...]:
    """The catalogued transformers releases a framework's TrainingArguments may come from, oldest first."""
    if transformers is not None:
        near = nearest("transformers", transformers)
        return (near,) if near else ()
    every = versions("transformers")
    if version is None:
        return every
    near = nearest(framework, version)
    spec = side("pins").get(framework, {}).get(near, {}).get("transformers", "")
    return tuple(release for release in every if permits(spec, release)) or every[-1:]


@of_tables
@lru_cache(maxsize=4096)
def option(
    framework: str,
    key: str,
    version: str | None = None,
    *,
    owner: str | None = None,
    transformers: str | None = None,
) -> OptionInfo | None:
    """``key`` at a release (newest that has it where ``version`` is None), or None where it does not exist.

    Understands what the framework's own parser does: ``-`` for ``_`` (HF parsers), unique abbreviations (argparse),
    ``--no_x`` for a boolean that defaults to true, and inherited TrainingArguments. ``owner`` limits abbreviation to
    one command or class. Where the option certainly does not exist at ``version`` the answer is None.
    """
    catalog = table(framework)
    if catalog is None:
        return None
    name = key.replace("-", "_") if _dashes(framework) else key
    direct = _direct(catalog, name, version, transformers)
    if direct is not None:
        return direct
    if _dashes(framework) and name.startswith(("no_", "no-")):
        positive = _direct(catalog, name[3:], version, transformers)
        if positive is not None and positive.boolean and True in (positive.default, *positive.default_by.values()):
            return replace(positive, negated=True)
    if not _abbreviates(framework) or len(name) < 2 or name in catalog.names:
        return None
    matches = _prefixed(catalog, name, version, owner, transformers)
    return replace(matches[0], abbreviated=True) if len(matches) == 1 else None


def _direct(catalog: Table, name: str, version: str | None, transformers: str | None) -> OptionInfo | None:
    own = _info(catalog, name, version)
    if own is not None:
        return own
    if catalog.framework in INHERITS:
        hf = table("transformers")
        for release in reversed(inherited_from(catalog.framework, version, transformers)):
            inherited = _info(hf, name, release) if hf else None
            if inherited is not None:
                return inherited
    return None


def _prefixed(
    catalog: Table, name: str, version: str | None, owner: str | None, transformers: str | None
) -> list[OptionInfo]:
    names = _accepted(catalog.framework)
    begin = bisect_left(names, name)
    alike = takewhile(lambda known: known.startswith(name), islice(names, begin, None))
    infos = [info for known in alike if (info := _direct(catalog, known, version, transformers))]
    if owner is not None:
        infos = [info for info in infos if owner in info.owners or info.framework != catalog.framework]
    if version is None:
        infos = [info for info in infos if info.last is None] or infos
    return infos


@of_tables
@cache
def _accepted(framework: str) -> tuple[str, ...]:
    """All option names of any release, those of transformers included if the framework inherits them; sorted."""
    tables = (table(framework), table("transformers") if framework in INHERITS else None)
    return tuple(sorted({name for each in tables if each is not None for name in each.names}))


def _info(catalog: Table, name: str, version: str | None) -> OptionInfo | None:
    line = catalog.line(name)
    if line is None:
        return None
    if version is None:
        pair = catalog.closest(name, catalog.versions[-1])
    else:
        if catalog.alive(name, version) is False:
            return None
        pair = catalog.closest(name, catalog.nearest(version))
    if pair is None:
        return None
    at, info = pair
    life = _life(catalog, name)
    default, others, choices = _stated(catalog, name, info, version)
    computed = isinstance(default, Mapping) and "$expr" in default
    return OptionInfo(
        framework=catalog.framework,
        key=name,
        version=at,
        type=info.get("type"),
        default=None if computed else _frozen(default),
        default_known=not computed,
        required=default in ("<required>", "???"),
        owners=catalog.owner_sets[info["in"]],
        first=life.first,
        last=life.last,
        default_by={owner: _frozen(value) for owner, value in others.items()},
        choices=tuple(_frozen(choice) for choice in choices),
        nargs=info.get("nargs"),
        action=info.get("action"),
        deprecated=bool(info.get("deprecated")),
    )


def _stated(
    catalog: Table, name: str, info: Mapping[str, Any], version: str | None
) -> tuple[Any, Mapping[str, Any], Sequence[Any]]:
    """Default, defaults by owner and choices: what the releases that speak for ``version`` agree on, else not known."""
    read = [info] if version is None else [catalog.info(name, near) or {} for near in catalog.around(version)]
    default, others, choices = (_agreed([each.get(part) for each in read]) for part in _STATED)
    if NOT_READ in (default, others):
        return NOT_READ, {}, ()
    return default, others or {}, () if choices is NOT_READ else choices or ()


def _agreed(values: Sequence[Any]) -> Any:
    return values[0] if values and all(value == values[0] for value in values) else NOT_READ


@of_tables
@lru_cache(maxsize=64)
def commands(framework: str, version: str) -> frozenset[str]:
    """The commands and classes that have options at the catalogued release nearest to ``version``."""
    catalog = table(framework)
    if catalog is None:
        return frozenset()
    near = catalog.nearest(version)
    infos = (catalog.info(name, near) for name in catalog.names)
    return frozenset(owner for info in infos if info is not None for owner in catalog.owner_sets[info["in"]])


def _frozen(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    frozen: Value = value
    return frozen


def _life(catalog: Table, name: str) -> Life:
    line = catalog.line(name)
    assert line is not None
    life = line["life"]
    return Life(first=life[0], last=life[1], gap=len(life) > 2)


def renamed(framework: str, key: str) -> tuple[Rename, ...]:
    """Every rename step that starts or ends at ``key``, oldest first."""
    steps: list[Rename] = []
    for step in side("renames").get(framework, ()):
        for command, pairs in step["map"].items():
            for old, new in pairs.items():
                if key in (old, new):
                    steps.append(
                        Rename(
                            old=old, new=new, command=command, last_old=step["from_last"], first_new=step["to_first"]
                        )
                    )
    return tuple(
        sorted(steps, key=lambda rename: (version_key(rename.first_new), rename.command, rename.old, rename.new))
    )


def infer_versions(framework: str, written: Iterable[str]) -> tuple[str | None, str | None, str]:
    """(lowest, highest, reason): the releases in which all these options exist; (None, None, "") where nothing follows.

    Options that the catalogue does not know are left out, and so are inherited ones: they come from transformers,
    whatever releases declared them again. Where no release has them all, the answer says so and bounds nothing.
    """
    catalog = table(framework)
    if catalog is None or profiles()[framework].lenient:
        return None, None, ""
    inherited = table("transformers") if framework in INHERITS else None
    low: tuple[str, str] | None = None
    high: tuple[str, str] | None = None
    for key in sorted(set(written)):
        name = key.replace("-", "_") if _dashes(framework) and key not in catalog.names else key
        line = catalog.line(name)
        if line is None or (inherited is not None and inherited.line(name) is not None):
            continue
        first, last = line["life"][0], line["life"][1]
        if first != catalog.examined[0] and (low is None or version_key(first) > version_key(low[0])):
            low = (first, name)
        if last is not None and (high is None or version_key(last) < version_key(high[0])):
            high = (last, name)
    if low and high and version_key(low[0]) > version_key(high[0]):
        return (
            None,
            None,
            f"no release of {framework} has both {low[1]} (since {low[0]}) and {high[1]} (until {high[0]})",
        )
    reasons = [f"{low[1]} exists since {framework} {low[0]}"] if low else []
    reasons += [f"{high[1]} exists until {framework} {high[0]}"] if high else []
    return low and low[0], high and high[0], "; ".join(reasons)


def suggest(framework: str, key: str, version: str | None = None) -> Suggestion | None:
    """The option that an unknown name probably stands for, or None.

    In this order: it was renamed, it was removed or comes later, it is another framework's, it is misspelt.
    """
    catalog = table(framework)
    if catalog is None:
        return None
    name = key.replace("-", "_") if _dashes(framework) else key
    for step in reversed(renamed(framework, name)):
        other = step.new if step.old == name else step.old
        if version is None or exists(framework, other, version) is not False:
            return Suggestion(key=other, why="renamed", framework=framework, first=step.first_new, last=step.last_old)
    if name in catalog.names:
        life = _life(catalog, name)
        gone = version is None or version_key(version) > version_key(life.first)
        return Suggestion(
            key=name, why="removed" if gone else "later", framework=framework, first=life.first, last=life.last
        )
    alive = [
        candidate for candidate in catalog.names if version is None or catalog.alive(candidate, version) is not False
    ]
    if framework in INHERITS:
        alive += [candidate for candidate in keys("transformers") if candidate not in catalog.names]
    near = closest(name, alive)
    if near is not None:
        return Suggestion(key=near, why="spelling", framework=framework)
    for other in frameworks():
        elsewhere = table(other)
        if other != framework and elsewhere is not None and name in elsewhere.names:
            return Suggestion(key=name, why="framework", framework=other)
    return None


@of_tables
@cache
def option_names() -> frozenset[str]:
    """Every option of any framework and every canonical setting; dashes as underscores.

    Of dotted names the last part as well.
    """
    names: set[str] = set(specs())
    for framework in frameworks():
        if not profiles()[framework].common_names:
            names.update(name.replace("-", "_") for name in keys(framework))
    return frozenset(names | {name.rpartition(".")[2] for name in names})


def is_option(name: str) -> bool:
    """Whether some framework has the option; leading dashes are ignored and ``-`` is ``_``."""
    return name.lstrip("-").replace("-", "_") in option_names()
