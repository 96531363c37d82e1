"""Where each framework declares its options, and under which owner (command or class) they are filed."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from trainmedic.ingest.tools.extract_shapes import (
    argparse_options,
    assigned_options,
    class_options,
    factory_options,
    lookup_options,
    nested_options,
    read_options,
    signature_options,
    with_aliases,
    yaml_options,
)
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import Entry

_FILES: Mapping[str, tuple[str, ...]] = {
    "openrlhf": (r"(openrlhf/cli|examples)/\w+\.py",),
    "trl": (
        r"trl/trainer/(\w*config|base_config|model_config|utils)\.py",
        r"trl/scripts/(?!vllm_serve)\w+\.py",
        r"trl/(commands/cli_utils|core|utils|experimental/\w+/\w*config)\.py",
    ),
    "llamafactory": (r"src/(llamafactory|llmtuner)/((hparams|dsets|tuner)/(\w+/)?\w+|extras/constants)\.py",),
    "ms-swift": (
        r"swift/(llm|arguments|megatron|trainers|rlhf_trainers|plugin|utils|model)/.*(arg|mixin)\w*\.py",
        r"swift/(llm/argument|arguments|megatron/arguments?)/.*\.py",
        r"swift/trainers/\w*arguments\.py",
        r"swift/llm/utils/argument\.py",
    ),
    "axolotl": (r"src/axolotl/(utils/(schemas|config/models/input)/.*|integrations/\w+/args)\.py",),
    "slime": (r"slime/(utils|backends/\w+(/server)?|router)/(arguments|router)\.py",),
    "transformers": (r"src/transformers/(training_args(_seq2seq)?|trainer_utils)\.py",),
    "deepspeed": (r"deepspeed/(runtime|compile|profiling|monitor|utils)/.*(config|constants)\w*\.py",),
    "accelerate": (r"src/accelerate/commands/(launch|config/config_args)\.py",),
    "megatron-core": (
        r"megatron/(training/)?arguments\.py",
        r"megatron/post_training/arguments\.py",
        r"megatron/training/(config/)?\w*config\.py",
        r"megatron/core/(model_parallel_config|transformer/(transformer_config|enums)|fault_injector)\.py",
        r"(pretrain_\w+|examples/multimodal/multimodal_args|examples/mimo/(training/args|train))\.py",
    ),
    "peft": (r"src/peft/(config|tuners/lora/config|utils/peft_types)\.py",),
}
"""Framework → patterns of the files that declare its options."""
_LLAMAFACTORY = (
    *("ModelArguments", "DataArguments", "FinetuningArguments", "GeneratingArguments", "TrainingArguments"),
    *("RayArguments", "EvaluationArguments", "GeneralArguments"),
)
_SWIFT = {
    "sft": ("TrainArguments", "SftArguments"),
    "rlhf": ("RLHFArguments",),
    "infer": ("InferArguments",),
    "export": ("ExportArguments",),
    "rollout": ("RolloutArguments",),
    "megatron_rlhf": ("MegatronRLHFArguments",),
}
_VERL = ("ppo_trainer", "ppo_megatron_trainer", "sft_trainer", "sft_trainer_engine")
_BRIDGE = {
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
"""Section of a Megatron-Bridge configuration → its classes; of a union those that most recipes use."""
_NEMO_RL = {
    "grpo": r"grpo_(math|sliding)_\w+",
    "sft": r"sft(_\w+)?",
    "dpo": "dpo",
    "rm": "rm",
    "ppo": r"ppo_math_\w+",
    "distillation": "distillation_math(_megatron)?",
}
"""Algorithm → its example files, the basic one being the one with the shortest name."""
_AXOLOTL_NESTED = {
    "trl": "TRLConfig",
    "vllm": "VllmConfig",
    "peft": "PeftConfig",
    "qat": "QATConfig",
    "fsdp_config": "FSDPConfig",
    "peft.loftq_config": "LoftQConfig",
}
_DEEPSPEED = {
    "zero_optimization": "DeepSpeedZeroConfig",
    "zero_optimization.offload_param": "DeepSpeedZeroOffloadParamConfig",
    "zero_optimization.offload_optimizer": "DeepSpeedZeroOffloadOptimizerConfig",
    "compile": "CompileConfig",
    "fp16": "DeepSpeedFP16Config",
    "bf16": "DeepSpeedBF16Config",
    "tensor_parallel": "TPTrainingConfig",
    "activation_checkpointing": "DeepSpeedActivationCheckpointingConfig",
}


def extract(tree: GitTree, framework: str) -> dict[str, Entry]:
    """The options of a framework at a tag: option → entry with ``in`` (owners) and ``*_by`` where they differ.

    Raises KeyError for a framework that cannot be read, FileNotFoundError where the tag or its files are missing.
    """
    return FRAMEWORKS[framework](tree)


def merge(owned: Mapping[str, Mapping[str, Entry]]) -> dict[str, Entry]:
    """One entry for each option of several owners; the first owner's values, the others' only where they differ."""
    merged: dict[str, Entry] = {}
    for owner, options in owned.items():
        for name, entry in options.items():
            if name not in merged:
                merged[name] = {**entry, "in": [owner]}
                continue
            known = merged[name]
            known["in"].append(owner)
            for part in ("default", "type", "choices"):
                if entry.get(part) != known.get(part):
                    known.setdefault(f"{part}_by", {})[owner] = entry.get(part)
    if not merged:
        raise FileNotFoundError("no option declarations at this tag")
    return merged


def with_options_of(entries: dict[str, Entry], tree: GitTree, framework: str) -> dict[str, Entry]:
    """The options with those of another framework that the parser takes as well.

    What the main command, the first owner, makes of an option counts; what another command does, only if the other
    framework lacks it.
    """
    others = {name: {**entry, "in": [framework]} for name, entry in extract(tree, framework).items()}
    main = next(iter(entries.values()))["in"][0]
    return {**others, **{name: entry for name, entry in entries.items() if main in entry["in"] or name not in others}}


def _sources(tree: GitTree, patterns: Sequence[str]) -> Sources:
    paths = [path for path in tree.paths if any(re.fullmatch(pattern, path) for pattern in patterns)]
    return Sources(tree, paths)


def _classes(sources: Sources, names: Iterable[str]) -> dict[str, dict[str, Entry]]:
    return {name: class_options(sources, name) for name in names if name in sources.classes}


def _openrlhf(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, _FILES["openrlhf"])
    return merge(
        {PurePosixPath(path).stem: found for path in sources.modules if (found := argparse_options(sources, path))}
    )


def _trl(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, _FILES["trl"])
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
    owned = _classes(sources, names)
    served = _sources(tree, (r"trl/scripts/vllm_serve\.py",))
    if "ScriptArguments" in served.classes:
        owned["VllmServeScriptArguments"] = class_options(served, "ScriptArguments")
    return merge(owned)


def _llamafactory(tree: GitTree) -> dict[str, Entry]:
    return merge(_classes(_sources(tree, _FILES["llamafactory"]), _LLAMAFACTORY))


def _swift(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, _FILES["ms-swift"])
    owned = {}
    for command, names in _SWIFT.items():
        present = [name for name in names if name in sources.classes]
        if present:
            owned[command] = class_options(sources, present[0])
    return merge(owned)


def _verl(tree: GitTree) -> dict[str, Entry]:
    folder = "verl/trainer/config/"
    owned = {}
    for owner in _VERL:
        # Newer releases ship the resolved tree; older ones only the file with its defaults list.
        for path in (f"{folder}_generated_{owner}.yaml", f"{folder}{owner}.yaml"):
            if path in tree.paths:
                owned[owner] = yaml_options(tree.text(path))
                break
    return merge(owned)


def _nemo_rl(tree: GitTree) -> dict[str, Entry]:
    """The example file of each algorithm; every option that is written in one is there, and runs start from a copy."""
    owned = {}
    for owner, name in _NEMO_RL.items():
        paths = [path for path in tree.paths if re.fullmatch(rf"examples/configs/{name}\.yaml", path)]
        found: dict[str, Entry] = {}
        for path in sorted(paths, key=len):
            found = {**yaml_options(tree.text(path)), **found}
        if found:
            owned[owner] = found
    return merge(owned)


def _megatron_bridge(tree: GitTree) -> dict[str, Entry]:
    """The sections of ``ConfigContainer``; many of their classes extend one of Megatron's, which is a submodule."""
    own = _sources(tree, (r"src/megatron/bridge/(training/.*|models/(gpt_provider|transformer_config)|peft/\w+)\.py",))
    megatron = _sources(
        tree,
        (
            r"3rdparty/Megatron-LM/megatron/training/(config/)?\w*config\.py",
            r"3rdparty/Megatron-LM/megatron/core/(model_parallel_config|transformer/(transformer_config|enums))\.py",
            r"3rdparty/Megatron-LM/megatron/core/(optimizer|distributed|datasets)/\w*(config|gpt_dataset)\.py",
        ),
    )
    found: dict[str, Entry] = {}
    for section, names in _BRIDGE.items():
        for name in names:
            for _, node in own.lineage(name):
                for base in node.bases:
                    parent = ast.unparse(base).removeprefix("MCore").removeprefix("MTrain")
                    if parent not in own.classes or parent != ast.unparse(base):
                        found.update(class_options(megatron, parent, section + "."))
            found.update(class_options(own if name in own.classes else megatron, name, section + "."))
    flags = _sources(tree, (r"scripts/training/run_recipe\.py",))
    own_flags = {name: entry for path in flags.modules for name, entry in argparse_options(flags, path).items()}
    return merge({"recipe": found, "run_recipe": with_aliases(own_flags)})


