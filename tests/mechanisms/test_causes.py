"""Mechanisms as causes, and as weighed on the facts of one run."""

from __future__ import annotations

from tests.shipped import shipped_mechanisms
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.mechanism import causes_of, missing_facts, origin_id, page_of, weigh, weigh_all
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

MECHANISMS = shipped_mechanisms()
HALF = next(mechanism for mechanism in MECHANISMS.mechanisms if mechanism.id == "half-precision-overflow")
FP16_LOG = "{'loss': 2.1, 'grad_norm': 3.0, 'learning_rate': 1e-5, 'epoch': 0.1}\n{'loss': 'nan', 'grad_norm': 'nan'}\n"


def facts_of(*files: Attachment, question: str = "") -> Facts:
    return Facts(parse(question, files))


def test_a_cause_is_found_by_the_name_of_its_mechanism_or_origin() -> None:
    origin = HALF.origins[0]
    assert MECHANISMS.find(HALF.id) == (HALF, None)
    assert MECHANISMS.find(origin_id(HALF, origin)) == (HALF, origin)
    assert MECHANISMS.find(f"{HALF.id}.no-such-origin") is None
    assert MECHANISMS.find("no-such-mechanism") is None
    assert page_of(origin_id(HALF, origin)) == page_of(HALF.id) == HALF.id


def test_a_mechanism_and_each_origin_is_a_cause_with_its_own_fix() -> None:
    whole, *origins = causes_of(HALF)
    assert (whole.id, whole.level) == (HALF.id, "mechanism")
    assert [cause.id for cause in origins] == [origin_id(HALF, origin) for origin in HALF.origins]
    assert all(cause.level == "origin" and not cause.symptoms for cause in origins)
    for cause, origin in zip(origins, HALF.origins, strict=True):
        for language in ("en", "zh"):
            assert cause.section("fix", language) == origin.fix.get(language)
            assert origin.fix.get(language) in whole.section("fix", language)
            assert cause.section("cause", language) == HALF.section("cause", language)
    assert whole.related == HALF.all_cases
    assert set(HALF.cases) <= set(HALF.all_cases)


def test_what_holds_counts_for_or_against_and_what_is_not_known_neither_way() -> None:
    log = Attachment(name="train.log", content=FP16_LOG)
    fp16 = Attachment(
        name="train.sh",
        content="trl sft --model_name_or_path Qwen/Qwen2-7B --dataset_name d --fp16 True --output_dir out\n",
    )
    bf16 = Attachment(
        name="train.sh",
        content="trl sft --model_name_or_path Qwen/Qwen2-7B --dataset_name d --bf16 True --output_dir out\n",
    )
    with_fp16, with_bf16 = weigh(HALF, facts_of(log, fp16)), weigh(HALF, facts_of(log, bf16))
    nothing = weigh(HALF, facts_of())
    assert with_fp16.support > with_bf16.support
    assert with_bf16.excluded_by
    assert not with_fp16.excluded_by
    late = Attachment(name="train.log", content="step 300: loss=2.1 grad_norm=3.0\nstep 301: loss=nan grad_norm=nan\n")
    assert weigh(HALF, facts_of(late, fp16)).contradiction > 0
    assert nothing.support == nothing.contradiction == 0.0
    assert all(state.value is not True for state in nothing.origins)
    assert weigh_all([HALF], facts_of(log, fp16)) == {HALF.id: with_fp16}


def test_the_facts_that_would_decide_an_origin_are_named() -> None:
    asked = {origin.id: missing_facts(origin, facts_of()) for origin in HALF.origins}
    assert all(asked[origin.id] == () for origin in HALF.origins if origin.when is None)
    assert any(asked.values())
