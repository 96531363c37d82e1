"""Frameworks that declare their options as annotated classes."""

from __future__ import annotations

import ast
from collections import Counter

from trainmedic.kb.frameworks.book import Entry, OptionsByOwner
from trainmedic.kb.lazy import regex
from trainmedic.kb.sources.shapes import (
    argparse_options,
    assigned_options,
    class_options,
    lookup_options,
    nested_options,
    options_by_class,
    signature_options,
    with_aliases,
)
from trainmedic.kb.sources.syntax import Modules
from trainmedic.kb.sources.tree import SourceTree

_NESTED = {
    "trl": "TRLConfig",
    "vllm": "VllmConfig",
    "peft": "PeftConfig",
    "qat": "QATConfig",
    "fsdp_config": "FSDPConfig",
    "peft.loftq_config": "LoftQConfig",
}


def axolotl(tree: SourceTree) -> OptionsByOwner:
    """Axolotl: the schema of its configuration, and those of its integrations."""
    sources = Modules.matching(tree, r"axolotl/(utils/(schemas|config/models/input)/.*|integrations/\w+/args)\.py")
    owned: OptionsByOwner = {}
    if "AxolotlInputConfig" in sources.classes:
        owned["top"] = class_options(sources, "AxolotlInputConfig")
    for prefix, name in _NESTED.items():
        if name in sources.classes:
            owned[name] = class_options(sources, name, prefix + ".")
    for name, (path, _) in sources.classes.items():
        if path.startswith("axolotl/integrations/") and name.endswith("Args"):
            owned[name] = class_options(sources, name)
    return owned


def bitsandbytes_config(tree: SourceTree) -> OptionsByOwner:
    """Transformers' class of options for bitsandbytes."""
    sources = Modules.matching(tree, r"transformers/utils/quantization_config\.py")
    return {"BitsAndBytesConfig": signature_options(sources, "BitsAndBytesConfig")}


_SECTIONS = {
    "zero_optimization": "DeepSpeedZeroConfig",
    "zero_optimization.offload_param": "DeepSpeedZeroOffloadParamConfig",
    "zero_optimization.offload_optimizer": "DeepSpeedZeroOffloadOptimizerConfig",
    "compile": "CompileConfig",
    "fp16": "DeepSpeedFP16Config",
    "bf16": "DeepSpeedBF16Config",
    "tensor_parallel": "TPTrainingConfig",
    "activation_checkpointing": "DeepSpeedActivationCheckpointingConfig",
}


def deepspeed(tree: SourceTree) -> OptionsByOwner:
    """DeepSpeed: what its configuration reads, by lookups and by models."""
    sources = Modules.matching(tree, r"deepspeed/(runtime|compile|profiling|monitor|utils)/.*(config|constants)\w*\.py")
    options: dict[str, Entry] = {}
    if "deepspeed/runtime/config.py" in sources.modules:
        options.update(lookup_options(sources, "deepspeed/runtime/config.py", "get_scalar_param"))
    for prefix, model in _SECTIONS.items():
        if model in sources.classes:
            for name, entry in class_options(sources, model, prefix + ".").items():
                options.update(_by_alias(prefix, name, entry))
    return {"config": options}


def _by_alias(prefix: str, option: str, entry: Entry) -> dict[str, Entry]:
    """DeepSpeed's models accept a field with an alias only under the alias."""
    aliases = entry.pop("aliases", ())
    return {f"{prefix}.{alias}": entry for alias in aliases} or {option: entry}


_CLASSES = (
    *("ModelArguments", "DataArguments", "FinetuningArguments", "GeneratingArguments", "TrainingArguments"),
    *("RayArguments", "EvaluationArguments", "GeneralArguments"),
)


def llamafactory(tree: SourceTree) -> OptionsByOwner:
    """LLaMA-Factory: argument classes."""
    files = r"(llamafactory|llmtuner)/((hparams|dsets|tuner)/(\w+/)?\w+|extras/constants)\.py"
    return options_by_class(Modules.matching(tree, files), _CLASSES)


_MEGATRON_BRIDGE_SECTIONS = {
    "train": ("TrainingConfig",),
    "validation": ("ValidationConfig",),
    "model": ("GPTModelProvider",),
    "optimizer": ("OptimizerConfig",),
    "ddp": ("DistributedDataParallelConfig",),
    "scheduler": ("SchedulerConfig",),
    "dataset": ("DataloaderConfig", "GPTDatasetConfig", "FinetuningDatasetConfig"),
    "logger": ("LoggerConfig",),
    "tokenizer": ("TokenizerConfig",),
    "checkpoint": ("CheckpointConfig",),
    "dist": ("DistributedInitConfig",),
    "rng": ("RNGConfig",),
    "rerun_state_machine": ("RerunStateMachineConfig",),
    "ft": ("FaultToleranceConfig",),
    "straggler": ("StragglerDetectionConfig",),
    "nvrx_straggler": ("NVRxStragglerDetectionConfig",),
    "profiling": ("ProfilingConfig",),
    "peft": ("PEFT", "LoRA"),
    "comm_overlap": ("CommOverlapConfig",),
    "mixed_precision": ("MixedPrecisionConfig",),
    "tensor_inspect": ("TensorInspectConfig",),
    "inprocess_restart": ("InProcessRestartConfig",),
}
"""Section of a configuration → its classes; of a union those that most recipes use."""