def _axolotl(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, _FILES["axolotl"])
    owned: dict[str, dict[str, Entry]] = _classes(sources, ["AxolotlInputConfig"])
    owned = {"top": owned.get("AxolotlInputConfig", {})}
    for prefix, name in _AXOLOTL_NESTED.items():
        if name in sources.classes:
            owned[name] = class_options(sources, name, prefix + ".")
    for name, (path, _) in sources.classes.items():
        if path.startswith("src/axolotl/integrations/") and name.endswith("Args"):
            owned[name] = class_options(sources, name)
    return merge({name: options for name, options in owned.items() if options})


def _transformers(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, _FILES["transformers"])
    owned = _classes(sources, ["TrainingArguments", "Seq2SeqTrainingArguments"])
    # Inherited fields belong to the base alone, or each would be listed with two owners.
    for name in owned.get("TrainingArguments", {}):
        owned.get("Seq2SeqTrainingArguments", {}).pop(name, None)
    return merge(owned)


def _deepspeed(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, _FILES["deepspeed"])
    found: dict[str, Entry] = {}
    if "deepspeed/runtime/config.py" in sources.modules:
        found.update(lookup_options(sources, "deepspeed/runtime/config.py", "get_scalar_param"))
    for prefix, name in _DEEPSPEED.items():
        if name in sources.classes:
            for option, entry in class_options(sources, name, prefix + ".").items():
                found.update(_by_alias(prefix, option, entry))
    return merge({"config": found})


