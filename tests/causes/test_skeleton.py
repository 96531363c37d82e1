"""A skeleton loads, and lint asks for what is left empty, and for nothing else."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from trainmedic.ingest.authoring.lint import Standards, lint
from trainmedic.ingest.authoring.skeleton import skeleton
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.mechanism import load_mechanisms
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse

TODAY = date(2026, 11, 22)


@pytest.mark.parametrize(("kind", "empty"), [("cause", 8), ("mechanism", 4)])
def test_lint_asks_for_the_empty_sections_of_a_skeleton(kind: str, empty: int, tmp_path: Path) -> None:
    page = tmp_path / "numerics" / "my-page.md"
    page.parent.mkdir()
    page.write_text(skeleton(kind, "my-page", "0.1.0", TODAY), encoding="utf-8")
    rules, cases, mechanisms = load_rules((page,)), load_cases((page,)), load_mechanisms((page,))
    problems = lint(
        rules,
        cases,
        parse,
        vocabulary(),
        mechanisms=mechanisms,
        only={page.as_posix()},
        standards=Standards(today=TODAY),
    )
    sections = [problem for problem in problems if "missing or empty" in problem.message]
    assert len(sections) == empty
    assert len({problem.line for problem in sections}) == empty
    others = {problem.message for problem in problems} - {problem.message for problem in sections}
    assert others == set()


def test_a_new_page_is_a_draft(tmp_path: Path) -> None:
    page = tmp_path / "my-case.md"
    page.write_text(skeleton("cause", "my-case", "0.1.0", TODAY), encoding="utf-8")
    case = load_cases((page,)).get("my-case")
    assert case is not None
    assert case.status == "draft"
