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
    """The standards for cases. ``team`` are the names of a team's own pages, which need less than built-in ones;
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
    problems.update(links(rules, cases))
    if mechanisms.mechanisms:
        problems.update(unassigned(cases, mechanisms, standards.team))
    return tuple(sorted(problem for problem in problems if only is None or problem.page in only))


def links(rules: RuleSet, cases: CaseSet) -> Iterator[PageProblem]:
    """The checks of other pages that a page names must exist."""
    for case in cases.cases:
        page = cases.pages.get(case.id, Page(name=f"{case.id}.md"))
        for rule_id in case.rules:
            if rules.get(rule_id) is None:
                yield page.problem(
                    f"detected_by: there is no check {rule_id!r}{suggestion(rule_id, rules.ids)}", "detected_by"
                )


def unassigned(cases: CaseSet, mechanisms: MechanismSet, team: Collection[str] = ()) -> Iterator[PageProblem]:
    """A built-in page that is published in full must belong to a mechanism."""
    assigned = {case for mechanism in mechanisms.mechanisms for case in mechanism.all_cases}
    for case in cases.published:
        page = cases.pages.get(case.id)
        built_in = page is not None and page.name.startswith("kb/causes/") and page.name not in team
        in_full = case.symptoms and len(case.languages) == 2
        if page is not None and built_in and in_full and case.id not in assigned:
            yield page.problem("no mechanism names this case (kb/mechanisms, `cases` of a page or of an origin)", "id")
