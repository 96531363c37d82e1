"""One draft becomes an answer in one place, whoever decided."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.every_case import every_case
from tests.incidents import INCIDENTS
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.serialization import plain
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import Asked, assemble
from trainmedic.service.answer.messages import messages
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.pipeline import Draft
from trainmedic.service.ranking.judgement import Hypothesis, Judgement

OF_THE_MODEL = {"answer", "sections", "citations", "causes", "verdict", "mode", "model", "notices", "usage", "steps"}
JUDGED = Judgement(model="m", verdict="need_input", hypotheses=(Hypothesis(title="T", because="B"),))


@pytest.fixture
def draft(knowledge_advisor: Advisor) -> Draft:
    return knowledge_advisor.prepare(Ask(question=INCIDENTS[0].en, attachments=INCIDENTS[0].files))


def test_a_model_decides_about_the_causes_and_the_text_alone(draft: Draft) -> None:
    own, other = plain(assemble(draft)), plain(assemble(replace(draft, judgement=JUDGED), Asked()))
    assert isinstance(own, dict)
    assert isinstance(other, dict)
    assert {name for name in own if own[name] != other[name]} <= OF_THE_MODEL


def test_what_a_reader_must_know_of_a_draft_follows_what_is_said_of_the_model(draft: Draft) -> None:
    lost = replace(draft, recalled=False)
    notice = messages("not_stored", "en")
    assert assemble(lost).notices == (messages("no_model", "en"), notice)
    assert assemble(lost, Asked(notices=("the model failed",))).notices == ("the model failed", notice)
    assert assemble(replace(lost, judgement=JUDGED), Asked()).notices == (notice,)


def test_without_a_judgement_the_program_s_own_answer_stands(draft: Draft) -> None:
    own, failed = assemble(draft), assemble(draft, Asked(notices=("the model failed",)))
    assert (failed.sections, failed.mode, failed.model) == (own.sections, "deterministic", None)


@every_case(
    ("question", "told"),
    [
        ("GRPO with trl 99.0: reward stays 0 from the start, why?", "receipt"),
        ("What is the default of beta in GRPO of trl 99.0?", "explained"),
    ],
)
def test_an_answer_says_once_where_knowledge_of_a_release_ends(advisor: Advisor, question: str, told: str) -> None:
    answer = advisor.ask(Ask(question=question))
    (item,) = answer.horizon
    assert (item.package, item.asked) == ("trl", "99.0.x")
    assert answer.answer.count(item.message) == 1
    assert (item.message in answer.notices) is (told == "receipt")


def test_a_healthy_run_of_an_unknown_release_is_not_called_so_without_a_word(advisor: Advisor) -> None:
    command = "trl sft --model_name_or_path m --dataset_name d --learning_rate 1e-5"
    files = (Attachment(name="train.sh", content=command), Attachment(name="pip.txt", content="trl==99.0\n"))
    answer = advisor.ask(Ask(question="is this config right?", attachments=files))
    assert answer.verdict == "no_fault"
    (lead,) = [section.body for section in answer.sections if section.kind == "lead"]
    assert answer.horizon[0].message in lead
