"""OpenRLHF: one argparse program for each algorithm."""

from __future__ import annotations

from pathlib import PurePosixPath

from trainmedic.ingest.tools.extract_shapes import argparse_options
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"(openrlhf/cli|examples)/\w+\.py")
    return {
        PurePosixPath(path).stem: options for path in sources.modules if (options := argparse_options(sources, path))
    }
