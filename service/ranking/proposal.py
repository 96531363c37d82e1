"""The diff of a cause's fix, carried over to the user's own files: applied in memory, and checked again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.frameworks.canonical import keys_of
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.run import RunConfig
from trainmedic.service.dialogue.change import UNSET, Change, InvalidChange, parse_change
from trainmedic.service.dialogue.what_if import WhatIf, what_if
from trainmedic.service.ranking.fix_values import changed_by

_DIFF = regex(r"^```diff\n(.*?)^```", re.DOTALL | re.MULTILINE)
_UNSET = "unset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a case's fix does to the user's files, after which no rule finds anything new."""

    case: str
    effects: WhatIf


def proposal(case: Case, evidence: Evidence, rules: RuleSet, read: Read) -> Proposal | None:
    """None where nothing of the case's diff fits the run, or where it brings up another finding."""
    changes = dict(_changes(case, evidence.run))
    if not changes:
        return None
    effects = what_if(evidence, changes, rules, read)
    return Proposal(case=case.id, effects=effects) if effects.patch and not effects.appears else None


def _changes(case: Case, run: RunConfig) -> Iterator[tuple[str, str]]:
    for diff in _DIFF.findall(case.section("fix", "en")):
        for name, (before, after) in changed_by(diff).items():
            new, old = _meant(name, after, run), _meant(name, before, run)
            if new is not None and old is not None and _fits(new, old, run):
                yield name, _UNSET if after is None else after


def _meant(name: str, raw: str | None, run: RunConfig) -> Change | None:
    """The setting that is meant, with its value; None if the run's framework has no option for it."""
    try:
        change = parse_change(name, _UNSET if raw is None else raw, run)
    except InvalidChange:
        return None
    framework = run.framework.value if run.framework is not None else ""
    return change if change.canonical and keys_of(framework, change.name) else None


def _fits(new: Change, old: Change, run: RunConfig) -> bool:
    """Whether the run has what the diff takes out, or a number beyond it; what is only added overrides no value."""
    setting = run.settings.get(new.name)
    value = setting.value if setting is not None else None
    is_written = setting is not None and not setting.is_default
    if old.value == UNSET:
        return not is_written or isinstance(new.value, bool)
    if new.value == UNSET:
        return is_written and value == old.value
    if _is_number(value) and _is_number(old.value) and _is_number(new.value):
        return (value - new.value) * (old.value - new.value) > 0  # type: ignore[operator]
    return setting is not None and value == old.value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
