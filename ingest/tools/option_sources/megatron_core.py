"""Megatron-LM: flags that are declared, and flags that are made of classes."""

from __future__ import annotations

from trainmedic.ingest.tools.extract_shapes import argparse_options, factory_options, with_aliases
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import OptionsByOwner


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(
        tree,
        r"megatron/(training/)?arguments\.py",
        r"megatron/post_training/arguments\.py",
        r"megatron/training/(config/)?\w*config\.py",
        r"megatron/core/(model_parallel_config|transformer/(transformer_config|enums)|fault_injector)\.py",
        r"(pretrain_\w+|examples/multimodal/multimodal_args|examples/mimo/(training/args|train))\.py",
    )
    owned: OptionsByOwner = {"pretrain": {}}
    for path in ("megatron/arguments.py", "megatron/training/arguments.py"):
        if path in sources.modules:
            owned["pretrain"].update(factory_options(sources, path, "ArgumentGroupFactory"))
            owned["pretrain"].update(with_aliases(argparse_options(sources, path)))
    # Programs add options of their own to the shared parser; which ones is of no use to a diagnosis.
    owned["programs"] = {
        name: entry
        for path in sources.modules
        if not path.endswith("arguments.py") or "training/" not in path
        for name, entry in with_aliases(argparse_options(sources, path)).items()
        if name not in owned["pretrain"]
    }
    return owned
