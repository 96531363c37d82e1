"""ROLL: a class for each pipeline, with the same groups of options for every worker."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import class_options
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner

_WORKERS = ("actor_train", "actor_infer", "critic", "reference", "sft_train", "student", "teacher")
_GROUPS = {
    "model_args": "ModelArguments",
    "training_args": "TrainingArguments",
    "data_args": "DataArguments",
    "generating_args": "GeneratingArguments",
    "strategy_args": "StrategyArguments",
}


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"roll/configs/\w+\.py", r"roll/pipeline/[\w/]+_config\.py")
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
