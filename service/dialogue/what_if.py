"""Run the rules as if a setting or a package version were different. Pure; nothing is written.

Settings are edited in the pasted text, as a fix edits it, and the text is read again, so derived settings change too.
If the text cannot be edited (a dump in a log, a truncated file), the parsed setting is overridden instead. The log
belongs to the run before the change: it counts for findings that a change clears, never for new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType

from trainmedic.kb.engine.checker import fired_rules
from trainmedic.kb.engine.edits import Document, insert, replace_value
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.fixes import fixes
from trainmedic.kb.engine.patches import patched, reread, unified_diff, unstarted
from trainmedic.kb.engine.rule import FixSpec, RuleSet
from trainmedic.kb.engine.values import show
from trainmedic.kb.frameworks.canonical import CHECKPOINT, canonicalise
from trainmedic.kb.frameworks.profiles import FOREIGN
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Source, Span
from trainmedic.kb.model.report import Edit, Safety, Severity, Text
from trainmedic.kb.model.run import CAST, Option, Origin, RunConfig, Setting, Value, VersionFact
from trainmedic.service.dialogue.change import UNSET, Change, InvalidChange, parse_change
from trainmedic.service.dialogue.statements import Statement

MAX_CHANGES = 12
"""Changes applied together; the others are listed as rejected."""
MAX_NAME = 120
"""Code points of a name that are echoed."""
OPTIONS = "options"
"""The rule family about the spelling and place of options."""
# Options of these scopes belong to another program than the trainer: a new one must not be added after them.
_FOREIGN = (*FOREIGN, CHECKPOINT, CAST)
TOO_MANY = Text(en=f"at most {MAX_CHANGES} changes can be tried at once", zh=f"一次最多同时尝试 {MAX_CHANGES} 项修改")
ALREADY = Text(en="it already has this value", zh="当前已是该值")
NOWHERE = Text(en="you sent no configuration to set it in", zh="没有提供可以写入该设置的配置")
BROKEN = Text(en="the file could not be read any more", zh="改后文件无法读取")
NO_ROOM = Text(en="there is no place for it in your configuration", zh="你的配置里没有可以写入它的位置")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedChange:
    """One applied change. ``before`` is None if the value was unknown; values are formatted for users."""

    name: str
    wording: str = ""
    before: str | None
    after: str
    version: VersionFact | None = None  # of a package


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    rule_id: str
    title: Text
    severity: Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedChange:
    name: str
    why: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The rules' findings on the changed configuration, compared with those on the pasted one.

    ``clears``: fired before, no longer. ``appears``: new. ``stays``: fire on the changed configuration even without the
    log. ``logged``: rest on the old run's log, so only a new run can tell. ``patch`` is a unified diff of the pasted
    (masked) text, empty if the text could not be edited; ``assumed`` are the settings that it lacks for that reason.
    """

    changed: tuple[AppliedChange, ...] = ()
    clears: tuple[Effect, ...] = ()
    appears: tuple[Effect, ...] = ()
    stays: tuple[Effect, ...] = ()
    logged: tuple[Effect, ...] = ()
    unknown: tuple[RejectedChange, ...] = ()
    patch: str = ""
    assumed: tuple[str, ...] = ()


