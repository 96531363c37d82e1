"""LLaMA-Factory: argument classes."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import options_by_class
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner

_CLASSES = (
    *("ModelArguments", "DataArguments", "FinetuningArguments", "GeneratingArguments", "TrainingArguments"),
    *("RayArguments", "EvaluationArguments", "GeneralArguments"),
)


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    files = r"src/(llamafactory|llmtuner)/((hparams|dsets|tuner)/(\w+/)?\w+|extras/constants)\.py"
    return options_by_class(Sources.matching(tree, files), _CLASSES)
