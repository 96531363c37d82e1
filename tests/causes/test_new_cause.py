"""Five answers make a page that lint has nothing to say about; what is missing in an answer is asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tests.every_case import every_case
from trainmedic.ingest.authoring.lint import Standards, lint
from trainmedic.ingest.authoring.new_cause import Answers, page_of
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.model.page import PageProblem
from trainmedic.kb.pages.case import load_cases
from trainmedic.kb.pages.mechanism import load_mechanisms
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.parse.pipeline import parse

TODAY = date(2026, 11, 22)
PACKING = Answers(
    seen="The model never stops after SFT with packing",
    package="trl",
    introduced="",
    fixed="0.12.0",
    run="trl sft --model_name_or_path m --dataset_name d [[--packing]]",
    why="The packer cut each row before the end token was appended.",
    helps="",
    source="https://github.com/huggingface/trl/issues/1",
)
CHINESE = replace(
    PACKING,
    seen="开 packing 之后 loss 变成 nan",
    package="llamafactory",
    introduced="0.9.0",
    fixed="",
    run="stage: sft\nmodel_name_or_path: m\n[[packing: true]]\n[[flash_attn: fa2]]\nfinetuning_type: lora",
    why="注意力掩码没有按样本切开。",
    helps="关掉 packing。",
)
CALL = replace(PACKING, run="from trl import SFTConfig\nargs = SFTConfig([[packing=True]], max_length=128)")
NO_DEFAULT = replace(PACKING, run="trl sft --dataset_name d [[--packing]] [[--use_liger_kernel]]", introduced="0.11.0")
VALUE = replace(PACKING, run="trl sft --dataset_name d [[--per_device_train_batch_size 1]] --max_steps 5")


def problems(page: Path) -> list[PageProblem]:
    rules, cases, mechanisms = load_rules((page,)), load_cases((page,)), load_mechanisms((page,))
    assert rules.rules
    standards = Standards(today=TODAY)
    only = {page.as_posix()}
    return list(lint(rules, cases, parse, vocabulary(), mechanisms=mechanisms, only=only, standards=standards))


@every_case("answers", [PACKING, CHINESE, CALL, NO_DEFAULT, VALUE])
def test_five_answers_are_a_page_without_a_problem(answers: Answers, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = page_of(answers, parse, TODAY, "0.1.0")
    page = tmp_path_factory.mktemp("trl") / f"{made.id}.md"
    page.write_text(made.text, encoding="utf-8")
    assert problems(page) == []


def test_the_page_of_one_option_is_short_and_its_check_finds_what_was_marked() -> None:
    made = page_of(PACKING, parse, TODAY, "0.1.0")
    assert (made.id, made.framework) == ("trl-model-never-stops-sft-packing", "trl")
    assert len(made.text.splitlines()) <= 60
    assert 'when: packing and version("trl", "<0.12.0")' in made.text
    assert "⟦--packing⟧" in made.text
    assert "family: nan-loss" in page_of(CHINESE, parse, TODAY, "0.1.0").text


@every_case(
    ("answers", "message"),
    [
        (
            replace(PACKING, run=PACKING.run.replace("[[", "").replace("]]", "")),
            "recognised options: model_name_or_path",
        ),
        (replace(PACKING, fixed="soon"), "'soon' is not a release"),
        (replace(PACKING, fixed=""), "the first release with it or the first without"),
        (replace(PACKING, fixed="", introduced="0.11.0"), "say what helps"),
    ],
)
def test_an_answer_that_is_not_enough_is_named(answers: Answers, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        page_of(answers, parse, TODAY, "0.1.0")
