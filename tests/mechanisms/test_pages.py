"""Every mechanism page loads, and its examples hold."""

from __future__ import annotations

import pytest

from trainmedic.ingest.authoring.mechanism_lint import lint_mechanism
from trainmedic.kb.engine.mechanism import Mechanism
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.mechanism import load_mechanisms
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse

MECHANISMS = load_mechanisms()
CASES, RULES, GLOSSARY = load_cases(), load_rules(), load_glossary()


def test_every_page_loads() -> None:
    assert [str(problem) for problem in MECHANISMS.failures] == []


@pytest.mark.parametrize("mechanism", MECHANISMS.mechanisms, ids=lambda mechanism: mechanism.id)
def test_a_page_has_its_form_its_links_and_examples_that_hold(mechanism: Mechanism) -> None:
    problems = lint_mechanism(mechanism, MECHANISMS, CASES, RULES, GLOSSARY, parse)
    assert [str(problem) for problem in problems] == []
