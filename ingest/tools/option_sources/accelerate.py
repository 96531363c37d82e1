"""Accelerate: the flags of ``accelerate launch`` and the keys of its configuration."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import argparse_options, options_by_class
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"src/accelerate/commands/(launch|config/config_args)\.py")
    owned: OptionsByOwner = {}
    launch = "src/accelerate/commands/launch.py"
    if launch in sources.modules:
        owned["launch"] = argparse_options(sources, launch)
    owned.update(options_by_class(sources, ["ClusterConfig"]))
    return owned
