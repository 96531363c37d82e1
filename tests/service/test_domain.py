"""Whether a question is about training, vague, or asks for reassurance."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.dialogue.intent import asks_if_normal, domain_score, is_bare, is_vague, says_failed
from trainmedic.service.ranking.weights import shipped

GLOSSARY = load_glossary()


def score(question: str) -> float:
    concepts = {concept: GLOSSARY.concepts[concept].kind for concept in GLOSSARY.ids(question)}
    return domain_score(question, concepts, parse(question))


@every_case(
    "question",
    [
        "loss is nan", "训练炸了，求助", "TRL DPO rewards look odd",
        "{'loss': 0.5, 'grad_norm': 1.0, 'learning_rate': 1e-5}",
        "deepspeed --module openrlhf.cli.train_kto --pretrain m",
        "RuntimeError: CUDA out of memory while backward of the reward model",
    ],
)  # fmt: skip
def test_training_is_our_domain(question: str) -> None:
    assert score(question) >= shipped().field


@every_case(
    "question",
    [
        "How do I cook rice so that it does not stick?", "红烧肉怎么做才不会柴？",
        "weight loss has been flat for three weeks", "kubectl logs shows connection refused for my pod",
        "write a cover letter for an accountant", "How do I center a div in CSS?",
    ],
)  # fmt: skip
def test_other_fields_are_not_our_domain(question: str) -> None:
    assert score(question) < shipped().field


def test_a_pasted_command_outweighs_a_word_of_another_field() -> None:
    paste = "in k8s: deepspeed --module openrlhf.cli.train_kto --pretrain m gives loss nan"
    assert score(paste) >= shipped().field


@every_case(
    ("question", "concepts", "vague"),
    [
        ("loss is nan, help", 2, True), ("训练炸了，求助", 1, True), ("loss is nan, help", 7, False),
        ("a" * 100, 1, False),
    ],
)  # fmt: skip
def test_a_short_question_with_few_concepts_is_vague(question: str, concepts: int, vague: bool) -> None:
    assert is_vague(question, concepts) is vague


@every_case("question", ["is this normal?", "这个日志算正常吧", "kl is 0, should I worry"])
def test_asking_for_reassurance_is_recognised(question: str) -> None:
    assert asks_if_normal(question)


def test_a_complaint_is_no_request_for_reassurance() -> None:
    assert not asks_if_normal("loss becomes nan at step 3")


def test_a_sure_symptom_outweighs_a_word_of_another_field() -> None:
    assert score("my text-to-SQL model: loss is nan after 200 steps") >= shipped().field


@every_case(
    "question",
    [
        "my stable diffusion xl lora comes out black images after 500 steps with kohya",
        "pod stuck in Pending, 0/4 nodes are available: insufficient nvidia.com/gpu",
        "yolov8 训练 mAP 一直是 0 怎么办",
    ],
)
def test_other_training_and_the_cluster_are_not(question: str) -> None:
    assert score(question) == 0.0


@every_case(
    ("question", "failed"),
    [
        ("resume_from_checkpoint failed when using PEFT LORA", True), ("lora 续训失败，环境如下", True),
        ("the merge does not work with this config", True), ("DPO 训练跑不起来", True),
        ("is this config fine?", False), ("it never crashes, I only want a second pair of eyes", False),
        ("没有报错，帮我看看配置", False), ("how are failed_rows counted", False),
    ],
)  # fmt: skip
def test_a_question_may_say_that_something_failed(question: str, failed: bool) -> None:
    assert says_failed(question) is failed


@every_case(
    ("question", "bare"),
    [
        ("openrlhf kto loss is nan", True),
        ("loss is nan, help", True),
        ("openrlhf kto loss is nan with --vanilla_loss", False),
        ("openrlhf 0.3.2 kto loss is nan", False),
        ("ValueError: Attempting to unscale FP16 gradients", False),
        ("openrlhf kto loss is nan as soon as the second epoch begins, the first one is perfectly fine", False),
        ("deepspeed --module openrlhf.cli.train_kto --pretrain m gives loss nan", False),
    ],
)
def test_a_question_of_names_and_a_symptom_is_bare(question: str, bare: bool) -> None:
    kinds = [GLOSSARY.concepts[concept].kind for concept in GLOSSARY.ids(question)]
    assert is_bare(question, kinds, parse(question)) is bare
