"""The coverage page says what the pages hold: counts, links both ways, grades, and what is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tests.shipped import shipped_cases, shipped_mechanisms, shipped_rules
from trainmedic.ingest.authoring.coverage import coverage
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.pages.case import CaseSet

ROOT = Path(__file__).parent.parent
CASES, RULES = shipped_cases(), shipped_rules()


def test_every_link_leads_to_a_page() -> None:
    links = set(re.findall(r"\]\(\.\./([^)]+)\)", coverage(CASES, RULES)))
    assert len(links) > 100
    assert sorted(link for link in links if not (ROOT / link).exists()) == []


def test_every_published_case_and_every_rule_is_named() -> None:
    text = coverage(CASES, RULES)
    assert [case.id for case in CASES.published if f"[{case.id}](../kb/cases/" not in text] == []
    assert [rule.id for rule in RULES.rules if f"[{rule.id}](../kb/rules/" not in text] == []


def test_every_mechanism_is_named_and_linked() -> None:
    mechanisms = shipped_mechanisms()
    text = coverage(CASES, RULES, mechanisms)
    assert [item.id for item in mechanisms.mechanisms if f"[{item.id}](../kb/mechanisms/" not in text] == []
    assert f"| mechanisms | {len(mechanisms.mechanisms)} |" in text


def test_a_draft_is_not_named() -> None:
    first = CASES.published[0]
    drafted = CaseSet(cases=(replace(first, status="draft"), *CASES.cases[1:]), pages=CASES.pages)
    assert first.id not in coverage(drafted, RuleSet(rules=()))


def test_a_thin_class_and_a_case_with_one_source_are_gaps() -> None:
    one = replace(CASES.published[0], family="throughput", sources=CASES.published[0].sources[:1], rules=())
    text = coverage(CaseSet(cases=(one,), pages=CASES.pages), RuleSet(rules=()))
    assert "- class throughput: 1 cases" in text
    assert "- class oom: 0 cases" in text
    assert "cases with a single source (1)" in text


def test_a_case_of_two_frameworks_counts_in_both_but_once_in_all() -> None:
    both = replace(CASES.published[0], family="oom", frameworks=("trl", "verl"))
    row = next(
        line for line in coverage(CaseSet(cases=(both,)), RuleSet(rules=())).splitlines() if line[:6] == "| oom "
    )
    assert row.count(" 1 ") == 3
