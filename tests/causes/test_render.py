"""A rule as a page for people."""

from __future__ import annotations

from dataclasses import replace

from tests.every_case import every_case
from tests.shipped import shipped_rules
from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.pages.render import render_rule

RULES = shipped_rules().rules


@every_case("rule", RULES)
@every_case("language", ["en", "zh"])
def test_every_rule_renders_whole_in_either_language(rule: Rule, language: str) -> None:
    text = render_rule(rule, language)
    assert text.startswith(f"# {rule.title.get(language)}\n")
    assert rule.message.source.get(language) in text
    assert rule.note is None or rule.note.get(language) in text
    assert all(case in text for case in rule.cases)
    assert all(source.url in text for source in rule.sources)
    assert "⟦" not in text


def test_a_rule_with_a_module_says_so_instead_of_a_condition() -> None:
    rule = next(rule for rule in RULES if rule.check is not None)
    assert "```\nmodule\n```" in render_rule(rule, "en")


def test_another_language_is_shown_in_english() -> None:
    assert render_rule(RULES[0], "fr") == render_rule(RULES[0], "en")


def test_a_rule_without_an_example_has_no_chapter_for_it() -> None:
    bare = replace(RULES[0], page=replace(RULES[0].page, text="## Check " + RULES[0].id))
    assert "## Example that fires" in render_rule(RULES[0])
    assert "## Example that fires" not in render_rule(bare)
    assert "## Cases" in render_rule(bare)
