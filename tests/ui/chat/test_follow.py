"""What can be asked next: real changes of the user's own files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trainmedic.kb.model.place import Attachment, Source
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.answer.schema import StepView
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.chat.follow import FollowUp, applied, follow_ups, kept_sources
from trainmedic.ui.chat.texts import examples, words


def source(name: str | None, text: str) -> Source:
    return Source(name=name, text=text, byte_count=len(text))


def offered(
    advisor: Advisor, question: str, files: tuple[Attachment, ...], *, model: bool = False
) -> dict[str, FollowUp]:
    prepared = advisor.prepare(Ask(question=question, attachments=files))
    answer = assemble(prepared)
    case = advisor.case(answer.causes[0].case_id) if answer.causes else None
    kept = kept_sources(prepared.context.evidence.sources)
    return {each.id: each for each in follow_ups(answer, kept, case, "en", model=model)}


def test_with_the_patch_applied_what_it_clears_is_gone(advisor: Advisor) -> None:
    example = examples("zh")[0]
    before = advisor.ask(Ask(question=example.question, attachments=example.files))
    follow = offered(advisor, example.question, example.files)["patch"]
    assert (follow.label, follow.question) == (words("zh")["follow_patch"], words("zh")["patched_question"])
    again = Ask(question=follow.question, attachments=follow.files, conversation_id=before.conversation_id)
    after = advisor.ask(again)
    patched = next(each for each in before.findings if each.patch)
    fired = {each.rule_id for each in after.findings if each.status == "fired"}
    assert patched.clears
    assert not fired & set(patched.clears)


def test_an_upgrade_is_only_supposed(advisor: Advisor) -> None:
    example = examples("en")[0]
    follow = offered(advisor, example.question, example.files)["upgrade"]
    assert not follow.files
    assert "openrlhf to 0.3.5" in follow.question


def test_a_missing_fact_becomes_the_beginning_of_an_answer(advisor: Advisor) -> None:
    found = offered(advisor, "DPO rewards/chosen is nan, what is wrong?", ())
    assert [each.fill for each in found.values()] == ["framework: "]
    assert all("`" not in each.label for each in found.values())


def test_a_closer_look_is_offered_only_with_a_model_and_never_at_a_healthy_run(advisor: Advisor) -> None:
    nan, healthy = examples("en")[0], examples("en")[2]
    assert "investigate" not in offered(advisor, nan.question, nan.files)
    assert offered(advisor, nan.question, nan.files, model=True)["investigate"].investigate
    assert "investigate" not in offered(advisor, healthy.question, healthy.files, model=True)
    answer = advisor.ask(Ask(question=nan.question, attachments=nan.files))
    looked = replace(answer, steps=(StepView(number=1, tool="read_log", what="", arguments={}, result=""),))
    assert "investigate" not in {each.id for each in follow_ups(looked, (), None, "en", model=True)}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n a\n-b\n c\n", "a\nc\nd\n"),
        ("--- a/x\n+++ b/x\n@@ -1,1 +1,2 @@\n a\n+z\n@@ -4,1 +5,0 @@\n-d\n", "a\nz\nb\nc\n"),
        ("--- a/x\n+++ b/x\n@@ -2,1 +2,1 @@\n--b\n+-- z\n", None),
        ("--- a/y\n+++ b/y\n@@ -1,1 +1,0 @@\n-a\n", None),
    ],
)
def test_a_patch_is_applied_exactly_or_not_at_all(patch: str, expected: str | None) -> None:
    found: tuple[Any, ...] = applied(patch, [source("x", "a\nb\nc\nd\n")])
    assert [each.content for each in found] == ([expected] if expected is not None else [])


def test_an_option_line_that_is_removed_is_not_taken_for_a_header() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n a\n--- bf16\n"
    (found,) = applied(patch, [source("x", "a\n-- bf16\n")])
    assert found.content == "a\n"
