"""Parts of the set-up that a question says are absent."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.glossary.negated import negated_concepts
from trainmedic.kb.glossary.terms import load_glossary

GLOSSARY = load_glossary()


@every_case(
    ("question", "concepts"),
    [
        ("loss nan in DPO, no sequence parallel", {"sequence-parallel"}),
        ("loss 0.0 but I am NOT packing and flash attention is on", {"packing"}),
        ("zero2 without offload loses gradients", {"offload"}),
        ("开了 flash attention，没用 lora", {"lora"}),
        ("没开 packing，也没开 flash attention", {"packing", "flash-attention"}),
        ("packing is off, sequence parallel too", {"packing"}),
    ],
)
def test_a_concept_behind_a_negation_is_negated(question: str, concepts: set[str]) -> None:
    assert negated_concepts(question, GLOSSARY) == concepts


@every_case(
    "question",
    [
        "no idea why packing gives nan",
        "loss does not go down with lora",
        "not sure, lr 1e-5, and then packing",
        "packing 没问题吗",
        "lora without packing, then lora with packing",
    ],
)
def test_a_concept_that_is_affirmed_or_only_asked_about_is_not(question: str) -> None:
    assert "packing" not in negated_concepts(question, GLOSSARY)


def test_a_negated_symptom_says_nothing_about_the_set_up() -> None:
    assert negated_concepts("loss 没有 nan, no oom either", GLOSSARY) == frozenset()
