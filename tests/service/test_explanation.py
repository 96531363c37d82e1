"""Questions that are no incident, in both languages, and the incidents that look like them."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.every_case import every_case
from trainmedic.kb.frameworks.card import card, homes
from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, Language
from trainmedic.service.dialogue.inquiry import Inquiry, inquiry_of
from trainmedic.service.dialogue.request import Ask

GLOSSARY = load_glossary()


@cache
def asked(question: str) -> Inquiry | None:
    evidence = parse(question)
    return inquiry_of(evidence, evidence, GLOSSARY)


def ask(advisor: Advisor, question: str, *files: Attachment, conversation_id: str | None = None) -> Answer:
    return advisor.ask(Ask(question=question, attachments=files, conversation_id=conversation_id))


def text(answer: Answer, kind: str) -> str:
    return "\n".join(section.body for section in answer.sections if section.kind == kind)


@every_case(
    ("question", "kind", "about"),
    [
        ("what does max_completion_length do?", "option", ["trl max_completion_length"]),
        ("maxCompletionLength default?", "option", ["trl max_completion_length"]),
        ("neat_packing option: what does it do?", "option", ["llamafactory neat_packing"]),
        ("what does --packing_samples do in openrlhf", "option", ["openrlhf packing_samples"]),
        ("in verl, what is use_kl_loss", "option", ["verl actor_rollout_ref.actor.use_kl_loss"]),
        ("default of actor_rollout_ref.actor.clip_ratio?", "option", ["verl actor_rollout_ref.actor.clip_ratio"]),
        ("What does gradient clipping do?", "option", ["transformers max_grad_norm"]),
        ("what is lora alpha", "option", ["trl lora_alpha"]),
        ("what is GRPO", "option", ["grpo"]),
        ("gradient_accumulation_steps 是什么意思", "option", ["transformers gradient_accumulation_steps"]),
        ("TRL 的 max_completion_length 默认值是多少", "option", ["trl max_completion_length"]),
        ("kl_loss_coef有什么作用", "option", ["verl actor_rollout_ref.actor.kl_loss_coef"]),
        ("what does skip_memory_metrics do?", "option", ["transformers skip_memory_metrics"]),
        ("how do I choose beta for DPO?", "choice", ["trl beta"]),
        ("which learning rate for LoRA SFT of a 7B model?", "choice", ["trl learning_rate"]),
        ("how large should num_generations be?", "choice", ["trl num_generations"]),
        ("学习率一般设多少？", "choice", ["trl learning_rate"]),
        ("beta 怎么选？", "choice", ["trl beta"]),
        ("GRPO vs PPO: what is the difference?", "comparison", ["grpo", "ppo"]),
        ("GRPO 和 PPO 有什么区别", "comparison", ["grpo", "ppo"]),
        ("What is the difference between ZeRO-2 and ZeRO-3?", "comparison", ["accelerate zero_stage"]),
        ("does llamafactory support neat_packing, and since when?", "versions", ["llamafactory neat_packing"]),
        ("verl 支持 PPO 吗", "versions", ["ppo"]),
        ("which versions of trl fit vllm 0.10?", "versions", []),
        ("vllm 0.10 和 trl 哪个版本兼容", "versions", []),
        ("known problems of trl 0.19?", "problems", []),
        ("does TRL 0.19 have known bugs with GRPO?", "problems", []),
        ("deepspeed 0.15.4 有哪些已知问题？", "problems", []),
    ],
)
def test_a_question_is_told_by_its_words_and_its_subject_by_the_catalogues(
    question: str, kind: str, about: list[str]
) -> None:
    inquiry = asked(question)
    assert inquiry is not None
    assert inquiry.kind == kind
    names = [f"{each.framework} {each.key}" if each.key else each.concept for each in inquiry.subjects]
    assert names == about


@every_case(
    "question",
    [
        "why is my loss nan with beta 0.1", "max_completion_length 4096 OOM", "loss is nan, what does beta do?",
        "how do I set beta? my rewards are flat", "训练 loss 一直不降，学习率怎么设？",
        "beta 0.1 时 loss 变成 nan，怎么选？", "my run hangs with zero_stage 3, which version fits?",
        "what does this error mean: RuntimeError: CUDA out of memory",
        "is beta 0.1 normal?", "Since the upgrade the reward of my runs falls. What does kl_coef do?",
        "{'loss': 0.5, 'grad_norm': 1.0, 'learning_rate': 1e-5} what is grad_norm", "thanks!", "beta",
        "max_completion_length=512 报错，是什么意思",
    ],
)  # fmt: skip
def test_an_incident_stays_one(question: str) -> None:
    assert asked(question) is None


@every_case("question", ["how do I cook rice", "llama.cpp: what does n_gpu_layers do", "什么是红烧肉"])
def test_other_fields_have_no_subject_of_ours(question: str) -> None:
    inquiry = asked(question)
    assert inquiry is None or not inquiry.certain


@every_case(
    "question",
    [
        "what is a good learning rate for xgboost", "ollama: what does num_ctx do", "How do I cook rice?",
        "what does flex do in css?", "write me a training script, what batch size is good?", "红烧肉怎么做？",
    ],
)  # fmt: skip
def test_out_of_field_is_refused_as_before(knowledge_advisor: Advisor, question: str) -> None:
    answer = ask(knowledge_advisor, question)
    assert answer.verdict == "not_in_kb"
    assert not answer.causes


@every_case(
    ("question", "said"),
    [
        ("what does max_completion_length do?", ["`max_completion_length`", "Type: `int", "1.16.0", "Elsewhere: "]),
        ("how do I choose beta for DPO?", ["DPOConfig", "Default: `0.1`", "beta: 0.1, or a small positive value"]),
        ("which versions of trl fit vllm 0.10?", ["TRL releases that allow vLLM 0.10.x: 0.16.1", "trainmedic audit"]),
        (
            "GRPO vs PPO: what is the difference?",
            ["PPO without a critic", "Only GRPO has", "num_generations_per_prompt"],
        ),
        ("known problems of trl 0.19?", ["known defects of TRL 0.19.x", "The list was read up to", "trainmedic audit"]),
        ("known problems of trl 99.0?", ["The list was read up to TRL"]),
        ("what is neat_packing in LLaMA-Factory 0.7.0?", ["LLaMA-Factory 0.7.0 does not have it", "0.8.3"]),
        ("default of beta in trl 99.1.0?", ["99.1.0 is newer, so its defaults are not given"]),
        ("what does max_seq_length do in trl?", ["Gone from TRL after", "`max_length` now"]),
        ("max_completion_length 默认值是多少？", ["类型：", "其他框架中的名字：", "每个回答最多生成"]),
        ("GRPO 和 PPO 有什么区别", ["去掉 critic 的 PPO", "只有 GRPO 有"]),
        ("trl 0.19 有哪些已知问题？", ["个已知缺陷", "影响最大的"]),
        ("vllm 0.10 和 trl 哪个版本兼容", ["允许 vLLM 0.10 的 TRL 版本"]),
    ],
)
def test_an_explanation_says_what_is_known(knowledge_advisor: Advisor, question: str, said: list[str]) -> None:
    answer = ask(knowledge_advisor, question)
    assert (answer.verdict, answer.causes, answer.missing, answer.differential.nodes) == ("explained", (), (), ())
    assert [part for part in said if part not in answer.answer] == []
    assert {int(m) for m in re.findall(r"\[(\d+)\]", answer.answer)} == {c.marker for c in answer.citations}
    assert answer.sections[[s.kind for s in answer.sections].index("lead")].body.startswith("**")


def test_what_no_release_says_is_admitted(knowledge_advisor: Advisor) -> None:
    answer = ask(knowledge_advisor, "is flash-attn 2.6.3 compatible with torch 2.4?")
    assert "I cannot tell which versions" in text(answer, "lead")
    assert "trainmedic audit" in text(answer, "advice")


@every_case("question", ["what is curriculum learning for DPO?", "DPO 的课程学习是什么"])
def test_what_no_page_explains_is_said_with_the_nearest_pages(knowledge_advisor: Advisor, question: str) -> None:
    answer = ask(knowledge_advisor, question)
    assert (answer.verdict, answer.causes, answer.missing) == ("not_in_kb", (), ())
    assert [section.kind for section in answer.sections] == ["receipt", "lead", "nearest"]


def test_a_file_with_a_fault_is_an_incident_and_one_without_is_not(knowledge_advisor: Advisor) -> None:
    command = "trl sft --model_name_or_path m --learning_rate 2e-5 --bf16"
    good, bad = (Attachment(name="a.sh", content=f"{command}{more}\n") for more in ("", " --optim adafactr"))
    question = "what does learning_rate do?"
    assert "Your configuration: `2e-05` (a.sh:1:" in ask(knowledge_advisor, question, good).answer
    assert ask(knowledge_advisor, question, bad).verdict != "explained"


def test_a_list_of_packages_alone_says_whose_problems_are_asked_for(knowledge_advisor: Advisor) -> None:
    freeze = Attachment(name="pip.txt", content="trl==0.19.1\nvllm==0.8.5\n")
    answer = ask(knowledge_advisor, "known problems with these versions?", freeze)
    assert answer.verdict == "explained"
    assert "TRL 0.19.1" in text(answer, "lead")


def test_a_conversation_lends_its_framework_and_goes_on_as_before(advisor: Advisor) -> None:
    script = Attachment(
        name="run.sh",
        content="python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_response_length=512\n",
    )
    first = ask(advisor, "reward stays 0 from the first step", script)
    then = ask(advisor, "what does kl_loss_coef do?", conversation_id=first.conversation_id)
    assert first.verdict != "explained"
    assert then.verdict == "explained"
    assert "`actor_rollout_ref.actor.kl_loss_coef`" in text(then, "lead")
    again = ask(advisor, "what does that mean?", conversation_id=first.conversation_id)
    assert (again.verdict, again.causes[:1]) == (first.verdict, first.causes[:1])
    last = ask(advisor, "the reward is still 0", conversation_id=first.conversation_id)
    assert last.verdict != "explained"


def test_a_default_is_stated_for_read_releases_alone() -> None:
    def default(version: str) -> object:
        fact = VersionFact(package="trl", exact=version, reason="")
        found = card("trl", "beta", "grpo", {"trl": fact})
        assert found is not None
        return found.now.value if found.now is not None else None

    assert [default(each) for each in ("0.18.2", "0.19.1", "99.0", "0.18.9")] == [0.04, 0.0, None, None]


def test_an_option_is_looked_for_where_others_build_on_it_first() -> None:
    assert homes("gradient_accumulation_steps")[0] == "transformers"
    assert homes("kl_loss_coef")[0] == "verl"
    assert homes("no_such_option_anywhere") == ()


def test_every_term_that_is_explained_is_in_the_glossary_or_a_setting() -> None:
    named = {f"setting.{name}" for name in specs()} | set(GLOSSARY.concepts)
    assert set(load_messages("trainmedic.kb.glossary", "about.toml")) - named == set()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_language_asked_for_is_that_of_every_line_of_ours(knowledge_advisor: Advisor, language: Language) -> None:
    answer = knowledge_advisor.ask(Ask(question="how do I choose beta for DPO?", language=language))
    assert all(bool(re.search("[\u4e00-\u9fff]", section.body)) == (language == "zh") for section in answer.sections)
