"""The agent of the benchmark: it reads only its case's folder, ends with a report, and is judged by the key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.agents import TURNS, Case, Run, cases_of, measured, table, unspoilt
from tests.fake_model import FakeModel, Reply, calling, form
from trainmedic.kb.model.place import Attachment
from trainmedic.service.llm.chat import ChatModel, ModelOptions

SCRIPT = Attachment(name="train.py", content="loss.backward()\noptimizer.step()\n")
CASE = Case(of="scripts", id="one", question="The loss rises.", required=(("zero_grad",),), files=(SCRIPT,))
REPORT = {"cause": "Gradients add up.", "line": "train.py:2", "change": "Call optimizer.zero_grad() in each step."}


def paged(question: str, files: Sequence[Attachment]) -> str:
    return f"the page on {question} and {len(files)} file"


def run(fake: FakeModel) -> list[Run]:
    """The case in both arms, one after the other."""
    return asyncio.run(measured([CASE], ChatModel(ModelOptions(base_url=fake.url, concurrency=1)), paged))


def calls(*given: dict[str, Any]) -> Reply:
    """A turn in the form of a model without tool calls."""
    return form({"calls": list(given)})


@pytest.mark.parametrize("able", [("tools",), ("structured",)])
def test_the_agent_looks_reports_and_is_judged_by_the_key_whether_or_not_its_model_calls_tools(
    able: tuple[str, ...],
) -> None:
    report = [{"tool": "report", **REPORT}]
    turns: list[list[dict[str, Any]]] = [
        report,
        [{"tool": "list_files"}, {"tool": "grep", "contains": "BACKWARD"}],
        [{"tool": "read_file", "path": "../secret", "first_line": 1}, {"tool": "diagnose", "question": "why?"}],
        report,
    ]
    spoken = [
        Reply(calls=[(each["tool"], {k: v for k, v in each.items() if k != "tool"}) for each in t]) for t in turns
    ]
    with FakeModel(*spoken, forms=[calls(*each) for each in turns], able=able) as fake:
        at_once, only = run(fake)
        asked = (fake.texts or fake.forms)[-1].prompt
    assert only.right
    assert (at_once.turns, only.turns) == (1, 3)
    assert not only.trouble
    assert only.calls == {"list_files": 1, "grep": 1, "read_file": 1, "diagnose": 1, "report": 1}
    assert "train.py (2 lines)" in asked
    assert "train.py:1: loss.backward()" in asked
    assert "There is no such file" in asked
    assert "the page on why? and 1 file" in asked
    assert only.usage["prompt_tokens"] > 0


def test_only_one_arm_has_the_tool_and_the_skill() -> None:
    with FakeModel(calling("diagnose", question="why?"), calling("report", **REPORT)) as fake:
        without, with_it = run(fake)
        first, second, third = fake.texts
    assert "Diagnose a training run" not in first.prompt
    assert "Diagnose a training run" in third.prompt
    assert "There is no such tool" in second.prompt
    assert "diagnose" not in without.calls
    assert without.right
    assert with_it.right
    assert "| scripts | without | 1 of 1 | 0 | 2.0 |" in table([without, with_it])


def test_the_last_turn_must_report_and_without_a_report_a_case_is_wrong() -> None:
    with FakeModel(calling("list_files")) as fake:
        only, _ = run(fake)
        offered = [[tool["function"]["name"] for tool in each.body["tools"]] for each in fake.texts[:TURNS]]
    assert only.turns == TURNS
    assert not only.right
    assert only.report is None
    assert offered[0] == ["list_files", "read_file", "grep", "report"]
    assert offered[-1] == ["report"]


def test_a_refusal_breaks_one_case_off() -> None:
    with FakeModel(Reply(status=400)) as fake:
        only, _ = run(fake)
    assert only.trouble.startswith("refused")
    assert "| 0 of 1 | 0 | 1.0 | 0 | 0 | 0 | 1 |" in table([only])


def test_cases_of_the_outside_set_have_a_key_and_scripts_are_shown_without_what_tells_their_fault() -> None:
    outside = list(cases_of({}, outside=3))
    assert len(outside) == 3
    assert all(case.required and case.question for case in outside)
    assert unspoilt("x = 1  # the bug\nclass BuggyTrainer:\n    pass\n", 2) == "x = 1  \nclass myTrainer:\n"