def _by_alias(prefix: str, option: str, entry: Entry) -> dict[str, Entry]:
    """DeepSpeed's models accept a field with an alias only under the alias."""
    aliases = entry.pop("aliases", ())
    return {f"{prefix}.{alias}": entry for alias in aliases} or {option: entry}


def _accelerate(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, _FILES["accelerate"])
    owned: dict[str, dict[str, Entry]] = {}
    launch = "src/accelerate/commands/launch.py"
    if launch in sources.modules:
        owned["launch"] = argparse_options(sources, launch)
    owned.update(_classes(sources, ["ClusterConfig"]))
    return merge(owned)


def _megatron(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, _FILES["megatron-core"])
    owned: dict[str, dict[str, Entry]] = {"pretrain": {}}
    for path in ("megatron/arguments.py", "megatron/training/arguments.py"):
        if path in sources.modules:
            owned["pretrain"].update(factory_options(sources, path, "ArgumentGroupFactory"))
            owned["pretrain"].update(with_aliases(argparse_options(sources, path)))
    # Programs add options of their own to the shared parser; which ones is of no use to a diagnosis.
    owned["programs"] = {
        name: entry
        for path in sources.modules
        if not path.endswith("arguments.py") or "training/" not in path
        for name, entry in with_aliases(argparse_options(sources, path)).items()
        if name not in owned["pretrain"]
    }
    return merge(owned)


