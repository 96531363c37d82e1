"""What the rules would say if something were set otherwise, or another version installed. Pure; nothing is written.

Settings are changed in the pasted text, as a fix changes it, and the text is read again: so what follows from a setting
follows here too. Where the text cannot be edited (a dump in a log, a cut file), the setting is changed as it was read.
The log is that of the run before: it counts for what a change clears, never for what it brings up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from trainmedic.kb.engine.checker import fired_rules
from trainmedic.kb.engine.edits import Document, insert, replace_value
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.fixes import fixes
from trainmedic.kb.engine.patches import patched, reread, unified_diff, unstarted
from trainmedic.kb.engine.rule import FixSpec, RuleSet
from trainmedic.kb.engine.values import show
from trainmedic.kb.frameworks.canonical import canonicalise
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Source
from trainmedic.kb.model.report import Safety, Severity, Text
from trainmedic.kb.model.run import Option, Origin, RunConfig, Setting, Value, VersionFact
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.what_if.parse import UNSET, Change, InvalidChange, parse_change

MAX_CHANGES = 12
"""Changes made together; the rest is named as not made."""
MAX_NAME = 120
"""Code points of a name that are repeated."""
OPTIONS = "options"
"""The family of rules about how and where an option is written."""
_FOREIGN = ("launcher", "env", "deepspeed", "accelerate", "checkpoint", "cast")
TOO_MANY = Text(
    en=f"only {MAX_CHANGES} changes are made together",
    zh=f"一次最多同时修改 {MAX_CHANGES} 项",
)
ALREADY = Text(en="it is so already", zh="当前已是该值")
NOWHERE = Text(
    en="no configuration was given that it could be set in",
    zh="没有可以写入该设置的配置",
)
NO_ROOM = Text(
    en="the configuration as given has no place for it",
    zh="所给的配置里没有可以写入它的位置",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChange:
    """One change that was made. ``before`` is None where nothing was known; values as they are shown to users."""

    name: str
    before: str | None
    after: str
    version: VersionFact | None = None  # of a package


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A rule that the change concerns."""

    rule_id: str
    title: Text
    severity: Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedChange:
    """A change that was not made, and why."""

    name: str
    why: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What the rules say of the changed configuration, against what they say of the one pasted.

    ``clears`` fired and no longer do; ``appears`` fire only now; ``stays`` fire on the changed configuration by itself.
    ``logged`` are findings that rest on the log of the run before: only a new run can tell. ``patch`` is the change as
    a unified diff of the pasted (masked) text, empty where the text could not be edited.
    """

    changed: tuple[AppliedChange, ...] = ()
    clears: tuple[Effect, ...] = ()
    appears: tuple[Effect, ...] = ()
    stays: tuple[Effect, ...] = ()
    logged: tuple[Effect, ...] = ()
    unknown: tuple[RejectedChange, ...] = ()
    patch: str = ""


def what_if(evidence: Evidence, changes: Mapping[str, str], rules: RuleSet) -> WhatIf:
    """The rules over ``evidence`` with ``changes``: a setting's canonical name, or an option as a framework spells it,
    or a package, to the value as it would be written. Never raises for names and values that mean nothing.
    """
    done = _Changes(evidence, rules)
    for number, (name, raw) in enumerate(changes.items()):
        if number >= MAX_CHANGES:
            done.refuse(name, TOO_MANY)
        else:
            done.make(name, raw)
    if not done.changed:
        return WhatIf(unknown=tuple(done.unknown))
    after, before = done.evidence(), unstarted(evidence)
    fired = fired_rules(evidence, rules)
    bare = fired_rules(unstarted(after), rules)
    clears = fired - fired_rules(after, rules, fired)
    return WhatIf(
        changed=tuple(done.changed),
        clears=_effects(clears, rules),
        appears=_effects(bare - fired_rules(before, rules) - fired, rules),
        stays=_effects((fired - clears) & bare, rules),
        logged=_effects(fired - clears - bare, rules),
        unknown=tuple(done.unknown),
        patch="".join(
            unified_diff(old.text, new.text, old.name)
            for old, new in zip(evidence.sources, done.read.sources, strict=True)
        ),
    )


class _Changes:
    """Changes made one after the other: edits of the text first, and what no edit can say laid over it at the end."""

    def __init__(self, evidence: Evidence, rules: RuleSet) -> None:
        self.read = evidence
        self.rules = rules
        self.changed: list[AppliedChange] = []
        self.unknown: list[RejectedChange] = []
        self.versions: dict[str, VersionFact] = {}
        self.settings: dict[str, Value] = {}
        self.spelled = frozenset(rule.id for rule in rules.rules if rule.family == OPTIONS)

    def refuse(self, name: str, why: Text) -> None:
        """Note a change that is not made."""
        self.unknown.append(RejectedChange(name=" ".join(name.split())[:MAX_NAME], why=why))

    def make(self, name: str, raw: str) -> None:
        """Make one change, or note why not."""
        try:
            change = parse_change(name, raw, self.read.run)
        except InvalidChange as refused:
            self.refuse(name, refused.why)
            return
        if change.package:
            self._install(change)
        elif not self.read.run.options:
            self.refuse(name, NOWHERE)
        elif change.canonical:
            self._set(change)
        else:
            self._write(change)

    def evidence(self) -> Evidence:
        """The evidence with every change made."""
        if not self.versions and not self.settings:
            return self.read
        versions = MappingProxyType({**self.read.versions, **self.versions})
        first, *others = (self._laid_over(run, versions) for run in self.read.runs or (self.read.run,))
        named = {name: _assumed(name, value) for name, value in self.settings.items()}
        first = replace(first, settings=MappingProxyType({**first.settings, **named}))
        return replace(self.read, versions=versions, runs=(first, *others))

    def _laid_over(self, run: RunConfig, versions: Mapping[str, VersionFact]) -> RunConfig:
        """The run under other versions: defaults are those of the release."""
        if not self.versions:
            return run
        settings = canonicalise(
            run.options,
            run.framework.value if run.framework else None,
            run.algorithm.value if run.algorithm else None,
            run.stage.value if run.stage else None,
            versions,
            run.partial,
            model_family=run.model_family.value if run.model_family else None,
            programs=[region.entry.value for region in run.regions if region.entry is not None],
        )
        return replace(run, settings=settings)

    def _install(self, change: Change) -> None:
        fact = change.version
        assert fact is not None
        known = self.read.versions.get(change.name)
        if known is not None and known.exact is not None and known.exact == fact.exact:
            self.refuse(change.name, ALREADY)
            return
        self.versions[change.name] = fact
        self.changed.append(
            AppliedChange(name=change.name, before=known.exact if known else None, after=change.raw, version=fact)
        )

    def _set(self, change: Change) -> None:
        """A canonical setting: by an edit of the text where that makes it so, else over what was read."""
        name = change.name
        setting = self.read.run.settings.get(name)
        unwritten = setting is None or setting.option is None
        if (setting is not None and setting.value == change.value) or (unwritten and change.value == UNSET):
            self.refuse(change.given, ALREADY)
            return
        before = None if setting is None else show(setting.value)
        if not self._edited(name, change):
            if change.value == UNSET:
                self.refuse(change.given, NO_ROOM)
                return
            self.settings[name] = change.value
        self.changed.append(AppliedChange(name=name, before=before, after=change.shown))

    def _edited(self, name: str, change: Change) -> bool:
        """Whether an edit of the pasted text makes the setting so."""
        if not self.rules.rules:
            return False
        spec = (
            FixSpec(safety=Safety.UNSAFE, unset=(name,))
            if change.value == UNSET
            else FixSpec(safety=Safety.UNSAFE, set={name: change.value})  # type: ignore[dict-item]
        )
        # A rule that only carries the fix: how a setting is written into a paste is known there.
        carrier = replace(self.rules.rules[0], id="what-if", fixes=(spec,))
        edits = fixes(carrier, Facts(self.read))[0].edits
        if not edits:
            return False
        after = reread(self.read, patched(edits, self.read.sources), parse)
        if name not in self.read.run.settings or self.read.run.settings[name].option is None:
            # Put in at a place where its framework does not take it: that would be our fault, not the change's.
            new = fired_rules(unstarted(after), self.rules, self.spelled)
            if new - fired_rules(unstarted(self.read), self.rules, self.spelled):
                return False
        found = after.run.settings.get(name)
        as_wanted = found is not None and found.value == change.value and change.value != UNSET
        unwritten = found is None or found.option is None
        if as_wanted or unwritten:
            self.read = after
        return as_wanted or (unwritten and change.value == UNSET)

    def _write(self, change: Change) -> None:
        """An option that is no canonical setting: in its place, or behind the program's last option."""
        facts = Facts(self.read)
        written = facts.options(change.name)
        holder = written[-1] if written else _last_own(self.read.run)
        if holder is None or change.value == UNSET:
            self.refuse(change.given, NO_ROOM)
            return
        if written and written[-1].raw == change.raw:
            self.refuse(change.given, ALREADY)
            return
        source = next((each for each in self.read.sources if each.name == holder.span.attachment), None)
        document = Document(source or Source(name=holder.span.attachment, text="", byte_count=0))
        raw = _in_format(change.raw, holder.origin)
        edit = replace_value(document, holder, raw) if written else insert(document, holder, change.name, raw)
        if edit is None:
            self.refuse(change.given, NO_ROOM)
            return
        self.read = reread(self.read, patched((edit,), self.read.sources), parse)
        before = written[-1].raw or "true" if written else None
        self.changed.append(AppliedChange(name=change.name, before=before, after=change.shown))


def _assumed(name: str, value: Value) -> Setting:
    return Setting(name=name, value=value, option=None, source="supposed", key=name)


def _last_own(run: RunConfig) -> Option | None:
    own = [each for each in run.options if each.scope not in _FOREIGN and each.origin is not Origin.DUMP]
    return max(own, key=lambda option: option.span.order) if own else None


def _in_format(raw: str, origin: Origin) -> str:
    """Text as JSON and Python need it: words quoted, numbers and truth values bare."""
    if origin not in (Origin.JSON, Origin.PYTHON):
        return raw
    if raw.lower() in ("true", "false"):
        return raw.lower() if origin is Origin.JSON else raw.capitalize()
    try:
        float(raw)
    except ValueError:
        return '"' + raw.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return raw


def _effects(ids: frozenset[str], rules: RuleSet) -> tuple[Effect, ...]:
    """Rule ids as effects, errors first."""
    order = [Severity.ERROR, Severity.WARNING, Severity.INFO]
    found = sorted((rule for rule in rules.rules if rule.id in ids), key=lambda r: (order.index(r.severity), r.id))
    return tuple(Effect(rule_id=rule.id, title=rule.title, severity=rule.severity) for rule in found)
