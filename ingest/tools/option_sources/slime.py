"""slime: its flags; Megatron's, which it takes as well, come from another checkout."""

from __future__ import annotations

from collections.abc import Mapping

from trainmedic.ingest.tools.extract_shapes import argparse_options, class_options
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import Entry, OptionsByOwner


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"slime/(utils|backends/\w+(/server)?|router)/(arguments|router)\.py")
    owned = {"slime": {}, "fsdp": _dashed(class_options(sources, "FSDPArgs")) if "FSDPArgs" in sources.classes else {}}
    for path in sources.modules:
        owned["slime"].update(argparse_options(sources, path, "reset_arg"))
    return owned


def _dashed(options: Mapping[str, Entry]) -> dict[str, Entry]:
    return {name.replace("_", "-"): entry for name, entry in options.items()}
