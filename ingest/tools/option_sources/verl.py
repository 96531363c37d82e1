"""verl: the tree of settings of each trainer."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import yaml_options
from trainmedic.ingest.tools.extract_source import GitTree
from trainmedic.ingest.tools.extract_store import OptionsByOwner

_TRAINERS = ("ppo_trainer", "ppo_megatron_trainer", "sft_trainer", "sft_trainer_engine")


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    folder = "verl/trainer/config/"
    owned = {}
    for owner in _TRAINERS:
        # Newer releases ship the resolved tree; older ones only the file with its defaults list.
        for path in (f"{folder}_generated_{owner}.yaml", f"{folder}{owner}.yaml"):
            if path in tree.paths:
                owned[owner] = yaml_options(tree.text(path))
                break
    return owned
