"""The question decides what is searched for; the paste adds its facts and nothing else."""

from __future__ import annotations

from tests.service.values import evidence, finding, span
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.model.evidence import Evidence, Traceback
from trainmedic.kb.model.report import Report, Status
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.dialogue.query import FACT_WEIGHT, Query, build_query

GLOSSARY = load_glossary()


def query(question: str, found: Evidence | None = None, report: Report | None = None) -> Query:
    return build_query(found or Evidence(question=question), report or Report(), question, glossary=GLOSSARY)


def test_a_chinese_question_is_embedded_with_its_english_gist() -> None:
    assert query("训练时爆显存").embedded.startswith("oom")


def test_a_concept_is_the_same_term_in_both_languages() -> None:
    assert "g:oom" in query("爆显存了").terms
    assert "g:oom" in query("it ran out of memory").terms


def test_a_long_log_does_not_drown_the_question() -> None:
    noise = "\n".join(f"{{'loss': 0.6{n % 10}, 'step_time': 1.2, 'shard': 'zebra'}}" for n in range(500))
    asked = "why is the reward flat"
    found = parse(f"{asked}\n```\n{noise}\n```")
    with_noise = build_query(found, Report(), asked, glossary=GLOSSARY)
    assert "zebra" not in with_noise.terms
    assert with_noise.terms["reward"] == query(asked).terms["reward"]


def test_the_facts_of_the_paste_count_less_than_the_words_of_the_question() -> None:
    found = evidence("loss_nan", framework="openrlhf")
    made = query("gradient", found)
    assert made.terms["openrlhf"] == FACT_WEIGHT < made.terms["gradient"]
    assert made.facets.framework == "openrlhf"
    assert made.facets.signals == {"loss_nan"}


def test_the_root_exception_is_searched_for() -> None:
    root = Traceback(exception="ChildFailedError", message="boom quux", span=span())
    other = Traceback(exception="LaterError", message="zzz", span=span(), root=False)
    made = query("help", Evidence(question="help", tracebacks=(other, root)))
    assert {"childfailederror", "quux"} <= set(made.terms)
    assert "latererror" not in made.terms


def test_only_rules_that_fired_bring_their_cases() -> None:
    unsure = finding("rule-b", Status.CANNOT_TELL, cases=("case-b",))
    made = query("x", report=Report(findings=(finding(cases=("case-a", "case-c")), unsure)))
    assert made.fired == ("case-a", "case-c")
