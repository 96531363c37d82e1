"""Megatron-Bridge: the sections of its configuration, and the flags of its recipes."""

from __future__ import annotations

import ast

from trainmedic.ingest.tools.extract_shapes import argparse_options, class_options, with_aliases
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import Entry, OptionsByOwner

_SECTIONS = {
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


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    """The sections of ``ConfigContainer``; many of their classes extend one of Megatron's, which is a submodule."""
    bridge = Sources.matching(
        tree, r"src/megatron/bridge/(training/.*|models/(gpt_provider|transformer_config)|peft/\w+)\.py"
    )
    megatron = Sources.matching(
        tree,
        r"3rdparty/Megatron-LM/megatron/training/(config/)?\w*config\.py",
        r"3rdparty/Megatron-LM/megatron/core/(model_parallel_config|transformer/(transformer_config|enums))\.py",
        r"3rdparty/Megatron-LM/megatron/core/(optimizer|distributed|datasets)/\w*(config|gpt_dataset)\.py",
    )
    options: dict[str, Entry] = {}
    for section, names in _SECTIONS.items():
        for name in names:
            for _, node in bridge.lineage(name):
                for base in node.bases:
                    parent = ast.unparse(base).removeprefix("MCore").removeprefix("MTrain")
                    if parent not in bridge.classes or parent != ast.unparse(base):
                        options.update(class_options(megatron, parent, section + "."))
            options.update(class_options(bridge if name in bridge.classes else megatron, name, section + "."))
    flags = Sources.matching(tree, r"scripts/training/run_recipe\.py")
    named_flags = {name: entry for path in flags.modules for name, entry in argparse_options(flags, path).items()}
    return {"recipe": options, "run_recipe": with_aliases(named_flags)}