def _slime(tree: GitTree) -> dict[str, Entry]:
    """slime's own arguments; Megatron's, which it takes as well, come from another checkout."""
    sources = _sources(tree, _FILES["slime"])
    owned = {"slime": {}, "fsdp": _dashed(class_options(sources, "FSDPArgs")) if "FSDPArgs" in sources.classes else {}}
    for path in sources.modules:
        owned["slime"].update(argparse_options(sources, path, "reset_arg"))
    return merge(owned)


def _dashed(options: Mapping[str, Entry]) -> dict[str, Entry]:
    return {name.replace("_", "-"): entry for name, entry in options.items()}


def _peft(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, _FILES["peft"])
    return merge(_classes(sources, ["LoraConfig"]))


_ADAM = ("lr", "betas", "eps", "weight_decay", "amsgrad", "fused", "foreach")
"""Arguments of ``torch.optim.AdamW``, the same in every release that a catalogue covers."""


def _torchtune(tree: GitTree) -> dict[str, Entry]:
    """What each recipe reads, and the parameters of the components that its shipped configurations name.

    Only these have defaults that hold whatever the configuration says, so values of shipped files are left out.
    """
    registry = ast.parse(tree.text("torchtune/_recipe_registry.py"))
    recipes = {
        PurePosixPath(paths[0]).stem: [path for path in paths if path.endswith(".yaml")]
        for node in ast.walk(registry)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Recipe"
        for paths in [list(_named_files(node))]
    }
    files = {PurePosixPath(path).stem: path for path in tree.paths if path.startswith("recipes/")}
    sources, library = _sources(tree, (r"recipes/(?:dev/)?\w+\.py",)), _sources(tree, (r"torchtune/.*\.py",))
    owned = {}
    for recipe, configs in recipes.items():
        if files.get(recipe) not in sources.modules:
            continue
        options = read_options(sources, files[recipe], "cfg")
        for group, names in _components(tree, [f"recipes/configs/{path}" for path in configs]).items():
            options.pop(group, None)
            options[f"{group}._component_"] = {"type": "str", "default": "<required>"}
            options.update(_component_options(library, group, names))
        owned[recipe] = options
    return merge(owned)


