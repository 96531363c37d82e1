"""What is said of a run that ran out of memory, and the change that is offered, over the shipped rules."""

from __future__ import annotations

import pickle

from tests.every_case import every_case
from tests.memory.test_observed import snapshot
from tests.shipped import shipped_rules
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Finding, Safety
from trainmedic.kb.parse.pipeline import parse

RULES = ("card-full-of-states", "card-full-of-logits", "card-full-of-activations", "card-full-of-something-else")
SWIFT = (
    "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct --torch_dtype bfloat16 --train_type {tuning} "
    "--deepspeed zero2 --per_device_train_batch_size {rows} --gradient_accumulation_steps 2 --max_length 4096\n"
)
FAILED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of {card} "
    "GiB of which 0.50 GiB is free. Including non-PyTorch memory, this process has {held} GiB memory in use. Of the "
    "allocated memory {held} GiB is allocated by PyTorch, and 134.28 MiB is reserved by PyTorch but unallocated.\n"
)
TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/env/vllm/worker/worker.py", line 133, in load_model\n'
    "    self.model_runner.load_model()\n"
)


def findings(*files: str) -> list[Finding]:
    """What the memory rules find in a command or file and a log."""
    names = ["train.sh", "train.log"] if files[0].startswith("NPROC") else ["train.yaml", "train.log"]
    evidence = parse("", [Attachment(name=name, content=text) for name, text in zip(names, files, strict=False)])
    report = with_patches(check(evidence, shipped_rules()), evidence, shipped_rules(), parse)
    assert report.failures == ()
    return [finding for finding in report.findings if finding.rule_id in RULES]


def fired(*files: str) -> Finding:
    (finding,) = findings(*files)
    assert finding.status == "fired"
    return finding


def log(tried: float = 0.5, card: float = 79.19, held: float = 78.0) -> str:
    return FAILED.format(tried=tried, card=card, held=held)


def test_logits_that_failed_are_named_by_their_size_and_the_fused_loss_is_offered_first() -> None:
    finding = fired(SWIFT.format(tuning="lora", rows=8), log(tried=18.56, held=60.0))
    assert finding.rule_id == "card-full-of-logits"
    assert "exactly one copy of the logits in float32 (8 × 4096 tokens × 152064 words)" in finding.message.en
    assert "恰好是一份 float32 的 logits" in finding.message.zh
    first, second = finding.fixes[:2]
    assert "use_liger_kernel" in first.text.en
    assert "per_device_train_batch_size 2" in second.text.en
    assert "gradient_accumulation_steps 8" in second.text.en


def test_every_offered_change_is_safe_here_and_its_patch_clears_the_finding() -> None:
    finding = fired(SWIFT.format(tuning="lora", rows=8), log(tried=18.56, held=60.0))
    assert [fix.safety for fix in finding.fixes] == [Safety.SAFE, Safety.SAFE]
    assert all(finding.rule_id in fix.clears for fix in finding.fixes)


def test_terms_are_told_largest_first_with_the_settings_that_make_them() -> None:
    finding = fired(SWIFT.format(tuning="full", rows=1), log(card=39.4, held=39.0))
    told = finding.message.en
    assert told.index("optimizer states") < told.index("weights") < told.index("gradients")
    assert {"--deepspeed zero2", "--model Qwen/Qwen2.5-7B-Instruct"} <= {span.text for span in finding.evidence}


def test_where_no_change_of_this_kind_fits_it_is_said() -> None:
    finding = fired("NPROC_PER_NODE=1 " + SWIFT.split(" ", 1)[1].format(tuning="full", rows=1), log(card=23.6, held=23))
    assert "do not make it fit even together" in finding.message.en
    assert finding.fixes == ()


def test_changes_that_fit_only_together_are_offered_as_one_and_no_larger_than_needed() -> None:
    command = SWIFT.replace("--deepspeed", "--gradient_checkpointing false --deepspeed").format(tuning="lora", rows=64)
    finding = fired(command, log(tried=9.28, held=66.0))
    assert [(fix.text.en, finding.rule_id in fix.clears) for fix in finding.fixes] == [
        (
            "Set `--use_liger_kernel true`, `--gradient_checkpointing true`, `--per_device_train_batch_size 8` and "
            "`--gradient_accumulation_steps 16`.",
            True,
        )
    ]


def test_a_step_that_needs_far_more_than_the_configuration_explains_is_told_apart() -> None:
    small = SWIFT.replace("7B", "0.5B").format(tuning="lora", rows=1)
    finding = fired(small, log(tried=0.5, held=70.0))
    assert finding.rule_id == "card-full-of-something-else"
    assert "_dump_snapshot" in finding.message.en


@every_case(
    ("configuration", "text"),
    [
        (SWIFT.format(tuning="lora", rows=1), log(tried=0.5, held=30.0)),
        (SWIFT.format(tuning="full", rows=8), TRACE + log(tried=9.28)),
        (SWIFT.format(tuning="full", rows=8), "RuntimeError: DefaultCPUAllocator: can't allocate memory\n"),
    ],
)
def test_what_fits_an_engine_that_loads_and_host_memory_are_left_alone(configuration: str, text: str) -> None:
    assert [finding for finding in findings(configuration, text) if finding.status == "fired"] == []


def test_without_the_model_the_missing_settings_are_asked_for_once() -> None:
    (finding,) = findings("NPROC_PER_NODE=1 swift sft --train_type full --max_length 512\n", log())
    assert finding.status == "cannot_tell"
    assert [missing.fact for missing in finding.missing] == ["model"]


def test_a_card_in_nvidia_smi_that_the_states_alone_overfill_is_found_before_the_start() -> None:
    smi = "| N/A   35C    P0    62W / 400W |  10MiB / 24576MiB |      0%      Default |\n"
    assert fired(SWIFT.format(tuning="full", rows=1), smi).rule_id == "card-full-of-states"
    assert findings(SWIFT.format(tuning="lora", rows=1), smi) == []


def test_a_question_without_any_configuration_is_asked_for_the_command_alone() -> None:
    (finding,) = findings("# 8 cards, full tuning of llama-7b, zero stage 2\n", log())
    assert [missing.fact for missing in finding.missing] == ["command"]


def test_states_that_are_too_large_by_themselves_need_no_row_length() -> None:
    command = "NPROC_PER_NODE=1 swift sft --model Qwen/Qwen2.5-14B-Instruct --train_type full --torch_dtype bfloat16 "
    finding = fired(f"{command}--max_length $LENGTH\n", log())
    assert finding.rule_id == "card-full-of-states"
    assert "excludes activations and logits" in finding.message.en


def test_a_snapshot_alone_says_which_code_made_the_live_tensors() -> None:
    attached = Attachment(name="oom.pickle", content=pickle.dumps(snapshot()))
    evidence = parse("why is the card full?", [attached])
    (finding,) = (f for f in check(evidence, shipped_rules()).fired if f.rule_id in RULES)
    assert "6 GiB at /env/trl/trainer.py:99 compute_loss" in finding.message.en
    assert finding.evidence[0].attachment == "oom.pickle"
