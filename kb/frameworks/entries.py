"""Programs, classes and option values that name a framework and an algorithm (read in the frameworks' own sources)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from trainmedic.kb.frameworks.tables import table


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a program or class is. ``certain`` is False for bare script names that several projects could have."""

    framework: str
    algorithm: str | None = None
    stage: str | None = None
    certain: bool = True


_STAGES: Mapping[str, str] = {
    "pt": "pretrain", "sft": "sft", "reward": "reward", "prm": "reward", "gkd": "distill", "kd": "distill",
    "dpo": "preference", "kto": "preference", "orpo": "preference", "simpo": "preference", "cpo": "preference",
    "ipo": "preference", "ppo": "rl", "grpo": "rl", "rloo": "rl", "reinforce": "rl",
}  # fmt: skip


def stage_of(algorithm: str) -> str:
    """The stage an algorithm belongs to; the algorithm's own name where it is unknown."""
    return _STAGES.get(algorithm, algorithm)


_WORDS: Mapping[str, str] = {
    "rm": "reward", "reward": "reward", "reward_modeling": "reward", "ppo_ray": "ppo", "ppov2": "ppo",
    "rlhf": "", "pretrain": "pt", **{name: name for name in _STAGES},
}  # fmt: skip
_SERVING = ("infer", "deploy", "rollout", "app", "web-ui", "eval", "chat", "api", "webchat", "webui", "vllm-serve",
            "inference", "evaluate", "vllm_serve", "serve", "serve_rm", "batch_inference", "interactive_chat",
            "main_generation", "main_eval", "sample")  # fmt: skip
_EXPORTING = ("export", "merge-lora", "merge_lora", "lora_combiner", "merge_sharded_fsdp_weights")


def _made(framework: str, word: str, certain: bool = True) -> Entry:
    word = word.lower()
    if word in _SERVING:
        return Entry(framework=framework, stage="inference", certain=certain)
    if word in _EXPORTING:
        return Entry(framework=framework, stage="export", certain=certain)
    algorithm = _WORDS.get(word) or None
    return Entry(framework=framework, algorithm=algorithm, stage=_STAGES.get(algorithm or ""), certain=certain)


def _verl(word: str) -> Entry:
    if "sft" in word:
        return _made("verl", "sft")
    if word in (*_SERVING, *_EXPORTING):
        return _made("verl", word)
    return Entry(framework="verl", stage="rl" if word.startswith("main_") else None)


_PROGRAMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Entry]], ...] = (
    (re.compile(r"openrlhf[./]cli[./](?:train_)?(\w+?)(?:\.py)?$"), lambda m: _made("openrlhf", m[1])),
    (re.compile(r"verl[./](?:trainer|recipe|experimental)[./](?:[\w./]*[./])?(\w+?)(?:\.py)?$"), lambda m: _verl(m[1])),
    (re.compile(r"recipe[./]\w+[./](main_\w+?)(?:\.py)?$"), lambda m: _verl(m[1])),
    (re.compile(r"^(?:llamafactory-cli|lmf)(?:\s+([\w-]+))?$"), lambda m: _made("llamafactory", m[1] or "")),
    (re.compile(r"(?:llamafactory|llmtuner)[./](?:cli|launcher|train\.tuner)\b"), lambda m: _made("llamafactory", "")),
    (re.compile(r"(?:^|/)train_bash(?:\.py)?$"), lambda m: _made("llamafactory", "")),
    (re.compile(r"(?:^|/)src/train(?:_web)?\.py$"), lambda m: _made("llamafactory", "", certain=False)),
    (re.compile(r"^(?:swift|megatron)\s+([\w-]+)$"), lambda m: _made("ms-swift", m[1])),
    (re.compile(r"swift[./]cli[./](?:_megatron[./])?([\w-]+?)(?:\.py)?$"), lambda m: _made("ms-swift", m[1])),
    (re.compile(r"(?:^|/)llm_(sft|dpo|orpo|simpo|infer|rlhf|pt)(?:\.py)?$"), lambda m: _made("ms-swift", m[1])),
    (re.compile(r"^(?:swift|megatron)$"), lambda m: _made("ms-swift", "", certain=False)),
    (re.compile(r"^axolotl\s+([\w-]+)$"), lambda m: _made("axolotl", m[1])),
    (re.compile(r"axolotl[./]cli[./]([\w-]+?)(?:\.py)?$"), lambda m: _made("axolotl", m[1])),
    (re.compile(r"^trl\s+([\w-]+)$"), lambda m: _made("trl", m[1])),
    (re.compile(r"trl[./](?:experimental[./]\w+[./])?scripts[./](\w+?)(?:\.py)?$"), lambda m: _made("trl", m[1])),
    (
        re.compile(
            r"(?:^|/)(?:examples/scripts/)?(?:\w+/)?((?:reward_modeling)|(?:(?:sft|dpo|kto|orpo|cpo|grpo|rloo|gkd|ppo)"
            r"(?=_\w+\.py|\.py)))\w*\.py$"
        ),
        lambda m: _made("trl", m[1], certain="examples/scripts" in m.string or m[1] == "reward_modeling"),
    ),
    (
        re.compile(r"(?:^|/)train_(sft|rm|dpo|kto|kd|prm|ppo_ray|ppo)(?:_\w+)?\.(?:py|sh)$"),
        lambda m: _made("openrlhf", m[1], certain=False),
    ),
    (
        re.compile(r"(?:^|/)(batch_inference|interactive_chat|serve_rm|lora_combiner)\.py$"),
        lambda m: _made("openrlhf", m[1], certain=False),
    ),
    (
        re.compile(r"^vllm\s+serve$|vllm\.entrypoints"),
        lambda m: Entry(framework="vllm", stage="inference", certain=False),
    ),
)


