"""Deterministic checks of what was pasted. `README.md` beside this file says how a rule page is written.

``load_rules(paths=()) -> RuleSet`` reads the pages (`kb.rules.page`); ``check(evidence, ruleset) -> Report`` runs them
(`kb.rules.engine`); ``with_patches(report, evidence, ruleset, parse) -> Report`` adds the patches and what they change
(`kb.rules.patch`); ``lint_rules(ruleset, parse, cases=None)`` says what is wrong with pages (`kb.rules.lint`);
``read_body(rule)`` is a page's documentation and examples (`kb.rules.body`).
"""
