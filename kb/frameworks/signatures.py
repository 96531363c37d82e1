"""Which framework the names of options say: names that only one has, else the catalogue that knows most of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmedic.kb.frameworks.tables import table
from trainmedic.kb.model.run import Option, Recognised

_SIGNATURES: Mapping[str, tuple[str, ...]] = {
    "verl": ("actor_rollout_ref.", "algorithm.adv_estimator", "reward_model.reward_manager"),
    "deepspeed": ("zero_optimization", "train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer"),
    "accelerate": ("compute_environment", "distributed_type", "machine_rank"),
    "axolotl": ("base_model", "sequence_len", "val_set_size", "rl_beta", "sample_packing", "flash_attention"),
    "llamafactory": (
        "finetuning_type",
        "cutoff_len",
        "pref_beta",
        "pref_loss",
        "pref_ftx",
        "dataset_dir",
        "kto_chosen_weight",
    ),
    "ms-swift": (
        "rlhf_type",
        "sft_type",
        "train_type",
        "tuner_type",
        "attn_impl",
        "template_type",
        "split_dataset_ratio",
    ),
    "openrlhf": ("micro_train_batch_size", "zero_stage", "ds.zero_stage", "train.micro_batch_size", "prompt_data"),
    "peft": ("peft_type",),
}


def from_keys(options: Sequence[Option]) -> Recognised | None:
    """The framework that option names or values say, or None; those only printed about it do not count."""
    plain = [option for option in options if option.scope in ("", "deepspeed", "accelerate")]
    for framework, signature in _SIGNATURES.items():
        for option in plain:
            if option.key in signature or option.key.startswith(tuple(s for s in signature if s.endswith("."))):
                if option.scope and framework != option.scope:
                    continue
                if framework in ("deepspeed", "accelerate") and _others(plain, framework):
                    continue
                rivals = _rivals(framework, plain)
                if not rivals:
                    return Recognised(
                        value=framework, reason=f"{option.key} is an option of {framework}", span=option.span
                    )
    return _by_score([option for option in plain if not option.scope])


def _others(plain: Sequence[Option], framework: str) -> bool:
    """Whether the paste holds more than this launcher or engine file: then it does not name the framework."""
    return any(option.scope != framework and option.key.split(".")[0] not in _heads(framework) for option in plain)


def _heads(framework: str) -> frozenset[str]:
    found = table(framework)
    names = found.names if found else ()
    extra = {"optimizer", "scheduler", "fp16", "bf16", "bfloat16", "wall_clock_breakdown", "steps_per_print", "debug"}
    return frozenset({name.split(".")[0] for name in names} | extra)


def _rivals(framework: str, plain: Sequence[Option]) -> bool:
    """Whether another framework knows clearly more of these options."""
    scores = _scores([option for option in plain if not option.scope])
    mine = scores.get(framework, 0.0)
    return any(score > mine + 1 for name, score in scores.items() if name != framework)


def _scores(options: Sequence[Option]) -> dict[str, float]:
    names = ("openrlhf", "llamafactory", "ms-swift", "trl", "verl", "axolotl")
    hf = table("transformers")
    scores = dict.fromkeys(names, 0.0)
    for option in options:
        key = option.key.replace("-", "_")
        holders = [name for name in names if knows(name, option.key, key)]
        if hf is not None and key in hf.names:
            continue
        for name in holders:
            scores[name] += 1 / len(holders)
    return scores


def knows(name: str, written: str, underscored: str) -> bool:
    """Whether a framework's catalogue has the name, in either spelling."""
    found = table(name)
    if found is None:
        return False
    return written in found.names or (name not in ("openrlhf", "verl") and underscored in found.names)


def _by_score(options: Sequence[Option]) -> Recognised | None:
    if not options:
        return None
    scores = sorted(((score, name) for name, score in _scores(options).items()), reverse=True)
    (best, name), (second, _) = scores[0], scores[1]
    if best < 1.0 or best < 1.5 * second:
        return None
    known = next(option for option in options if knows(name, option.key, option.key.replace("-", "_")))
    return Recognised(value=name, reason=f"the options are those of {name}", span=known.span)
