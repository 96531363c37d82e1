"""The diff of a cause's fix, carried over to the user's own files: applied in memory, and checked again. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.frameworks.canonical import keys_of
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.run import Origin, RunConfig
from trainmedic.service.dialogue.change import UNSET, Change, InvalidChange, parse_change
from trainmedic.service.dialogue.what_if import ALREADY, WhatIf, what_if
from trainmedic.service.ranking.fix_values import changed_by

_DIFF = regex(r"^```diff\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NESTED = regex(r"""^([+-]\s*\w+)=\{["'](\w+)["']:\s*([\w.+-]+)\}""", re.MULTILINE)
_UNSET = "unset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Effects of a case's fix on the user's files, after which no rule finds anything new."""

    case: str
    effects: WhatIf


def proposal(case: Case, evidence: Evidence, rules: RuleSet, read: Read) -> Proposal | None:
    """None where nothing of the case's diff fits the run, or where a finding comes up or that of the case
    stays."""
    changes = dict(_changes(case, evidence.run))
    if not changes:
        return None
    effects = what_if(evidence, changes, rules, read)
    whole = effects.patch and not effects.assumed and all(refused.why is ALREADY for refused in effects.unknown)
    own = {rule.id for rule in rules.rules if case.id in rule.cases}
    failing = effects.appears or any(effect.rule_id in own for effect in effects.stays)
    return Proposal(case=case.id, effects=effects) if whole and not failing else None


def _changes(case: Case, run: RunConfig) -> Iterator[tuple[str, str]]:
    """The changes of the case's diff that fit, but none of a diff of which a part is not understood, that only renames,
    or that takes out nothing the run has."""
    framework = run.framework.value if run.framework is not None else ""
    for diff in _DIFF.findall(_NESTED.sub(r"\1.\2=\3", case.section("fix", "en"))):
        edits = changed_by(diff)
        meant: dict[str, tuple[Change, Change]] = {}
        try:
            for name, values in edits.items():
                old, new = (parse_change(name, _UNSET if raw is None else raw, run) for raw in values)
                if keys_of(framework, new.name) or not new.canonical:
                    meant[name] = old, new
        except InvalidChange:
            continue
        settings = [new.name for _, new in meant.values()]
        fitting = {name for name, (old, new) in meant.items() if _fits(new, old, run)}
        replaced = {name for name, (old, _) in meant.items() if old.value != UNSET}
        if _is_whole(diff, edits) and len(set(settings)) == len(settings) and (fitting & replaced or not replaced):
            yield from ((name, edits[name][1] or _UNSET) for name in meant if name in fitting)


def _is_whole(diff: str, edits: Collection[str]) -> bool:
    """Whether every changed line is one of an option."""
    changed = [line[1:].strip(' -"') for line in diff.split("\n") if line[:1] in ("+", "-") and line[1:].strip()]
    return all(any(re.match(rf"{re.escape(name)}(?![\w.])", line) for name in edits) for line in changed)


def _fits(new: Change, old: Change, run: RunConfig) -> bool:
    """Whether the run has what the diff takes out, or a number nearer to that or beyond it.

    What is only added overrides no value, and no name or path: those of a case are examples.
    """
    if not new.canonical:
        return _fits_own(new, old, run)
    setting = run.settings.get(new.name)
    value = setting.value if setting is not None else None
    is_written = setting is not None and not setting.is_default
    if old.value == UNSET:
        exemplary = specs()[new.name].kind in ("text", "list", "targets", "any")
        return not exemplary and (not is_written or isinstance(new.value, bool))
    if new.value == UNSET:
        return is_written and value == old.value
    if is_written and _is_number(value) and _is_number(old.value) and _is_number(new.value):
        return _is_nearer(float(value), float(old.value), float(new.value))  # type: ignore[arg-type]
    return setting is not None and value == old.value


def _fits_own(new: Change, old: Change, run: RunConfig) -> bool:
    """The same for an option that is not a canonical setting: a switch or a number, not of a call."""
    written = next((option for option in reversed(run.options) if option.key == new.name), None)
    if re.fullmatch(r"(?i)true|false|[-+]?[\d.]+(e[-+]?\d+)?", new.raw) is None:
        return False
    if old.value != UNSET:
        return written is not None and written.raw == old.raw
    return written is None and all(option.origin is not Origin.PYTHON for option in run.options)


def _is_nearer(value: float, old: float, new: float) -> bool:
    """Whether a value is on the old one's side of the new one, and at least half of its way off."""
    if (value - new) * (old - new) <= 0:
        return False
    if min(value, old, new) > 0:
        return abs(math.log(value / new)) >= abs(math.log(old / new)) / 2
    return abs(value - new) >= abs(old - new) / 2


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
