"""Which cards a user names, and what a condition may conclude from them."""

from __future__ import annotations

from tests.every_case import every_case
from tests.rules.support import evidence, option, run
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.values import UNKNOWN, Result
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse


def facts(question: str = "", **files: str) -> Facts:
    return Facts(
        parse(question, [Attachment(name=name.replace("_", "."), content=text) for name, text in files.items()])
    )


@every_case(
    ("words", "below"),
    [
        ("I have 8xV100 here", True), ("4 x RTX 2080 Ti", True), ("an A100", False), ("H100 and V100 nodes", UNKNOWN),
        ("on V100 and T4", True), ("device of compute capability 7.5", True), ("CUDA capability sm_86", False),
        ("an MI300X", False), ("no card at all", UNKNOWN), ("version 1.A100", UNKNOWN),
    ],
)  # fmt: skip
def test_every_card_that_is_named_must_be_older(words: str, below: Result) -> None:
    assert facts(words).card_below("8.0").value is below


def test_a_card_is_evidence_at_its_place_and_gives_its_name() -> None:
    asked = facts("trained on a Tesla V100 yesterday")
    fact = asked.card_below("8.0")
    assert ([span.text for span in fact.spans], fact.user_provided) == (["Tesla V100"], True)
    assert asked.card_name().value == "Tesla V100"


def test_without_a_card_the_card_is_asked_for() -> None:
    assert facts("hello").card_below("8.0").missing == ("card",)
    assert facts("hello").card_name().value is UNKNOWN
    assert facts("hello").card_name("this card").value == "this card"


def test_a_comment_or_a_configuration_names_no_card() -> None:
    assert facts(train_yaml="output_dir: runs/V100\nlearning_rate: 1.0e-5\n").card_name().value is UNKNOWN
    assert facts(train_log="# tested on V100\nstart\n").card_name().value is UNKNOWN


@every_case(("gres", "below"), [("gpu:v100:4", True), ("gpu:h300:4", False), ("gpu:4", UNKNOWN)])
def test_a_card_may_be_asked_of_a_scheduler(gres: str, below: Result) -> None:
    text = f"srun --gres={gres}"
    flag = option(text, f"--gres={gres}", "gres", gres, raw=gres)
    assert Facts(evidence(run((flag,)))).card_below("8.0").value is below


def test_a_card_is_found_in_a_long_log() -> None:
    log = "a line without meaning\n" * 500 + "GPU 0: Tesla T4\n" + "GPU is busy\n" * 300
    span = facts(train_log=log).card_below("8.0").spans[0]
    assert (span.line, span.text) == (501, "Tesla T4")