@lru_cache(maxsize=512)
def program_entry(program: str) -> Entry | None:
    """What a started program is: a module, a script path, or a command with its verb (``swift rlhf``)."""
    text = " ".join(program.split())
    for pattern, make in _PROGRAMS:
        match = pattern.search(text)
        if match:
            return make(match)
    return None


_TRL_ALGORITHMS = {
    "SFT": "sft", "DPO": "dpo", "KTO": "kto", "ORPO": "orpo", "CPO": "cpo", "Reward": "reward", "PRM": "prm",
    "PPO": "ppo", "PPOv2": "ppo", "GRPO": "grpo", "AsyncGRPO": "grpo", "GRPOWithReplayBuffer": "grpo",
    "RLOO": "rloo", "GKD": "gkd", "OnlineDPO": "dpo", "XPO": "dpo", "NashMD": "dpo", "IterativeSFT": "sft",
    "GOLD": "gkd", "MiniLLM": "gkd",
}  # fmt: skip


@lru_cache(maxsize=512)
def class_entry(scope: str) -> Entry | None:
    """What a class that the user's Python calls belongs to."""
    for suffix in ("Config", "Trainer"):
        stem = scope.removesuffix(suffix)
        if stem != scope and stem in _TRL_ALGORITHMS:
            return _made("trl", _TRL_ALGORITHMS[stem])
    match scope:
        case "BCOConfig" | "BCOTrainer":
            return Entry(framework="trl", stage="preference")
        case "RLHFArguments" | "SftArguments" | "TrainArguments" | "RLHFTrainArguments":
            return _made("ms-swift", "sft" if scope == "SftArguments" else "")
        case "ModelConfig" | "ScriptArguments":
            return Entry(framework="trl", certain=False)
        case "FastLanguageModel" | "FastModel" | "FastVisionModel":
            return Entry(framework="unsloth", certain=False)
        case "TrainingArguments" | "Seq2SeqTrainingArguments" | "Trainer" | "Seq2SeqTrainer":
            return Entry(framework="transformers", certain=False)
        case _ if scope.endswith(("Config", "Trainer")) and _of_trl(scope):
            return Entry(framework="trl")
        case _:
            return None


def _of_trl(scope: str) -> bool:
    """Whether TRL's catalogue has options of this class, or of the configuration of this trainer."""
    known = table("trl")
    name = scope.removesuffix("Trainer") + "Config" if scope.endswith("Trainer") else scope
    return known is not None and any(name in group for group in known.owner_sets)


_RL = {"dpo": "dpo", "kto": "kto", "orpo": "orpo", "simpo": "simpo", "cpo": "cpo", "ipo": "ipo", "ppo": "ppo",
       "grpo": "grpo", "rm": "reward", "gkd": "gkd", "rloo": "rloo", "gdpo": "grpo", "bco": "dpo"}  # fmt: skip
_ESTIMATORS = {"gae": "ppo", "grpo": "grpo", "group_norm": "grpo", "dr_grpo": "grpo", "rloo": "rloo",
               "reinforce": "reinforce", "reinforce_baseline": "reinforce", "reinforce_plus_plus": "reinforce",
               "reinforce_plus_plus_baseline": "reinforce", "remax": "reinforce", "grpo_passk": "grpo"}  # fmt: skip
ALGORITHM_WORDS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "llamafactory": {
        "stage": {"pt": "pt", "sft": "sft", "rm": "reward", "ppo": "ppo", "dpo": "dpo", "kto": "kto", "orpo": "orpo"},
        "pref_loss": {"orpo": "orpo", "simpo": "simpo"},
    },
    "ms-swift": {"rlhf_type": _RL},
    "axolotl": {
        "pretraining_dataset": {},
        "process_reward_model": {"true": "prm"},
        "reward_model": {"true": "reward"},
        "rl": _RL,
    },
    "verl": {"algorithm.adv_estimator": _ESTIMATORS},
    "openrlhf": {
        "pretrain_mode": {"true": "pt"},
        "advantage_estimator": _ESTIMATORS,
        "algo.advantage.estimator": _ESTIMATORS,
    },
    "trl": {"loss_type": {"simpo": "simpo"}},
}
"""Framework → option → value → algorithm; a later option of the same framework outweighs an earlier one."""
