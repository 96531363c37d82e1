"""Axolotl: the schema of its configuration, and those of its integrations."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import class_options
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner

_NESTED = {
    "trl": "TRLConfig",
    "vllm": "VllmConfig",
    "peft": "PeftConfig",
    "qat": "QATConfig",
    "fsdp_config": "FSDPConfig",
    "peft.loftq_config": "LoftQConfig",
}


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, r"src/axolotl/(utils/(schemas|config/models/input)/.*|integrations/\w+/args)\.py")
    owned: OptionsByOwner = {}
    if "AxolotlInputConfig" in sources.classes:
        owned["top"] = class_options(sources, "AxolotlInputConfig")
    for prefix, name in _NESTED.items():
        if name in sources.classes:
            owned[name] = class_options(sources, name, prefix + ".")
    for name, (path, _) in sources.classes.items():
        if path.startswith("src/axolotl/integrations/") and name.endswith("Args"):
            owned[name] = class_options(sources, name)
    return owned
