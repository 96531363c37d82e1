"""A rule as the engine runs it. `kb.pages.rule` makes rules of the checks on pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from trainmedic.kb.engine.expressions import Expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.placeholders import Template
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.model.report import Reference, Safety, Severity, Text
from trainmedic.kb.model.run import Option, Scalar

Check: TypeAlias = Callable[[Facts], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixSpec:
    """A fix as the page says it; `kb.engine.fixes` turns it into edits. ``set`` and ``unset`` may stand together; what
    an expression gives is set where it is a number.

    ``alternative``: to be made instead of those before it, not after them. ``repairs`` as in `kb.model.report.Fix`.
    """

    safety: Safety
    set: Mapping[str, Scalar | Expression] = field(default_factory=lambda: MappingProxyType({}))
    unset: tuple[str, ...] = ()
    rename: tuple[tuple[Option, str], ...] = ()
    upgrade: str | None = None
    text: Template | None = None
    when: Expression | None = None
    alternative: bool = False
    repairs: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One check of a page. ``condition`` or ``check`` decides; ``applies`` has the lists of words, not ``versions``.

    ``stops``: with what the rule finds the program stops before the first step. ``family`` is the page's folder,
    ``cases`` its cause first. ``note`` is what the page of the cause does not say. ``page`` is the check's chapter.
    """

    id: str
    family: str
    title: Text
    severity: Severity
    status: str
    since: str
    concludes: str
    symptoms: tuple[str, ...]
    applies: Mapping[str, tuple[str, ...]]
    versions: Mapping[str, str]
    condition: Expression | None
    check: Check | None
    message: Template
    fixes: tuple[FixSpec, ...]
    cases: tuple[str, ...]
    sources: tuple[Reference, ...]
    when: str  # the condition's text, empty for a check
    page: Page
    stops: bool = False
    note: Text | None = None


@dataclass(frozen=True, kw_only=True)
class RuleSet:
    """All rules in order of their ids, what could not be loaded, and a hash of all pages and modules (the version)."""

    rules: tuple[Rule, ...]
    failures: tuple[PageProblem, ...] = ()
    version: str = ""

    def for_framework(self, framework: str | None) -> tuple[Rule, ...]:
        """The rules that may run for a framework (None: not recognised). Deprecated ones never run."""
        return tuple(
            rule
            for rule in self.rules
            if rule.status != "deprecated"
            and ("framework" not in rule.applies or framework in rule.applies["framework"])
        )

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of all rules, in order."""
        return tuple(rule.id for rule in self.rules)

    def get(self, rule_id: str) -> Rule | None:
        return next((rule for rule in self.rules if rule.id == rule_id), None)
