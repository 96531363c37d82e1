"""Options of a fix under the names of the user's own framework."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.every_case import every_case
from tests.service.values import WEIGHTS, case, context, draft_of, evidence, scored
from tests.shipped import shipped_cases
from trainmedic.kb.frameworks.settings import index
from trainmedic.kb.model.case import Case
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.answer.citations import Citations
from trainmedic.service.answer.layout import composed
from trainmedic.service.answer.option_names import dialect_of, in_dialect
from trainmedic.service.answer.schema import markdown
from trainmedic.service.ranking.diagnose import diagnose
from trainmedic.service.ranking.fix_values import changed_by

FIX = (
    "- `use_liger_kernel: true`, or smaller `per_device_train_batch_size` and `max_length`.\n"
    "- verl: `max_completion_length` is its own matter.\n"
    "- Leave `zero_optimization` and `no_such_option` alone.\n\n"
    "```diff\n-num_train_epochs: 10\n+num_train_epochs: 2\n```"
)

CODE = "+model = AutoModel.from_pretrained(\n+    torch_dtype=torch.bfloat16,\n+)\n"
HALF = "\n\n```diff\n*-fp16: true\n+bf16: true\n```"


def recommended() -> Case:
    sections = {"en": {"cause": "c", "fix": FIX, "confirm": "x"}, "zh": {"cause": "c", "fix": FIX, "confirm": "x"}}
    return case(sections=sections, frameworks=("trl", "transformers"), rules=())


def test_the_fix_speaks_the_words_of_the_users_framework() -> None:
    shared = context(evidence("loss_nan", framework="axolotl"))
    sure = replace(WEIGHTS, bias=3.0)
    diagnosis = diagnose([scored(recommended())], shared, sure)
    text = markdown(composed(draft_of(diagnosis, shared), Citations("en")))
    assert "`liger_fused_linear_cross_entropy: true`" in text
    assert "-num_epochs: 10\n+num_epochs: 2" in text
    assert "num_train_epochs" not in text


@every_case(
    ("said", "fix", "there"),
    [
        (
            "llamafactory 0.9.1 loss nan",
            "`torch_dtype: bfloat16`, `bf16: true`" + HALF.replace("*", "-torch_dtype: float16\n"),
            "torch_dtype bfloat16 (LLaMA-Factory has no option for it), `bf16: true`" + HALF.replace("*", ""),
        ),
        ("llamafactory 0.9.1 loss nan", "Load it:\n\n```diff\n-torch_dtype: float16\n fp16: true\n```", "Load it:"),
        (
            "verl 0.7.0 grpo nan",
            "```diff\n GRPOConfig(\n+    epsilon_high=0.28,\n )\n```",
            "```diff\n+actor_rollout_ref.actor.clip_ratio_high=0.28\n```",
        ),
        ("ms-swift 3.1.0 dpo", "`attn_implementation: sdpa`", "`attn_impl: sdpa`"),
        ("llamafactory 0.9.1", "`attn_implementation: eager`", "`flash_attn: disabled`"),
        ("llamafactory 0.9.1", "a smaller `--max_length`", "a smaller `--cutoff_len`"),
        ("llamafactory 0.9.1", f"```diff\n{CODE}```", f"```diff\n{CODE}```"),
        ("verl 0.7.0 nan", "```diff\n-lora_r: 8\n+lora_rank: 8\n```", "```diff\n-lora_r: 8\n+lora_rank: 8\n```"),
        ("trl 0.19 loss nan", "`torch_dtype: bfloat16`", "`torch_dtype: bfloat16`"),
    ],
)
def test_what_the_framework_would_refuse_is_no_edit(said: str, fix: str, there: str) -> None:
    one = case(frameworks=("trl", "transformers"), sections={"en": {"fix": fix}})
    assert in_dialect(fix, one, parse(said), "en") == there


@every_case("framework", ["llamafactory 0.9.1", "verl 0.7.0", "axolotl", "ms-swift 3.1.0", "openrlhf 0.9.0"])
def test_no_diff_of_a_shipped_case_sets_an_option_of_the_trainer_that_the_framework_has_not(framework: str) -> None:
    found = parse(f"{framework} loss is nan")
    for each in shipped_cases().cases:
        dialect = dialect_of(each, found)
        if dialect is None or (each.frameworks and dialect.framework not in each.frameworks):
            continue
        text = in_dialect(each.section("fix", "en"), each, found, "en")
        diffs = re.findall(r"```diff\n(.*?)```", text, re.DOTALL)
        names = {name for diff in diffs for name, (before, after) in changed_by(diff).items() if before and after}
        refused = {name for name in names if dialect.has(name) is False and name in index("transformers")}
        assert not {
            name for name in refused if not any(index(part).get(name) for part in ("deepspeed", "accelerate"))
        }, each.id
