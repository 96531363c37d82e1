"""Versions that worked, apart from those of the run that fails."""

from __future__ import annotations

from tests.every_case import every_case
from tests.parse.reading import true_span
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse


def exact(evidence: Evidence, which: str) -> dict[str, str | None]:
    return {name: fact.exact for name, fact in getattr(evidence, which).items()}


@every_case(
    "text",
    [
        "trl 0.11.4 is fine, 0.12.1 breaks",
        "trl 0.12.1 breaks, 0.11.4 works fine",
        "trl 0.11.4 works, but trl 0.12.1 gives nan",
        "It works with trl 0.11.4 but not with 0.12.1",
        "worked in 0.11.4 of trl, broken with trl 0.12.1",
        "Previously with trl 0.11.4 everything was fine. Now trl 0.12.1 crashes",
        "since upgrading trl from 0.11.4 to 0.12.1 the loss is 4x",
        "after moving from trl 0.11.4 to 0.12.1 it hangs",
        "trl 0.12.1, downgrading to 0.11.4 fixes it",
        "downgrading trl to 0.11.4 fixes it, I have 0.12.1 now",
        "upgrading trl from 0.12.1 to 0.11.4 fixes it",
        "trl 0.11.4 没问题，0.12.1 就卡住",
        "trl 从 0.11.4 升级到 0.12.1 之后 loss 翻倍",
        "降回 trl 0.11.4 就好了，现在 trl 0.12.1",
        "trl 0.11.4 -> 0.12.1 and the loss is 4x",
        "从 0.11.4 升级到 0.12.1 之后 trl 报错",
        "换成 trl 0.11.4 后正常，现在 trl 0.12.1",
        "trl 0.12.1; pip install trl==0.11.4 fixed it",
        "under trl 0.12.1 it needs twice the memory. With trl 0.11.4 loading in 4 bit worked.",
    ],
)
def test_the_broken_version_is_the_runs_and_the_good_one_is_kept_apart(text: str) -> None:
    evidence = parse(text)
    assert exact(evidence, "versions") == {"trl": "0.12.1"}
    assert exact(evidence, "known_good") == {"trl": "0.11.4"}
    facts = (*evidence.versions.values(), *evidence.known_good.values())
    assert all(fact.span is not None and true_span(fact.span, text) for fact in facts)


@every_case(
    "text",
    [
        "I use trl 0.12.1, single GPU works fine",
        "trl 0.12.1 doesn't work",
        "trl 0.12.1 runs but the loss is nan",
        "trl 0.12.1 train_sft 报错",
        "epochs from 0 to 1500 with trl 0.12.1",
    ],
)
def test_a_version_in_use_is_not_called_good(text: str) -> None:
    evidence = parse(text)
    assert exact(evidence, "versions") == {"trl": "0.12.1"}
    assert evidence.known_good == {}


def test_a_downgrade_that_changed_nothing_makes_no_version_good() -> None:
    assert parse("downgrading trl from 0.12.1 to 0.11.4 did not help").known_good == {}
    assert parse("downgrading trl to 0.11.4 did not help, still hangs").known_good == {}


def test_a_pin_that_worked_is_no_listing() -> None:
    evidence = parse("With trl==0.11.4 everything was fine, but trl==0.12.1 breaks")
    assert exact(evidence, "versions") == {"trl": "0.12.1"}


@every_case("comment", ["# trl 0.12.1", "# with trl 0.12.1, 8 GPUs", "#trl==0.12.1"])
def test_a_comment_names_a_version(comment: str) -> None:
    script = f"from trl import SFTConfig\nargs = SFTConfig(output_dir='o')  {comment}\n"
    evidence = parse("", [Attachment(name="train.py", content=script)])
    assert exact(evidence, "versions")["trl"] == "0.12.1"
    span = evidence.versions["trl"].span
    assert span is not None
    assert true_span(span, script)


def test_a_comment_that_asks_for_a_version_names_none() -> None:
    script = "# requires trl 0.12.1\nfrom trl import SFTConfig\nargs = SFTConfig(output_dir='o')\n"
    assert "0.12.1" not in exact(parse("", [Attachment(name="train.py", content=script)]), "versions").values()
