"""XTuner: the classes of 1.0; before, the names that most shipped configuration files assign."""

from __future__ import annotations

from collections import Counter

from trainmedic.ingest.tools.extract_shapes import (
    argparse_options,
    assigned_options,
    options_by_class,
    signature_options,
)
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner
from trainmedic.kb.lazy import regex

_SHIPPED = r"xtuner/configs/(?:internlm|llama|qwen|dpo|orpo|reward_model|llava)/.*_e?\w+\.py"
_CLASS = regex(
    r"(?:\w*Trainer|Worker|FSDP|AdamW|Muon|LR|Dataloader|Dataset|CELoss|GRPOLoss|OrealLoss|Rollout|DataFlow|ReplayBuffer"
    r"|Evaluator|AcceleratorResources|Resume|LoadCheckpoint|OpenaiTokenizeFunction|FTDPTokenizeFn|RLTokenizeFn)Config"
    r"|TrainingArguments"
)
_GROUPS = (
    *("model", "optim_wrapper", "train_dataloader", "train_dataset", "train_cfg", "default_hooks", "randomness"),
    *("pretrained_model_name_or_path", "llm_name_or_path", "visual_encoder_name_or_path", "use_varlen_attn"),
    *("data_path", "prompt_template", "max_length", "pack_to_max_length", "max_packed_length", "batch_size"),
    *("sequence_parallel_size", "accumulative_counts", "dataloader_num_workers", "max_epochs", "optim_type", "lr"),
    *("betas", "weight_decay", "max_norm", "warmup_ratio", "save_steps", "save_total_limit", "evaluation_freq"),
    *("load_from", "resume", "loss_beta", "dpo_loss_type"),
)
"""What the shipped configuration files have in common; their other names are those of data sets."""


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"xtuner/v1/(?:train|config|rl|ray|loss|datasets|optim)/.*\.py")
    if sources.classes:
        return options_by_class(sources, sorted(filter(_CLASS.fullmatch, sources.classes)))
    shipped = Sources.matching(tree, _SHIPPED)
    written = [assigned_options(module) for module in shipped.modules.values()]
    names = Counter(name for options in written for name in options)
    common = sorted(name for name, files in names.items() if files > 4 and name.partition(".")[0] in _GROUPS)
    owned: OptionsByOwner = {"config": {name: {"type": None, "default": "<required>"} for name in common}}
    models = Sources.matching(tree, r"xtuner/model/\w+\.py")
    for name in ("SupervisedFinetune", "DPO", "ORPO", "RewardModel"):
        parameters = signature_options(models, name)
        owned[name] = {f"model.{parameter}": entry for parameter, entry in parameters.items()}
    command = Sources.matching(tree, r"xtuner/tools/train\.py")
    for path in command.modules:
        owned["train"] = argparse_options(command, path)
    return owned
