"""Which commands and classes of a framework a run uses, so that its defaults are theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainmedic.kb.frameworks.tables import table

_OPENRLHF = {
    "pt": "train_sft", "sft": "train_sft", "reward": "train_rm", "dpo": "train_dpo", "ipo": "train_dpo",
    "kto": "train_kto", "kd": "train_kd", "prm": "train_prm",
    "ppo": "train_ppo_ray", "grpo": "train_ppo_ray", "rloo": "train_ppo_ray", "reinforce": "train_ppo_ray",
}  # fmt: skip
_TRL = {
    "sft": "SFTConfig", "dpo": "DPOConfig", "ipo": "DPOConfig", "kto": "KTOConfig", "orpo": "ORPOConfig",
    "cpo": "CPOConfig", "simpo": "CPOConfig", "reward": "RewardConfig", "prm": "PRMConfig", "ppo": "PPOConfig",
    "grpo": "GRPOConfig", "rloo": "RLOOConfig", "gkd": "GKDConfig",
}  # fmt: skip
_TRL_SCRIPT = ("ModelConfig", "ScriptArguments")
_LLAMAFACTORY = (
    "ModelArguments", "DataArguments", "FinetuningArguments", "TrainingArguments", "GeneratingArguments",
    "RayArguments", "GeneralArguments",
)  # fmt: skip


_PPO_WITHOUT_RAY = re.compile(r"(?:^|[./])train_ppo(?:\.py)?$")


def owners(
    framework: str, algorithm: str | None, scopes: Iterable[str] = (), programs: Iterable[str] = ()
) -> tuple[str, ...]:
    """The commands or classes whose options and defaults hold.

    Empty where the algorithm does not say: a default is then certain only where all owners agree. ``scopes`` are the
    classes that the user's Python calls; a script of flags has none and gets TRL's ModelConfig as well. ``programs``
    are those that were started: OpenRLHF once had a PPO that DeepSpeed launches, without the actors of Ray.
    """
    if framework == "openrlhf" and any(_PPO_WITHOUT_RAY.search(program) for program in programs):
        return ("train_ppo",)
    classes = [scope for scope in scopes if is_class(framework, scope)]
    match framework:
        case "openrlhf":
            return (_OPENRLHF[algorithm],) if algorithm in _OPENRLHF else ()
        case "trl" | "unsloth":
            if classes:
                return tuple(sorted(set(classes)))
            return (_TRL[algorithm], *_TRL_SCRIPT) if algorithm in _TRL else ()
        case "llamafactory":
            return _LLAMAFACTORY
        case "ms-swift":
            return ("sft",) if algorithm in ("sft", "pt") else ("rlhf",) if algorithm else ()
        case "verl":
            return ("sft_trainer", "sft_trainer_engine") if algorithm == "sft" else ("ppo_trainer",)
        case "transformers":
            return ("Seq2SeqTrainingArguments",) if "Seq2SeqTrainingArguments" in classes else ("TrainingArguments",)
        case _:
            return ()


def is_class(framework: str, scope: str) -> bool:
    """Whether ``scope`` is a configuration class of the framework (or of transformers, which several build on)."""
    if not scope or not scope[0].isupper():
        return False
    for name in (framework, "transformers"):
        found = table("trl" if name == "unsloth" else name)
        if found is not None and any(scope in group for group in found.owner_sets):
            return True
    return False
