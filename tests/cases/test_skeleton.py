"""The skeleton of a new case page."""

from __future__ import annotations

from pathlib import Path

from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.case_skeleton import skeleton


def test_the_skeleton_loads_as_a_draft(tmp_path: Path) -> None:
    (tmp_path / "my-case.md").write_text(skeleton("my-case"), encoding="utf-8")
    cases = load_cases((tmp_path,))
    assert [str(failure) for failure in cases.failures if "my-case" in str(failure)] == []
    assert next(case for case in cases.cases if case.id == "my-case").status == "draft"
