"""Every mechanism page loads, and its examples hold."""

from __future__ import annotations

from tests.every_case import every_case
from tests.shipped import shipped_cases, shipped_mechanisms, shipped_rules
from trainmedic.ingest.authoring.mechanism_examples import lint_examples
from trainmedic.ingest.authoring.page_lint import lint_mechanism
from trainmedic.kb.engine.mechanism import Mechanism
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.parse.pipeline import parse

MECHANISMS = shipped_mechanisms()
CASES, RULES, GLOSSARY = shipped_cases(), shipped_rules(), load_glossary()


def test_every_page_loads() -> None:
    assert [str(problem) for problem in MECHANISMS.failures] == []


@every_case("mechanism", MECHANISMS.mechanisms)
def test_a_page_has_its_form_its_links_and_examples_that_hold(mechanism: Mechanism) -> None:
    page = MECHANISMS.pages[mechanism.id]
    assert [str(problem) for problem in lint_mechanism(mechanism, page, CASES, RULES, GLOSSARY)] == []
    assert [str(problem) for problem in lint_examples(mechanism, page, GLOSSARY, parse)] == []