def megatron_bridge(tree: SourceTree) -> OptionsByOwner:
    """The sections of Megatron-Bridge's ``ConfigContainer``, many of whose classes extend one of Megatron's (another
    package), and the flags of its recipes."""
    bridge = Modules.matching(
        tree, r"megatron/bridge/(training/.*|models/(gpt_provider|transformer_config)|peft/\w+)\.py"
    )
    megatron = Modules.matching(
        tree,
        r"megatron/training/(config/)?\w*config\.py",
        r"megatron/core/(model_parallel_config|transformer/(transformer_config|enums))\.py",
        r"megatron/core/(optimizer|distributed|datasets)/\w*(config|gpt_dataset)\.py",
    )
    options: dict[str, Entry] = {}
    for section, names in _MEGATRON_BRIDGE_SECTIONS.items():
        for name in names:
            for _, node in bridge.lineage(name):
                for base in node.bases:
                    parent = ast.unparse(base).removeprefix("MCore").removeprefix("MTrain")
                    if parent not in bridge.classes or parent != ast.unparse(base):
                        options.update(class_options(megatron, parent, section + "."))
            options.update(class_options(bridge if name in bridge.classes else megatron, name, section + "."))
    flags = Modules.matching(tree, r"scripts/training/run_recipe\.py")
    named_flags = {name: entry for path in flags.modules for name, entry in argparse_options(flags, path).items()}
    return {"recipe": options, "run_recipe": with_aliases(named_flags)}


_COMMANDS = {
    "sft": ("TrainArguments", "SftArguments"),
    "rlhf": ("RLHFArguments",),
    "infer": ("InferArguments",),
    "export": ("ExportArguments",),
    "rollout": ("RolloutArguments",),
    "megatron_rlhf": ("MegatronRLHFArguments",),
}


def ms_swift(tree: SourceTree) -> OptionsByOwner:
    """ms-swift: a class of arguments for each command."""
    sources = Modules.matching(
        tree,
        r"swift/(llm|arguments|megatron|trainers|rlhf_trainers|plugin|utils|model)/.*(arg|mixin)\w*\.py",
        r"swift/(llm/argument|arguments|megatron/arguments?)/.*\.py",
        r"swift/(trainers|ray|ray_utils)/\w*arguments\.py",
        r"swift/llm/utils/argument\.py",
    )
    owned = {}
    for command, names in _COMMANDS.items():
        present = [name for name in names if name in sources.classes]
        if present:
            owned[command] = class_options(sources, present[0])
    return owned


def peft(tree: SourceTree) -> OptionsByOwner:
    """PEFT: the LoRA configuration."""
    sources = Modules.matching(tree, r"peft/(config|tuners/lora/config|utils/peft_types)\.py")
    return options_by_class(sources, ["LoraConfig"])


_WORKERS = ("actor_train", "actor_infer", "critic", "reference", "sft_train", "student", "teacher")
_GROUPS = {
    "model_args": "ModelArguments",
    "training_args": "TrainingArguments",
    "data_args": "DataArguments",
    "generating_args": "GeneratingArguments",
    "strategy_args": "StrategyArguments",
}


def roll(tree: SourceTree) -> OptionsByOwner:
    """ROLL: a class for each pipeline, with the same groups of options for every worker."""
    sources = Modules.matching(tree, r"roll/configs/\w+\.py", r"roll/pipeline/[\w/]+_config\.py")
    worker = class_options(sources, "WorkerConfig")
    for group, name in _GROUPS.items():
        worker.pop(group, None)
        worker.update(class_options(sources, name, f"{group}."))
    owned = {}
    for owner in ("RLVRConfig", "AgenticConfig", "SFTConfig", "DPOConfig", "DistillConfig", "RewardFLConfig"):
        options = class_options(sources, owner) if owner in sources.classes else {}
        for name in _WORKERS:
            if options.pop(name, None) is not None:
                options.update({f"{name}.{key}": dict(entry) for key, entry in worker.items()})
        owned[owner] = options
    return owned


