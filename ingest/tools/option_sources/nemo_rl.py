"""NeMo RL: the example file of each algorithm; every option is written in one, and runs start from a copy."""

from __future__ import annotations

import re

from trainmedic.ingest.tools.extract_shapes import yaml_options
from trainmedic.ingest.tools.extract_source import GitTree
from trainmedic.ingest.tools.extract_store import Entry, OptionsByOwner

_EXAMPLES = {
    "grpo": r"grpo_(math|sliding)_\w+",
    "sft": r"sft(_\w+)?",
    "dpo": "dpo",
    "rm": "rm",
    "ppo": r"ppo_math_\w+",
    "distillation": "distillation_math(_megatron)?",
}
"""Algorithm → its example files, the basic one being the one with the shortest name."""


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    owned = {}
    for owner, name in _EXAMPLES.items():
        paths = [path for path in tree.paths if re.fullmatch(rf"examples/configs/{name}\.yaml", path)]
        options: dict[str, Entry] = {}
        for path in sorted(paths, key=len):
            options = {**yaml_options(tree.text(path)), **options}
        if options:
            owned[owner] = options
    return owned
