"""`trainmedic kb lint`: the problems of pages, each once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date

from trainmedic.ingest.authoring.mechanism_examples import lint_examples
from trainmedic.ingest.authoring.page_lint import Profile, lint_case, lint_mechanism
from trainmedic.ingest.authoring.rule_lint import lint_rule
from trainmedic.kb.engine.mechanism import MechanismSet
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.pages.page import suggestion

NO_MECHANISMS = MechanismSet()
NO_CONCEPTS = Glossary({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standards:
    """What cases are held against. ``team`` are the names of a team's own pages, which need less than built-in ones;
    without ``today`` a date in the future passes."""

    team: Collection[str] = ()
    today: date | None = None


BUILT_IN_ONLY = Standards()


def lint(
    rules: RuleSet,
    cases: CaseSet,
    read: Read,
    words: Vocabulary,
    *,
    mechanisms: MechanismSet = NO_MECHANISMS,
    glossary: Glossary = NO_CONCEPTS,
    only: Collection[str] | None = None,
    standards: Standards = BUILT_IN_ONLY,
) -> tuple[PageProblem, ...]:
    """All problems in the order of pages and lines; those of pages that did not load included.

    ``only`` are the names of the pages to check (`kb.model.page.Page.name`); the others are read for the links alone.
    """
    problems: set[PageProblem] = {*rules.failures, *cases.failures, *mechanisms.failures}
    for rule in rules.rules:
        if only is None or rule.page.name in only:
            problems.update(lint_rule(rule, read))
    for case in cases.cases:
        name = cases.pages[case.id].name if case.id in cases.pages else ""
        profile: Profile = "team" if name in standards.team else "built-in"
        if only is None or name in only:
            problems.update(lint_case(case, cases, words, standards.today, profile))
    for mechanism in mechanisms.mechanisms:
        page = mechanisms.pages[mechanism.id]
        if only is None or page.name in only:
            problems.update(lint_mechanism(mechanism, page, cases, rules, glossary))
            problems.update(lint_examples(mechanism, page, glossary, read))
    problems.update(links(rules, cases, standards.team))
    if mechanisms.mechanisms:
        problems.update(unassigned(cases, mechanisms, standards.team))
    return tuple(sorted(problem for problem in problems if only is None or problem.page in only))


def links(rules: RuleSet, cases: CaseSet, team: Collection[str] = ()) -> Iterator[PageProblem]:
    """A rule and the case that justifies it must name each other, unless only one of them is a team's own."""

    def owed(page: Page, other: Page | None) -> bool:
        # A team cannot change a built-in page.
        return page.name not in team or (other is not None and other.name in team)

    rules_by_id = {rule.id: rule for rule in rules.rules}
    cases_by_id = {case.id: case for case in cases.cases}
    for rule in rules.rules:
        for case_id in rule.cases:
            if case_id == rule.id:  # it names none: the page is the cause
                continue
            if case_id not in cases_by_id:
                yield rule.page.problem(
                    f"cases: there is no case {case_id!r}{suggestion(case_id, cases_by_id)}", "cases"
                )
            elif rule.id not in cases_by_id[case_id].rules and owed(rule.page, cases.pages.get(case_id)):
                yield rule.page.problem(f"cases: the case {case_id!r} does not name this rule", "cases")
    for case in cases.cases:
        page = cases.pages.get(case.id, Page(name=f"{case.id}.md"))
        for rule_id in case.rules:
            if rule_id not in rules_by_id:
                near = suggestion(rule_id, rules_by_id)
                yield page.problem(f"rules: there is no rule {rule_id!r}{near}", "rules")
            elif case.id not in rules_by_id[rule_id].cases and owed(page, rules_by_id[rule_id].page):
                yield page.problem(f"rules: the rule {rule_id!r} does not name this case", "rules")


def unassigned(cases: CaseSet, mechanisms: MechanismSet, team: Collection[str] = ()) -> Iterator[PageProblem]:
    """A published case of the built-in knowledge must belong to a mechanism."""
    assigned = {case for mechanism in mechanisms.mechanisms for case in mechanism.all_cases}
    for case in cases.published:
        page = cases.pages.get(case.id)
        built_in = page is not None and page.name.startswith("kb/cases/") and page.name not in team
        if page is not None and built_in and case.id not in assigned:
            yield page.problem("no mechanism names this case (kb/mechanisms, `cases` of a page or of an origin)", "id")
