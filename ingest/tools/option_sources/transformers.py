"""Transformers: the training arguments."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import options_by_class
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"src/transformers/(training_args(_seq2seq)?|trainer_utils)\.py")
    owned = options_by_class(sources, ["TrainingArguments", "Seq2SeqTrainingArguments"])
    # Inherited fields belong to the base alone, or each would be listed with two owners.
    for name in owned.get("TrainingArguments", {}):
        owned.get("Seq2SeqTrainingArguments", {}).pop(name, None)
    return owned
