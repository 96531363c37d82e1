"""TRL: configuration classes, and the arguments of its scripts."""

from __future__ import annotations

import ast

from trainmedic.ingest.tools.extract_shapes import class_options, options_by_class
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(
        tree,
        r"trl/trainer/(\w*config|base_config|model_config|utils)\.py",
        r"trl/scripts/(?!vllm_serve)\w+\.py",
        r"trl/(commands/cli_utils|core|utils|experimental/\w+/\w*config)\.py",
    )
    names = [
        name
        for name, (path, node) in sources.classes.items()
        if not name.startswith("_")
        and name.endswith(("Config", "ScriptArguments"))
        and any("dataclass" in ast.unparse(each) for each in node.decorator_list)
        and path in sources.modules
    ]
    # The first owner gives an entry its values, so the trainers that most people use come first.
    order = ("DPOConfig", "KTOConfig", "SFTConfig", "GRPOConfig", "RewardConfig", "RLOOConfig")
    names.sort(key=lambda name: (order.index(name) if name in order else len(order), name))
    owned = options_by_class(sources, names)
    served = Sources.matching(tree, r"trl/scripts/vllm_serve\.py")
    if "ScriptArguments" in served.classes:
        owned["VllmServeScriptArguments"] = class_options(served, "ScriptArguments")
    return owned