def _named_files(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        match child:
            case ast.keyword(arg="file_path", value=ast.Constant(value=str(path))):
                yield path


def _components(tree: GitTree, configs: Iterable[str]) -> dict[str, set[str]]:
    """Group of options → the dotted names of the components that these configurations put there."""
    groups: dict[str, set[str]] = {}
    for path in configs:
        if path not in tree.paths:
            continue
        for key, entry in yaml_options(tree.text(path)).items():
            group, _, last = key.rpartition(".")
            if last == "_component_" and group:
                groups.setdefault(group, set()).add(str(entry["default"]))
    return groups


def _component_options(library: Sources, group: str, names: Iterable[str]) -> dict[str, Entry]:
    """The parameters of the components, with a default only where they agree."""
    options: dict[str, Entry] = {}
    for name in sorted(names):
        if name.startswith("torch.optim."):
            parameters: dict[str, Entry] = {each: {"type": None, "default": "<required>"} for each in _ADAM}
        else:
            parameters = signature_options(library, name.rpartition(".")[2])
        for parameter, entry in parameters.items():
            known = options.setdefault(f"{group}.{parameter}", entry)
            if known != entry:
                options[f"{group}.{parameter}"] = {"type": None, "default": "<required>"}
    return options


_XTUNER_SHIPPED = re.compile(r"xtuner/configs/(?:internlm|llama|qwen|dpo|orpo|reward_model|llava)/.*_e?\w+\.py")
_XTUNER_CLASS = re.compile(
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


def _xtuner(tree: GitTree) -> dict[str, Entry]:
    """The fields of the classes of 1.0; before, the names that most shipped configuration files assign."""
    sources = _sources(tree, (r"xtuner/v1/(?:train|config|rl|ray|loss|datasets|optim)/.*\.py",))
    if sources.classes:
        return merge(_classes(sources, sorted(filter(_XTUNER_CLASS.fullmatch, sources.classes))))
    shipped = _sources(tree, (_XTUNER_SHIPPED.pattern,))
    written = [assigned_options(module) for module in shipped.modules.values()]
    names = Counter(name for options in written for name in options)
    common = sorted(name for name, files in names.items() if files > 4 and name.partition(".")[0] in _XTUNER_GROUPS)
    owned: dict[str, dict[str, Entry]] = {"config": {name: {"type": None, "default": "<required>"} for name in common}}
    models = _sources(tree, (r"xtuner/model/\w+\.py",))
    for name in ("SupervisedFinetune", "DPO", "ORPO", "RewardModel"):
        parameters = signature_options(models, name)
        owned[name] = {f"model.{parameter}": entry for parameter, entry in parameters.items()}
    command = _sources(tree, (r"xtuner/tools/train\.py",))
    for path in command.modules:
        owned["train"] = argparse_options(command, path)
    return merge(owned)


_ROLL_WORKERS = ("actor_train", "actor_infer", "critic", "reference", "sft_train", "student", "teacher")
_ROLL_GROUPS = {
    "model_args": "ModelArguments",
    "training_args": "TrainingArguments",
    "data_args": "DataArguments",
    "generating_args": "GeneratingArguments",
    "strategy_args": "StrategyArguments",
}


def _roll(tree: GitTree) -> dict[str, Entry]:
    """The fields of each pipeline's class; every worker has the same groups of them."""
    sources = _sources(tree, (r"roll/configs/\w+\.py", r"roll/pipeline/\w+/\w+_config\.py"))
    worker = class_options(sources, "WorkerConfig")
    for group, name in _ROLL_GROUPS.items():
        worker.pop(group, None)
        worker.update(class_options(sources, name, f"{group}."))
    owned = {}
    for owner in ("RLVRConfig", "AgenticConfig", "SFTConfig", "DPOConfig", "DistillConfig"):
        options = class_options(sources, owner) if owner in sources.classes else {}
        for name in _ROLL_WORKERS:
            if options.pop(name, None) is not None:
                options.update({f"{name}.{key}": dict(entry) for key, entry in worker.items()})
        owned[owner] = options
    return merge(owned)


def _skyrl(tree: GitTree) -> dict[str, Entry]:
    sources = _sources(tree, (r"skyrl/train/config/\w+\.py",))
    names = {"main_base": "SkyRLTrainConfig", "main_sft": "SFTConfig"}
    return merge({owner: nested_options(sources, name) for owner, name in names.items() if name in sources.classes})


def _skyrl_train(tree: GitTree) -> dict[str, Entry]:
    """A Hydra file with other files mounted in it (``megatron_config@trainer.policy.megatron_config: policy``)."""
    folder = "skyrl-train/skyrl_train/config/"
    text = tree.text(f"{folder}ppo_base_config.yaml")
    options = yaml_options(text)
    for group, place, name in re.findall(r"^ +- (\w+)@([\w.]+): (\w+)$", text, re.MULTILINE):
        mounted = f"{folder}{group}/{name}.yaml"
        if mounted in tree.paths:
            options.update({f"{place}.{key}": entry for key, entry in yaml_options(tree.text(mounted)).items()})
    return merge({"main_base": options})


FRAMEWORKS: Mapping[str, Callable[[GitTree], dict[str, Entry]]] = {
    "accelerate": _accelerate,
    "axolotl": _axolotl,
    "deepspeed": _deepspeed,
    "llamafactory": _llamafactory,
    "megatron-bridge": _megatron_bridge,
    "megatron-core": _megatron,
    "ms-swift": _swift,
    "nemo-rl": _nemo_rl,
    "openrlhf": _openrlhf,
    "peft": _peft,
    "torchtune": _torchtune,
    "roll": _roll,
    "skyrl": _skyrl,
    "skyrl-train": _skyrl_train,
    "slime": _slime,
    "transformers": _transformers,
    "trl": _trl,
    "verl": _verl,
    "xtuner": _xtuner,
}
"""Framework → its reader."""
