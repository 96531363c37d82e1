"""The five founding incidents, asked as their reporters would, answered end to end."""

from __future__ import annotations

from functools import cache

import pytest

from tests.every_case import every_case
from tests.incidents import INCIDENTS, KTO_YAML, Incident, files
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory

LANGUAGES = ("en", "zh")
HEALTHY_LOG = "".join(
    f"{{'loss': {1.2 - 0.01 * n:.4f}, 'grad_norm': {0.8 + 0.01 * (n % 3):.3f}, 'learning_rate': 1e-05}}\n"
    for n in range(1, 31)
)
HEALTHY_COMMAND = """accelerate launch --num_processes 8 -m trl.scripts.sft \\
  --model_name_or_path Qwen/Qwen2.5-7B-Instruct --dataset_name trl-lib/Capybara \\
  --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --learning_rate 1e-5 \\
  --bf16 true --torch_dtype bfloat16 --output_dir out
"""


@pytest.fixture
def advisor(knowledge_advisor: Advisor) -> Advisor:
    """The shared one: no conversation is continued here."""
    return knowledge_advisor


@cache
def asked(advisor: Advisor, incident: Incident, language: str) -> Answer:
    return advisor.ask(Ask(question=getattr(incident, language), attachments=incident.files))


@pytest.fixture(params=INCIDENTS, ids=lambda incident: incident.name)
def incident(request: pytest.FixtureRequest) -> Incident:
    assert isinstance(request.param, Incident)
    return request.param


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_true_cause_comes_first(advisor: Advisor, incident: Incident, language: str) -> None:
    answer = asked(advisor, incident, language)
    assert answer.verdict == incident.verdict
    assert answer.causes[0].case_id == incident.case
    assert answer.causes[0].refutations
    assert answer.language == language


@pytest.mark.parametrize("incident", [i for i in INCIDENTS if i.patch_clears], ids=lambda i: i.name, indirect=True)
def test_the_patch_clears_the_finding(advisor: Advisor, incident: Incident) -> None:
    answer = asked(advisor, incident, "en")
    finding = next(f for f in answer.findings if f.rule_id == incident.rule)
    assert finding.patch is not None
    assert finding.patch.startswith(f"--- a/{incident.place[0]}")
    assert incident.rule in finding.clears
    assert finding.appears == incident.appears


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_marker_of_the_answer_is_a_citation(advisor: Advisor, incident: Incident, language: str) -> None:
    answer = asked(advisor, incident, language)
    markers = {citation.marker for citation in answer.citations}
    assert markers == set(range(1, len(markers) + 1))
    assert all(f"[{marker}]" in answer.answer for marker in markers)


def test_a_healthy_config_with_a_healthy_log_is_no_fault(advisor: Advisor) -> None:
    pasted = files(run_sh=HEALTHY_COMMAND, t_log=HEALTHY_LOG)
    answer = advisor.ask(Ask(question="Does this look right?", attachments=pasted))
    assert (answer.verdict, answer.causes) == ("no_fault", ())


def test_the_config_of_the_logits_article_alone_is_no_fault(advisor: Advisor) -> None:
    answer = advisor.ask(Ask(question="is this config ok?", attachments=files(kto_yaml=KTO_YAML)))
    assert answer.verdict == "no_fault"


@every_case("question", ["How do I cook rice so that it does not stick?", "红烧肉怎么做才不会柴？"])
def test_a_cooking_question_is_not_in_the_knowledge_base(advisor: Advisor, question: str) -> None:
    answer = advisor.ask(Ask(question=question))
    assert (answer.verdict, answer.causes, answer.missing) == ("not_in_kb", (), ())


@every_case("question", ["loss is nan, help", "loss 变成 nan 了，求助"])
def test_a_vague_question_is_answered_by_the_most_separating_question(advisor: Advisor, question: str) -> None:
    answer = advisor.ask(Ask(question=question))
    assert answer.verdict == "need_input"
    assert answer.missing
    assert answer.missing[0].fact in {"framework", "config", "algorithm", "model", "log"}


def test_a_follow_up_supplies_what_was_asked_for(knowledge_advisor: Advisor) -> None:
    advisor = Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(History("sqlite://")))
    command = Attachment(
        name="train.sh",
        content="python examples/scripts/reward_modeling.py --model_name_or_path google/gemma-2-9b-it --bf16 true "
        "--torch_dtype bfloat16 --attn_implementation flash_attention_2\n",
    )
    first = advisor.ask(Ask(question="grad_norm is nan from the first step", attachments=(command,)))
    second = advisor.ask(
        Ask(question="flash-attn is 2.6.1, transformers is 4.43.3", conversation_id=first.conversation_id)
    )
    assert second.verdict == "answered"
    assert second.causes[0].case_id == "gemma2-flash-attn-softcap-nan"
    assert any(f.rule_id == "gemma2-flash-attn-no-softcap-backward" and f.status == "fired" for f in second.findings)
