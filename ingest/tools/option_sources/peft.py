"""PEFT: the LoRA configuration."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import options_by_class
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"src/peft/(config|tuners/lora/config|utils/peft_types)\.py")
    return options_by_class(sources, ["LoraConfig"])
