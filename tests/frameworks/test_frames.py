"""A traceback tells the framework by the files it runs through."""

from __future__ import annotations

from tests.every_case import every_case
from trainmedic.kb.parse.pipeline import parse

HEAD = "Traceback (most recent call last):\n"


def frames(*paths: str) -> str:
    lines = "".join(f'  File "{path}", line {n}, in f{n}\n    g()\n' for n, path in enumerate(paths, start=1))
    return f"{HEAD}{lines}ValueError: no\n"


SITE = "/usr/lib/python3.11/site-packages/"


@every_case(
    ("paths", "framework"),
    [
        (("/home/me/LLaMA-Factory/src/llamafactory/cli.py", SITE + "transformers/trainer.py"), "llamafactory"),
        ((SITE + "swift/trainers/mixin.py", SITE + "trl/trainer/grpo_trainer.py"), "ms-swift"),
        (("pretrain_gpt.py", "/opt/Megatron-LM/megatron/core/pipeline_parallel/schedules.py"), "megatron-core"),
        (("pretrain_gpt.py", SITE + "megatron/core/optimizer/optimizer.py"), "megatron-core"),
        (
            (SITE + "megatron/bridge/training/train.py", SITE + "megatron/core/optimizer/optimizer.py"),
            "megatron-bridge",
        ),
        (
            ("train.py", "/home/user/slime/slime/ray/rollout.py", SITE + "megatron/core/models/gpt/gpt_model.py"),
            "slime",
        ),
        (("/opt/nemo-rl/nemo_rl/algorithms/grpo.py", "/opt/nemo-rl/nemo_rl/utils/timer.py"), "nemo-rl"),
        (("train.py", SITE + "transformers/trainer.py", SITE + "trl/trainer/dpo_trainer.py"), "trl"),
        (("train.py", SITE + "transformers/trainer.py", SITE + "deepspeed/runtime/engine.py"), "transformers"),
        (("train.py", SITE + "numpy/core.py"), None),
        (("/home/me/verl/verl/trainer/main_ppo.py", "/home/me/verl/verl/workers/fsdp_workers.py"), "verl"),
        (("/home/user/ms-swift/swift/cli/sft.py", SITE + "transformers/trainer.py"), "ms-swift"),
        (("/home/me/verl/my_own.py", SITE + "numpy/core.py"), None),
    ],
)
def test_the_outermost_framework_is_meant(paths: tuple[str, ...], framework: str | None) -> None:
    found = parse(frames(*paths)).run.framework
    assert (found.value if found else None) == framework


def test_the_program_that_was_started_says_more_than_a_traceback() -> None:
    text = "```bash\nswift sft --model Qwen/Qwen2-7B\n```\n" + frames(SITE + "trl/trainer/sft_trainer.py")
    found = parse(text).run.framework
    assert found is not None
    assert found.value == "ms-swift"


def test_a_mere_library_in_a_traceback_yields_to_what_the_user_says() -> None:
    found = parse("axolotl run fails\n" + frames("train.py", SITE + "transformers/trainer.py")).run.framework
    assert found is not None
    assert found.value == "axolotl"


def test_the_metrics_of_a_log_tell_verl() -> None:
    log = "step:3 - critic/kl:0.1 - actor/pg_loss:0.02 - actor/grad_norm:0.4 - timing_s/gen:31.4"
    found = parse(f"why?\n{log}\n").run.framework
    assert found is not None
    assert found.value == "verl"
    assert parse("why?\nstep:3 - loss:0.1 - grad_norm:0.4\n").run.framework is None


def test_the_script_that_only_one_framework_has_names_it() -> None:
    found = parse("train_ppo_ray运行卡住").run.framework
    assert found is not None
    assert found.value == "openrlhf"
