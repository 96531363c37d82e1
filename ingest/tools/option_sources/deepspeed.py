"""DeepSpeed: what its configuration reads, by lookups and by models."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import class_options, lookup_options
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import Entry, OptionsByOwner

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


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"deepspeed/(runtime|compile|profiling|monitor|utils)/.*(config|constants)\w*\.py")
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