def skyrl(tree: SourceTree) -> OptionsByOwner:
    """SkyRL: nested configuration classes."""
    sources = Modules.matching(tree, r"skyrl/train/config/\w+\.py")
    names = {"main_base": "SkyRLTrainConfig", "main_sft": "SFTConfig"}
    return {owner: nested_options(sources, name) for owner, name in names.items() if name in sources.classes}


def transformers(tree: SourceTree) -> OptionsByOwner:
    """Transformers: the training arguments."""
    sources = Modules.matching(tree, r"transformers/(training_args(_seq2seq)?|trainer_utils)\.py")
    owned = options_by_class(sources, ["TrainingArguments", "Seq2SeqTrainingArguments"])
    # Inherited fields belong to the base alone, or each would be listed with two owners.
    for name in owned.get("TrainingArguments", {}):
        owned.get("Seq2SeqTrainingArguments", {}).pop(name, None)
    return owned


def trl(tree: SourceTree) -> OptionsByOwner:
    """TRL: configuration classes, and the arguments of its scripts."""
    sources = Modules.matching(
        tree,
        r"trl/trainer/(\w*config|base_config|model_config|utils)\.py",
        r"trl/scripts/(?!vllm_serve)\w+\.py",
        r"trl/(commands/cli_utils|core|utils|experimental/\w+/\w*config)\.py",
    )
    names = [
        name
        for name, (path, node) in sources.classes.items()
        if not name.startswith("_")
        and name.endswith(("Config", "ScriptArguments"))
        and any("dataclass" in ast.unparse(each) for each in node.decorator_list)
        and path in sources.modules
    ]
    # The first owner gives an entry its values, so the trainers that most people use come first.
    order = ("DPOConfig", "KTOConfig", "SFTConfig", "GRPOConfig", "RewardConfig", "RLOOConfig")
    names.sort(key=lambda name: (order.index(name) if name in order else len(order), name))
    owned = options_by_class(sources, names)
    served = Modules.matching(tree, r"trl/scripts/vllm_serve\.py")
    if "ScriptArguments" in served.classes:
        owned["VllmServeScriptArguments"] = class_options(served, "ScriptArguments")
    return owned


_SHIPPED = r"xtuner/configs/(?:internlm|llama|qwen|dpo|orpo|reward_model|llava)/.*_e?\w+\.py"
_CLASS = regex(
    r"(?:\w*Trainer|Worker|FSDP|AdamW|Muon|LR|Dataloader|Dataset|CELoss|GRPOLoss|OrealLoss|Rollout|DataFlow|ReplayBuffer"
    r"|Evaluator|AcceleratorResources|Resume|LoadCheckpoint|OpenaiTokenizeFunction|FTDPTokenizeFn|RLTokenizeFn)Config"
    r"|TrainingArguments"
)
_XTUNER_GROUPS = (
    *("model", "optim_wrapper", "train_dataloader", "train_dataset", "train_cfg", "default_hooks", "randomness"),
    *("pretrained_model_name_or_path", "llm_name_or_path", "visual_encoder_name_or_path", "use_varlen_attn"),
    *("data_path", "prompt_template", "max_length", "pack_to_max_length", "max_packed_length", "batch_size"),
    *("sequence_parallel_size", "accumulative_counts", "dataloader_num_workers", "max_epochs", "optim_type", "lr"),
    *("betas", "weight_decay", "max_norm", "warmup_ratio", "save_steps", "save_total_limit", "evaluation_freq"),
    *("load_from", "resume", "loss_beta", "dpo_loss_type"),
)
"""What the shipped configuration files have in common; their other names are those of data sets."""


def xtuner(tree: SourceTree) -> OptionsByOwner:
    """XTuner: the classes of 1.0; before, the names that most shipped configuration files assign."""
    sources = Modules.matching(tree, r"xtuner/v1/(?:train|config|rl|ray|loss|datasets|optim)/.*\.py")
    if sources.classes:
        return options_by_class(sources, sorted(filter(_CLASS.fullmatch, sources.classes)))
    shipped = Modules.matching(tree, _SHIPPED)
    written = [assigned_options(module) for module in shipped.modules.values()]
    names = Counter(name for options in written for name in options)
    common = sorted(name for name, files in names.items() if files > 4 and name.partition(".")[0] in _XTUNER_GROUPS)
    owned: OptionsByOwner = {"config": {name: {"type": None, "default": "<required>"} for name in common}}
    models = Modules.matching(tree, r"xtuner/model/\w+\.py")
    for name in ("SupervisedFinetune", "DPO", "ORPO", "RewardModel"):
        parameters = signature_options(models, name)
        owned[name] = {f"model.{parameter}": entry for parameter, entry in parameters.items()}
    command = Modules.matching(tree, r"xtuner/tools/train\.py")
    for path in command.modules:
        owned["train"] = argparse_options(command, path)
    return owned
