"""ms-swift: a class of arguments for each command."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import class_options
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner

_COMMANDS = {
    "sft": ("TrainArguments", "SftArguments"),
    "rlhf": ("RLHFArguments",),
    "infer": ("InferArguments",),
    "export": ("ExportArguments",),
    "rollout": ("RolloutArguments",),
    "megatron_rlhf": ("MegatronRLHFArguments",),
}


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(
        tree,
        r"swift/(llm|arguments|megatron|trainers|rlhf_trainers|plugin|utils|model)/.*(arg|mixin)\w*\.py",
        r"swift/(llm/argument|arguments|megatron/arguments?)/.*\.py",
        r"swift/trainers/\w*arguments\.py",
        r"swift/llm/utils/argument\.py",
    )
    owned = {}
    for command, names in _COMMANDS.items():
        present = [name for name in names if name in sources.classes]
        if present:
            owned[command] = class_options(sources, present[0])
    return owned
