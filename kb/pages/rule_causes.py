"""Rules that no case covers, as causes of their own: one page is rule and cause."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.model.case import Case
from trainmedic.kb.pages.body import SECTIONS, read_body
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.pages.page import PageError


def with_rules(cases: CaseSet, rules: RuleSet) -> CaseSet:
    """The cases, and beside them the rules that name none but themselves."""
    there = {case.id for case in cases.cases}
    own = [rule for rule in rules.rules if rule.cases == (rule.id,) and rule.id not in there]
    causes, failures = [], []
    for rule in own:
        try:
            causes.append(cause_of(rule))
        except PageError as error:
            failures.append(error.problem)
    return replace(
        cases,
        cases=tuple(sorted((*cases.cases, *causes), key=lambda cause: cause.id)),
        failures=(*cases.failures, *failures),
        version=hashlib.sha256(f"{cases.version}\0{''.join(rule.page.text for rule in own)}".encode()).hexdigest()[:12],
    )


def cause_of(rule: Rule) -> Case:
    """A rule as a cause: what it finds and why that matters is the cause. Raises `PageError`."""
    body = read_body(rule)
    sections = {}
    for language, headings in SECTIONS.items():
        found, why, what = (body.sections.get(language, {}).get(heading, "") for heading in headings)
        sections[language] = {"cause": f"{rule.message.source.get(language)}\n\n{why}", "fix": what, "confirm": found}
    return Case(
        id=rule.id,
        title=rule.title,
        kind="fault" if rule.concludes == "fault" else "artefact",
        family=rule.family,
        frameworks=rule.applies.get("framework", ()),
        evidence="source-read",
        reviewed="",
        sections=sections,
        sources=rule.sources,
        affected=rule.versions,
        signals=rule.symptoms,
        rules=(rule.id,),
    )
