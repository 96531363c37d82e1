"""A model may put other causes first, only with a pasted line, and never against the evidence."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.fake_model import FakeModel, Reply, form
from tests.incidents import INCIDENTS
from trainmedic.service.advisor import Advisor
from trainmedic.service.agent.assistant import Assistant
from trainmedic.service.answering import final_answer, run_inline
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.chat import ChatModel, ModelOptions
from trainmedic.service.llm.rerank import is_uncertain, prompt
from trainmedic.service.ranking.inference import Cause, Differential
from trainmedic.service.ranking.reranked import REORDERED, Choice, reranked

LINES = ("CUDA out of memory. Tried to allocate 2.00 GiB", "   per_device_train_batch_size: 8")
UNCERTAIN = (
    "GRPO reward collapses after 200 steps and the completions get longer and longer",
    "CUDA out of memory at step 300 on a long sample, qwen2.5 7b full finetune zero3, why?",
    "training loss becomes nan after a few hundred steps",
    "the loss does not go down and the answers are garbage after fine-tuning",
)
MASKED = "trl SFT with train_on_responses_only: loss is 0 from the very first step, all labels are -100. Why?"


@pytest.fixture
def differential(knowledge_advisor: Advisor) -> Differential:
    """A real differential without any verdict of a rule or mechanism about its causes."""
    diagnosis = knowledge_advisor.prepare(Ask(question=MASKED)).diagnosis
    causes = tuple(
        replace(cause, place=None, features=dict.fromkeys(cause.features, 0.0))
        for cause in diagnosis.differential.causes[:8]
    )
    return Differential(causes=causes)


def ids(differential: Differential) -> list[str]:
    return [cause.case.id for cause in differential.causes]


def with_feature(differential: Differential, number: int, **features: float) -> Differential:
    def changed(n: int, cause: Cause) -> Cause:
        return replace(cause, features={**cause.features, **features}) if n == number else cause

    return replace(differential, causes=tuple(changed(n, cause) for n, cause in enumerate(differential.causes)))


def test_a_choice_with_a_pasted_line_comes_first_and_the_others_keep_their_order(differential: Differential) -> None:
    names = ids(differential)
    chosen = [Choice(cause_id=names[3], quote="out of  memory. Tried"), Choice(cause_id=names[2], quote=LINES[1])]
    after = reranked(differential, chosen, LINES)
    assert ids(after) == [names[3], names[2], names[0], names[1], *names[4:]]
    assert {c.case.id: c.probability for c in after.causes} == {c.case.id: c.probability for c in differential.causes}


@pytest.mark.parametrize("quote", ["", "a line nobody pasted", "out", "CUDA error: out of memory"])
def test_a_quote_that_does_not_occur_moves_nothing(differential: Differential, quote: str) -> None:
    choice = Choice(cause_id=ids(differential)[3], quote=quote)
    assert reranked(differential, [choice], LINES) == differential


@pytest.mark.parametrize(
    "features",
    [{"excluded": 1.0}, {"version_outside": 1.0}, {"fails": 1.0}, {"rule_clear": 1.0, "settings": 1.0}],
    ids=lambda features: next(iter(features)),
)
def test_what_the_evidence_contradicts_is_never_promoted(
    differential: Differential, features: dict[str, float]
) -> None:
    refuted = with_feature(differential, 3, **features)
    assert reranked(refuted, [Choice(cause_id=ids(refuted)[3], quote=LINES[0])], LINES) == refuted


def test_a_cause_whose_check_fired_is_not_overtaken(differential: Differential) -> None:
    names = ids(differential)
    fired = with_feature(differential, 0, rule_fired=1.0)
    after = reranked(fired, [Choice(cause_id=names[3], quote=LINES[0])], LINES)
    assert ids(after) == [names[0], names[3], names[1], names[2], *names[4:]]


def test_an_unknown_cause_and_one_far_down_are_ignored(knowledge_advisor: Advisor) -> None:
    many = knowledge_advisor.prepare(Ask(question=MASKED)).diagnosis.differential
    choices = [Choice(cause_id="no-such", quote=LINES[0])]
    choices += [Choice(cause_id=cause.case.id, quote=LINES[0]) for cause in many.causes[REORDERED:]]
    assert reranked(many, choices, LINES) == many


def answered(advisor: Advisor, question: str, *forms: Reply) -> tuple[list[str], int]:
    async def scenario() -> tuple[list[str], int]:
        with FakeModel(Reply("Every label is masked [1]."), forms=forms) as server:
            model = ChatModel(ModelOptions(base_url=server.url))
            parts = Assistant(advisor, model, restate=False, rerank=True).stream(Ask(question=question), "", run_inline)
            answer = await final_answer(parts)
            await model.aclose()
            return [cause.case_id for cause in answer.causes], len(server.forms)

    return asyncio.run(scenario())


def uncertain(advisor: Advisor) -> tuple[str, list[str]]:
    """A question whose first cause is not sure, with its causes."""
    prepared = (advisor.prepare(Ask(question=question)) for question in UNCERTAIN)
    first = next(item for item in prepared if is_uncertain(item))
    text = prompt(first)
    names = [cause.case.id for cause in first.diagnosis.causes]
    assert all(f"\n{name}: " in text for name in names)
    return first.request.question, names


def test_the_models_choice_leads_the_answer(advisor: Advisor) -> None:
    question, before = uncertain(advisor)
    evidence = advisor.prepare(Ask(question=question))
    after = [
        cause.case.id
        for name in before[1:]
        for cause in reranked(
            evidence.diagnosis.differential, [Choice(cause_id=name, quote=question)], [question]
        ).causes[:1]
    ]
    name = next(name for name in after if name != before[0])
    rest = [other for other in before if other != name]
    assert answered(advisor, question, form({"choices": [{"id": name, "quote": question}]})) == ([name, *rest], 1)
    invented = {"id": name, "quote": "a line that nobody pasted"}
    assert answered(advisor, question, form({"choices": [invented]})) == (before, 1)


def test_a_model_that_fails_changes_nothing(advisor: Advisor) -> None:
    question, before = uncertain(advisor)
    assert answered(advisor, question, form({"choices": "none"})) == (before, 1)


def test_a_cause_with_a_check_behind_it_is_not_asked_about(advisor: Advisor) -> None:
    for incident in INCIDENTS:
        assert not is_uncertain(advisor.prepare(Ask(question=incident.en, attachments=incident.files)))
