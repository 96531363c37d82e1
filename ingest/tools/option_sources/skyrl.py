"""SkyRL: nested configuration classes."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import nested_options
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"skyrl/train/config/\w+\.py")
    names = {"main_base": "SkyRLTrainConfig", "main_sft": "SFTConfig"}
    return {owner: nested_options(sources, name) for owner, name in names.items() if name in sources.classes}
