"""Questions beside training: serving, converting, other learning, programs to be written."""

from __future__ import annotations

from dataclasses import replace

from tests.every_case import every_case
from tests.service.values import WEIGHTS, case, context, evidence, scored
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.dialogue.intent import is_out_of_scope
from trainmedic.service.ranking.diagnose import diagnose

GLOSSARY = load_glossary()


def out_of_scope(question: str) -> bool:
    concepts = {concept: GLOSSARY.concepts[concept].kind for concept in GLOSSARY.ids(question)}
    return is_out_of_scope(question, concepts, parse(question))


@every_case(
    "question",
    [
        "llama.cpp gguf slow", "ollama run qwen2.5:7b only uses the cpu",
        "vllm serve throughput is low, how to get more tokens per second?",
        "How do I quantise my model to GGUF Q4_K_M?",
        "langchain: ImportError: cannot import name 'ChatOpenAI' from 'langchain.chat_models'",
        "how to install CUDA 12.1 on Windows 11", "write me a training script for finetuning qwen on my csv",
        "my xgboost model has 0.78 accuracy on the titanic set", "tabular classification, loss nan with keras",
        "ollama 导入 gguf 模型后回答乱码", "llama.cpp 推理太慢了怎么办", "怎么把合并后的模型转成 gguf 给 ollama 用？",
        "windows 上装 cuda 12.4 一直失败", "帮我写一个 lora 微调脚本", "sglang 部署 deepseek-v3 报 OOM",
        "公司员工培训的知识库用 RAG，检索不准",
    ],
)  # fmt: skip
def test_a_neighbour_of_training_is_out_of_scope(question: str) -> None:
    assert out_of_scope(question)


@every_case(
    "question",
    [
        "loss is nan after 200 steps",
        "my llama3 finetune never stops in ollama, the notebook was fine",
        "GRPO with a vLLM rollout hangs after the first weight sync",
        "导出合并后的模型在 vllm 里一直重复不停",
        "vllm serve --enable-lora refuses my rank 64 lora",
        "微调完转 gguf 用 ollama 跑，效果和训练时不一样",
        "verl rollout inference is slow",
        "swift sft --model Qwen/Qwen2-7B --dataset x --torch_dtype float16, garbage at inference",
        "No available memory for the cache blocks in the RL job",
        "训推不一致，vllm 的 logprob 和训练差很多",
        "写了一个 reward 函数，奖励一直是 0",
    ],
)
def test_training_that_mentions_them_is_not(question: str) -> None:
    assert not out_of_scope(question)


def test_out_of_scope_no_case_is_named_however_alike_it_sounds() -> None:
    sure = replace(WEIGHTS, bias=6.0)
    asked = context(evidence(framework=None, options=False), domain_score=3.0, out_of_scope=True)
    assert diagnose([scored(case("a"))], asked, sure).verdict == "not_in_kb"


def test_bad_answers_of_a_served_model_are_asked_about() -> None:
    sure = replace(WEIGHTS, bias=6.0)
    asked = context(evidence(framework=None, options=False), domain_score=3.0, out_of_scope=True, bad_output=True)
    diagnosis = diagnose([scored(case("a"))], asked, sure)
    assert (diagnosis.verdict, diagnosis.causes[0].confidence) == ("need_input", "low")
    assert diagnose([], asked, sure).verdict == "not_in_kb"


def test_a_pasted_failure_that_a_case_knows_is_answered_all_the_same() -> None:
    sure = replace(WEIGHTS, bias=6.0)
    pasted = evidence("loss_nan", framework=None, options=False)
    asked = context(pasted, domain_score=3.0, out_of_scope=True, vague=False)
    assert diagnose([scored(case("a"))], asked, sure).verdict == "answered"
    assert diagnose([], asked, sure).verdict == "not_in_kb"
