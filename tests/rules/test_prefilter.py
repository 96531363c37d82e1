"""What evidence says nothing about need not be evaluated again: it is as on evidence that says nothing at all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from tests.every_case import every_case
from tests.incidents import KTO_COMMAND, KTO_YAML, TRL_COMMAND
from tests.shipped import shipped_mechanisms, shipped_rules
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.expressions import Expression, compile_expression
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.prefilter import ALWAYS, empty, marks_of, said_by
from trainmedic.kb.engine.values import Key, truth
from trainmedic.kb.engine.vocabulary import vocabulary
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse

LOG = "{'loss': 0.69, 'grad_norm': 2.5, 'epoch': 0.1}\n{'loss': nan, 'grad_norm': nan, 'epoch': 0.2}\n"
TRACE = """Traceback (most recent call last):
  File "a.py", line 1, in backward
torch.OutOfMemoryError: CUDA out of memory.
"""
PASTES = {
    "a question": ("my DPO loss is nan with Qwen2-7B on a V100, trl 0.12.0", ()),
    "nothing": ("", ()),
    "numbers in words": ("loss: 0.0 and grad_norm: nan after 3 steps", ()),
    "a command": ("why?", (("train.sh", KTO_COMMAND),)),
    "a file": ("", (("train.yaml", KTO_YAML), ("pip.txt", "torch==2.6.0\ntrl==0.12.0\n"))),
    "a command with its log": ("", (("train.sh", TRL_COMMAND), ("train.log", LOG))),
    "a DeepSpeed file": (
        "",
        (("train.sh", f"{TRL_COMMAND} --deepspeed ds.json"), ("ds.json", '{"bf16": {"enabled": 1}}')),
    ),
    "a traceback": ("OpenRLHF", (("err.log", TRACE),)),
}


def read(name: str) -> Facts:
    question, files = PASTES[name]
    evidence = parse(question, [Attachment(name=file, content=text) for file, text in files])
    return Facts(evidence, concepts=frozenset({"dpo"}))


def conditions() -> Iterator[Expression]:
    yield from (rule.condition for rule in shipped_rules().rules if rule.condition is not None)
    for mechanism in shipped_mechanisms().mechanisms:
        yield from (item.when for item in (*mechanism.explains, *mechanism.against, *mechanism.excludes))
        yield from (origin.when for origin in mechanism.origins if origin.when is not None)


@cache
def keys() -> tuple[Key, ...]:
    return tuple(sorted({key for condition in conditions() for key in condition.reads}))


@every_case("name", PASTES)
def test_a_fact_without_a_mark_is_as_on_evidence_that_says_nothing(name: str) -> None:
    facts = read(name)
    said = said_by(facts)
    silent = [key for key in keys() if marks_of([key]).isdisjoint(said.marks)]
    assert len(silent) > len(keys()) / 3
    for key in silent:
        fact = facts.fact(key)
        assert (fact.value, fact.user_provided) == (empty(said.shape).fact(key).value, False), key


def test_the_value_of_a_condition_that_was_not_kept_is_worked_out() -> None:
    assert compile_expression('known(version("trl", ">=0.1"))', vocabulary()).where_silent(read("nothing")) is False


@every_case("name", PASTES)
def test_a_condition_holds_where_its_evaluation_says_so(name: str) -> None:
    facts = read(name)
    for condition in conditions():
        assert condition.holds(facts) is truth(condition.evaluate(facts)), condition.root.text


def test_rules_say_the_same_when_every_condition_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = read("a command with its log").evidence
    quick = check(evidence, shipped_rules())
    monkeypatch.setattr(Expression, "where_silent", lambda self, facts: None)
    assert check(evidence, shipped_rules()) == quick
    assert quick.fired


def test_a_text_without_a_whole_word_is_looked_for_in_all_evidence() -> None:
    assert marks_of([("log_says", "Map:")]) == {ALWAYS}