def what_if(
    evidence: Evidence,
    changes: Mapping[str, str],
    rules: RuleSet,
    read: Read,
    *,
    facts: bool = False,
    edits: Sequence[Edit] = (),
) -> WhatIf:
    """The rules over ``evidence`` with ``changes`` applied. Never raises for meaningless names and values.
    ``facts``: a setting is changed even where no configuration was sent. ``edits`` of the text are made before.

    ``changes`` maps a canonical setting, a framework's option or a package to the value as the user would write it.
    """
    trial = _Trial(evidence, rules, read, facts=facts)
    if edits:
        trial.edit(edits)
    for number, (name, raw) in enumerate(changes.items()):
        if number >= MAX_CHANGES:
            trial.refuse(name, TOO_MANY)
        else:
            trial.make(name, raw)
    if not trial.changed and trial.now is evidence:
        return WhatIf(unknown=tuple(trial.unknown))
    after, before = trial.evidence(), unstarted(evidence)
    fired = fired_rules(evidence, rules)
    bare = fired_rules(unstarted(after), rules)
    # With the log of the run: a finding that rests on the log and the setting clears with the setting.
    clears = fired - fired_rules(after, rules, fired)
    return WhatIf(
        changed=tuple(trial.changed),
        clears=_effects(clears, rules),
        # Without the log on both sides: the old log says nothing about the new run.
        appears=_effects(bare - fired_rules(before, rules) - fired, rules),
        stays=_effects((fired - clears) & bare, rules),
        logged=_effects(fired - clears - bare, rules),
        unknown=tuple(trial.unknown),
        patch="".join(
            unified_diff(old.text, new.text, old.name)
            for old, new in zip(evidence.sources, trial.now.sources, strict=True)
        ),
        assumed=tuple(trial.settings),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The evidence with what a conversation said of the run; ``unknown`` could not be taken for a fact."""

    evidence: Evidence
    changed: tuple[AppliedChange, ...] = ()
    unknown: tuple[RejectedChange, ...] = ()


def with_statements(evidence: Evidence, said: Mapping[str, Statement], rules: RuleSet, read: Read) -> Applied:
    """The evidence with what was said in place of what was pasted; each fact has its message as its place.

    Never raises.
    """
    trial = _Trial(evidence, rules, read, facts=True)
    for name, statement in islice(said.items(), MAX_CHANGES):
        trial.make(name, statement.value)
    now = trial.evidence()
    places = {change.name: said[change.wording].place for change in trial.changed}
    settings = {
        name: _said_at(setting, places[name]) if name in places else setting
        for name, setting in now.run.settings.items()
    }
    versions = {
        name: replace(fact, span=places[name], reason="said") if name in places else fact
        for name, fact in now.versions.items()
    }
    first, *others = now.runs or (now.run,)
    first = replace(first, settings=MappingProxyType(settings))
    now = replace(now, runs=(first, *others), versions=MappingProxyType(versions)) if places else now
    return Applied(evidence=now, changed=tuple(trial.changed), unknown=tuple(trial.unknown))


def _said_at(setting: Setting, place: Span) -> Setting:
    """The setting as one that a message states. What is written stays written."""
    option = replace(setting.option, span=place) if setting.option is not None else None
    return replace(setting, option=option, span=place, source="said")


class _Trial:
    """Changes applied one after the other: edits of the text first, overrides of parsed settings at the end."""

    def __init__(self, evidence: Evidence, rules: RuleSet, read: Read, *, facts: bool = False) -> None:
        """``facts``: what is tried is so, whether or not it is written anywhere."""
        self.now = evidence
        self._facts = facts
        self._read = read
        self.rules = rules
        self.changed: list[AppliedChange] = []
        self.unknown: list[RejectedChange] = []
        self.versions: dict[str, VersionFact] = {}
        self.settings: dict[str, Value] = {}
        self.unknown_now: set[str] = set()
        self.spelled = frozenset(rule.id for rule in rules.rules if rule.family == OPTIONS)

    def refuse(self, name: str, why: Text) -> None:
        self.unknown.append(RejectedChange(name=" ".join(name.split())[:MAX_NAME], why=why))

    def edit(self, edits: Sequence[Edit]) -> None:
        """Change the text, unless less of it can be read then."""
        after = reread(self.now, patched(edits, self.now.sources), self._read)
        if _unread(after) > _unread(self.now):
            for edit in edits:
                self.refuse(edit.span.text or edit.replacement, BROKEN)
        else:
            self.now = after

    def make(self, name: str, raw: str) -> None:
        try:
            change = parse_change(name, raw, self.now.run)
        except InvalidChange as refused:
            self.refuse(name, refused.why)
            return
        # A version cannot be edited in: people paste `pip list`, which is output and no configuration.
        if change.package:
            self._install(change)
        elif not self.now.run.options and not (self._facts and change.canonical):
            self.refuse(name, NOWHERE)
        elif change.canonical:
            self._set(change)
        else:
            self._write(change)

    def evidence(self) -> Evidence:
        if not self.versions and not self.settings and not self.unknown_now:
            return self.now
        versions = MappingProxyType({**self.now.versions, **self.versions})
        first, *others = (self._canonicalised(run, versions) for run in self.now.runs or (self.now.run,))
        named = {name: _assumed(name, value) for name, value in self.settings.items()}
        known = {name: setting for name, setting in first.settings.items() if name not in self.unknown_now}
        first = replace(first, settings=MappingProxyType({**known, **named}))
        return replace(self.now, versions=versions, runs=(first, *others))

    def _canonicalised(self, run: RunConfig, versions: Mapping[str, VersionFact]) -> RunConfig:
        """The run under the changed versions, whose defaults may differ."""
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
        known = self.now.versions.get(change.name)
        if known is not None and known.exact is not None and known.exact == fact.exact:
            self.refuse(change.name, ALREADY)
            return
        self.versions[change.name] = fact
        self.changed.append(
            AppliedChange(
                name=change.name,
                wording=change.wording,
                before=known.exact if known else None,
                after=change.raw,
                version=fact,
            )
        )

    def _set(self, change: Change) -> None:
        """Change a canonical setting by editing the text, or else override the parsed value."""
        name = change.name
        setting = self.now.run.settings.get(name)
        unwritten = setting is None or setting.option is None
        same = setting is not None and setting.value == change.value
        if (same and not (self._facts and setting is not None and setting.is_default)) or (
            unwritten and change.value == UNSET
        ):
            self.refuse(change.wording, ALREADY)
            return
        before = None if setting is None else show(setting.value)
        if not self._edited(name, change):
            if change.value == UNSET:
                self.refuse(change.wording, NO_ROOM)
                return
            self.settings[name] = change.value
        now = self.now.run.settings.get(name)
        if (
            self._facts
            and change.value == UNSET
            and now is not None
            and setting is not None
            and now.value == setting.value
        ):
            self.unknown_now.add(name)  # the default is what the user says it is not
        self.changed.append(AppliedChange(name=name, wording=change.wording, before=before, after=change.display))

    def _edited(self, name: str, change: Change) -> bool:
        """Edit the pasted text; whether the setting then has the wanted value."""
        spec = (
            FixSpec(safety=Safety.UNSAFE, unset=(name,))
            if change.value == UNSET
            else FixSpec(safety=Safety.UNSAFE, set={name: change.value})  # type: ignore[dict-item]
        )
        (fix,) = fixes([spec], Facts(self.now))
        if not fix.edits:
            return False
        after = reread(self.now, patched(fix.edits, self.now.sources), self._read)
        if name not in self.now.run.settings or self.now.run.settings[name].option is None:
            # A new misplaced-option finding would be the fault of our edit, not of the change.
            new = fired_rules(unstarted(after), self.rules, self.spelled)
            if new - fired_rules(unstarted(self.now), self.rules, self.spelled):
                return False
        setting = after.run.settings.get(name)
        applied = setting is not None and setting.value == change.value and change.value != UNSET
        unwritten = setting is None or setting.option is None
        if applied or unwritten:
            self.now = after
        return applied or (unwritten and change.value == UNSET)

    def _write(self, change: Change) -> None:
        """Change an option that is not a canonical setting: in place, or after the program's last option."""
        facts = Facts(self.now)
        written = facts.options(change.name)
        holder = written[-1] if written else _last_option(self.now.run)
        if holder is None or change.value == UNSET:
            self.refuse(change.wording, NO_ROOM)
            return
        if written and written[-1].raw == change.raw:
            self.refuse(change.wording, ALREADY)
            return
        source = next((source for source in self.now.sources if source.name == holder.span.attachment), None)
        document = Document(source or Source(name=holder.span.attachment, text="", byte_count=0))
        raw = _in_format(change.raw, holder.origin)
        edit = replace_value(document, holder, raw) if written else insert(document, holder, change.name, raw)
        if edit is None:
            self.refuse(change.wording, NO_ROOM)
            return
        self.now = reread(self.now, patched((edit,), self.now.sources), self._read)
        before = written[-1].raw or "true" if written else None
        self.changed.append(
            AppliedChange(name=change.name, wording=change.wording, before=before, after=change.display)
        )


def _unread(evidence: Evidence) -> int:
    """How many pieces could be read in part only."""
    return sum(region.partial for region in evidence.regions)


def _assumed(name: str, value: Value) -> Setting:
    return Setting(name=name, value=value, option=None, source="supposed", key=name)


def _last_option(run: RunConfig) -> Option | None:
    options = [option for option in run.options if option.scope not in _FOREIGN and option.origin is not Origin.DUMP]
    return max(options, key=lambda option: option.span.order, default=None)


def _in_format(raw: str, origin: Origin) -> str:
    """The value as JSON and Python write it: words quoted, numbers and booleans bare."""
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
    affected = sorted((rule for rule in rules.rules if rule.id in ids), key=lambda r: (order.index(r.severity), r.id))
    return tuple(Effect(rule_id=rule.id, title=rule.title, severity=rule.severity) for rule in affected)
