"""What a message supposes, and how it stands to the conversation before it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.every_case import every_case
from trainmedic.kb.glossary.terms import load_glossary
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.supposition import supposition_in, with_counterparts
from trainmedic.service.dialogue.topic import relation_of, topic_of

GLOSSARY = load_glossary()

FOLLOWING = [
    ("what about with ZeRO-2 instead?", {"zero_stage": "2"}),
    ("What about zero2?", {"zero_stage": "2"}),
    ("and with stage 3?", {"zero_stage": "3"}),
    ("ZeRO-2 instead of ZeRO-3?", {"zero_stage": "2"}),
    ("would going from zero3 to zero2 help?", {"zero_stage": "2"}),
    ("and without zero-3?", {"zero_stage": "0"}),
    ("and if I use eager attention?", {"attention": "eager"}),
    ("把 attention 换成 eager 呢", {"attention": "eager"}),
    ("把 flash attention 2 换成 sdpa 会好吗？", {"attention": "sdpa"}),
    ("换成 zero2 会不会好", {"zero_stage": "2"}),
    ("从 zero3 降到 zero2 呢", {"zero_stage": "2"}),
    ("without packing?", {"packing": "false"}),
    ("should I turn packing off", {"packing": "false"}),
    ("关掉 packing 呢", {"packing": "false"}),
    ("如果不用打包会怎么样", {"packing": "false"}),
    ("and with packing?", {"packing": "true"}),
    ("bf16 instead of fp16?", {"bf16": "true", "fp16": "false"}),
    ("把 fp16 换成 bf16 呢？", {"bf16": "true", "fp16": "false"}),
    ("would bf16 fix it?", {"bf16": "true"}),
    ("with transformers 4.44?", {"transformers": "4.44"}),
    ("transformers 降到 4.44.2 会好吗", {"transformers": "4.44.2"}),
    ("what if I upgrade trl to 0.12.1 and flash-attn to 2.7.0", {"trl": "0.12.1", "flash-attn": "2.7.0"}),
    ("what if micro batch is 2", {"micro_batch": "2"}),
    ("how about a batch size of 4?", {"micro_batch": "4"}),
    ("micro batch 改成 2 呢", {"micro_batch": "2"}),
    ("would a learning rate of 1e-6 help", {"learning_rate": "1e-6"}),
    ("学习率降到 5e-7 行吗", {"learning_rate": "5e-7"}),
    ("and if I set --gradient_accumulation_steps 8?", {"gradient_accumulation_steps": "8"}),
    ("what if per_device_train_batch_size=2", {"per_device_train_batch_size": "2"}),
    ("把 attn_implementation 改成 sdpa 呢", {"attn_implementation": "sdpa"}),
    ("what about flash attention 2?", {"attention": "flash2"}),
    ("does it go away without flash attention?", {"attention": "unset"}),
    ("不用 flash attention 呢", {"attention": "unset"}),
    ("eager?", {"attention": "eager"}),
    ("and gradient checkpointing off, would that help?", {"gradient_checkpointing": "false"}),
    ("what if I use zero2 and a micro batch of 4", {"zero_stage": "2", "micro_batch": "4"}),
]
FACTS = [
    "transformers is 4.43", "transformers 4.43.1, torch 2.3", "ZeRO-3, 8 GPUs", "It is ZeRO-2 with 8 GPUs.",
    "I already tried eager attention, still nan", "I switched to ZeRO-2 and now it hangs", "换成 eager 之后还是 nan",
    "试过 zero2 了，没用", "用的是 transformers 4.44.2", "why does eager attention help?", "how do I set zero stage 2?",
    "thanks, that worked", "micro batch is 1, bf16", "怎么把 attention 改成 eager", "",
]  # fmt: skip
FOLLOWING += [
    ("ok and without --vanilla_loss?", {"vanilla_loss": "unset"}),
    ("without vanilla_loss?", {"vanilla_loss": "unset"}),
    ("and with --packing_samples?", {"packing": "true"}),
    ("should I use num_generations 8?", {"num_generations": "8"}),
]
FACTS += [
    "why does it fail with --vanilla_loss?",
    "I run without --vanilla_loss already and it is still nan",
    "I use bf16",
]
FIRST = [
    ("My loss is nan with packing and flash attention, why?", None),
    ("Does bf16 autocast protect fp16 weights? I load the reward model in float16.", None),
    ("is FSDP supported for full DPO? w/ zero3 it trains, w/ fsdp the gradient norm is NaN", None),
    ("Which clip value do people use? 1.0 and 0.3 both failed, thinking of raising it to 10", None),
    ("loss is nan, here is my config. What if I use ZeRO-2?", {"zero_stage": "2"}),
    ("loss 是 nan，配置在附件。如果换成 eager 会好吗", {"attention": "eager"}),
]


@every_case(("message", "changes"), FOLLOWING)
def test_a_supposed_change_is_found_in_a_message_that_follows(message: str, changes: dict[str, str]) -> None:
    found = supposition_in(message, GLOSSARY, follows=True)
    assert found is not None
    assert dict(found.changes) == changes
    assert found.alone


@every_case("message", FACTS)
def test_a_fact_a_report_or_another_question_supposes_nothing(message: str) -> None:
    assert supposition_in(message, GLOSSARY, follows=True) is None


@every_case(("message", "changes"), FIRST)
def test_a_first_message_supposes_only_in_so_many_words(message: str, changes: dict[str, str] | None) -> None:
    found = supposition_in(message, GLOSSARY, follows=False)
    assert (dict(found.changes) if found else None) == changes


def test_what_is_said_beside_the_supposition_stays() -> None:
    message = "transformers is 4.43.1\nwhat about ZeRO-2?"
    found = supposition_in(message, GLOSSARY, follows=True)
    assert found is not None
    assert not found.alone
    assert found.rest.strip() == "transformers is 4.43.1"
    assert len(found.rest) == len(message)


def test_a_pasted_option_is_no_supposition_even_beside_one() -> None:
    message = "what about this?\n--zero_stage 2 \\\nattn_implementation: eager\n"
    assert supposition_in(message, GLOSSARY, follows=True) is None


@given(st.text(max_size=300), st.booleans())
def test_any_text_can_be_read(text: str, follows: bool) -> None:
    found = supposition_in(f"what if {text}", GLOSSARY, follows=follows)
    assert found is None or len(found.rest) == len(text) + 8


def test_bf16_takes_the_place_of_an_fp16_that_is_on() -> None:
    half = parse("", [Attachment(name="a.yaml", content="stage: sft\nmodel_name_or_path: a/b\nfp16: true\n")])
    full = parse("", [Attachment(name="a.yaml", content="stage: sft\nmodel_name_or_path: a/b\n")])
    assert with_counterparts({"bf16": "true"}, half.run) == {"fp16": "false", "bf16": "true"}
    assert with_counterparts({"bf16": "true", "fp16": "false"}, full.run) == {"bf16": "true"}


@every_case(
    ("message", "relation"),
    [
        ("different question: my GRPO reward is flat", Relation.NEW_TOPIC),
        ("换个问题，GRPO 的 reward 一直不涨", Relation.NEW_TOPIC),
        ("my GRPO reward is flat, what is wrong there?", Relation.NEW_TOPIC),
        ("another question about the same config: CUDA out of memory at step 3", Relation.NEW_SYMPTOM),
        ("CUDA out of memory at step 300", Relation.NEW_SYMPTOM),
        ("that is solved. Now the 8 ranks hang, NCCL watchdog timeout", Relation.NEW_SYMPTOM),
        ("解决了。现在评估的时候 OOM", Relation.NEW_SYMPTOM),
        ("grad_norm is nan too", Relation.FOLLOW_UP),
        ("with zero3 it is fixed, with fsdp the gradient is nan", Relation.FOLLOW_UP),
        ("the loss goes to 0 at step 2", Relation.FOLLOW_UP),
        ("it also runs out of memory", Relation.FOLLOW_UP),
        ("transformers is 4.43.1", Relation.FOLLOW_UP),
        ("is it the learning rate?", Relation.ALTERNATIVE),
        ("loss 也是 nan", Relation.FOLLOW_UP),
    ],
)
def test_a_message_goes_on_or_begins_anew(message: str, relation: Relation) -> None:
    before = topic_of(parse("my openrlhf KTO run: the loss is nan from step 1"), GLOSSARY)
    assert relation_of(topic_of(parse(message), GLOSSARY), before) == relation
