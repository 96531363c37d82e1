"""SkyRL before it was merged into one package: a Hydra file with others mounted in it.

They are mounted by its defaults list: ``megatron_config@trainer.policy.megatron_config: policy``.
"""

from __future__ import annotations

import re

from trainmedic.ingest.tools.extract_shapes import yaml_options
from trainmedic.ingest.tools.extract_source import GitTree
from trainmedic.ingest.tools.extract_store import OptionsByOwner


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    folder = "skyrl-train/skyrl_train/config/"
    text = tree.text(f"{folder}ppo_base_config.yaml")
    options = yaml_options(text)
    for group, place, name in re.findall(r"^ +- (\w+)@([\w.]+): (\w+)$", text, re.MULTILINE):
        mounted = f"{folder}{group}/{name}.yaml"
        if mounted in tree.paths:
            options.update({f"{place}.{key}": entry for key, entry in yaml_options(tree.text(mounted)).items()})
    return {"main_base": options}
