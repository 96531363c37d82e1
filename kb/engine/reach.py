"""Which rules a change of the configuration can reach, so that a patch is checked with these alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from trainmedic.kb.engine.facts import BATCH, RECOGNISED
from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.engine.values import Key
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.run import Option, RunConfig

ANYTHING = "*"
"""What a rule reads if it cannot be told: a module reads what it likes."""
_BY_OPTION = frozenset({"written", "default_used", "option", "has_option", "option_has_value", "option_origin"})
_DERIVED = frozenset((*BATCH, "entry", "launcher"))
Readers = Mapping[str, frozenset[str]]
"""Rules' ids by the names of settings, options and packages that they read."""


def readers_of(rules: Iterable[Rule]) -> Readers:
    """The rules that read each name."""
    readers: dict[str, set[str]] = defaultdict(set)
    for rule in rules:
        for name in _read_by(rule):
            readers[name].add(rule.id)
    return {name: frozenset(ids) for name, ids in readers.items()}


def _read_by(rule: Rule) -> Iterator[str]:
    if rule.condition is None:
        yield ANYTHING
    for key in rule.condition.reads if rule.condition is not None else ():
        yield from _names(key)


def _names(key: Key) -> Iterator[str]:
    """What a fact is read from, as far as an edit can change it: not a log, a signal or a word of the question."""
    kind, *arguments = key
    if kind == "name":
        yield ANYTHING if arguments[0] in _DERIVED else _plain(arguments[0])
    elif kind in _BY_OPTION:
        yield _plain(arguments[0])
    elif kind in ("version", "version_of"):
        yield f"version:{arguments[0]}"
    elif kind == "pinned":
        yield from (f"version:{package}" for package in arguments[:2])


def reached(before: Evidence, after: Evidence, ruleset: RuleSet) -> frozenset[str] | None:
    """The rules that may say something else after a change of the configuration; None: any of them may.

    The logs and the question are taken to be the same.
    """
    changed = _changed(before, after)
    if changed is None:
        return None
    readers = ruleset.once(__name__, readers_of)
    return frozenset().union(*(readers.get(name, frozenset()) for name in (*sorted(changed), ANYTHING)))


def _changed(before: Evidence, after: Evidence) -> set[str] | None:
    if len(before.runs) != len(after.runs):
        return None
    names = {
        f"version:{package}"
        for package in before.versions.keys() | after.versions.keys()
        if _version(before, package) != _version(after, package)
    }
    for old, new in zip(before.runs, after.runs, strict=True):
        if _frame(old) != _frame(new):
            return None
        written = _options(old), _options(new)
        names |= {key for key in written[0].keys() | written[1].keys() if written[0].get(key) != written[1].get(key)}
        names |= {
            _plain(name)
            for name in old.settings.keys() | new.settings.keys()
            if _setting(old, name) != _setting(new, name)
        }
    return names


def _frame(run: RunConfig) -> tuple[object, ...]:
    """What facts depend on beside single options: what the run is, and whether an absent option is known to be absent.

    A DeepSpeed file's own options decide this for all of its keys.
    """
    words = (getattr(run, name) for name in RECOGNISED)
    return (
        *(word.value if word is not None else None for word in words),
        run.partial,
        run.excerpt,
        bool(run.options),
        any(option.scope == "deepspeed" for option in run.options),
        bool(run.settings.get("deepspeed")),
    )


def _options(run: RunConfig) -> dict[str, list[tuple[object, ...]]]:
    written: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for option in run.options:
        written[_plain(option.key)].append(_content(option))
    return written


def _content(option: Option) -> tuple[object, ...]:
    return (repr(option.value), option.raw, option.origin, option.scope, option.quoted)


def _setting(run: RunConfig, name: str) -> tuple[object, ...] | None:
    setting = run.settings.get(name)
    if setting is None:
        return None
    return (repr(setting.value), setting.is_default, setting.option is not None and _content(setting.option))


def _version(evidence: Evidence, package: str) -> tuple[str | None, ...] | None:
    fact = evidence.versions.get(package)
    return (fact.exact, fact.low, fact.high) if fact is not None else None


def _plain(name: str) -> str:
    return name.replace("-", "_")
