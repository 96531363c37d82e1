"""Options of recipes: what each reads, and the parameters of the components that its shipped configurations name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from trainmedic.kb.frameworks.book import Entry
from trainmedic.kb.frameworks.profiles import Declaration
from trainmedic.kb.sources.shapes import read_options, signature_options, yaml_options
from trainmedic.kb.sources.syntax import Modules
from trainmedic.kb.sources.tree import SourceTree

_ADAM = ("lr", "betas", "eps", "weight_decay", "amsgrad", "fused", "foreach")
"""Arguments of ``torch.optim.AdamW``, the same in every release that a catalogue covers."""


def declared(tree: SourceTree, each: Declaration) -> Iterator[tuple[str, dict[str, Entry]]]:
    """Only these have defaults that hold whatever the configuration says, so values of shipped files are left out.

    ``within`` is the registry of recipes and their configurations.
    """
    registry = ast.parse(tree.text(each.within))
    recipes = {
        PurePosixPath(paths[0]).stem: [path for path in paths if path.endswith(".yaml")]
        for node in ast.walk(registry)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Recipe"
        for paths in [list(_named_files(node))]
    }
    files = {PurePosixPath(path).stem: path for path in tree.paths() if path.startswith("recipes/")}
    sources, library = Modules.matching(tree, *each.files), Modules.matching(tree, *each.others)
    for recipe, configs in recipes.items():
        if files.get(recipe) not in sources.modules:
            continue
        options = read_options(sources, files[recipe], "cfg")
        for group, names in _components(tree, [f"recipes/configs/{path}" for path in configs]).items():
            options.pop(group, None)
            options[f"{group}._component_"] = {"type": "str", "default": "<required>"}
            options.update(_component_options(library, group, names))
        yield recipe, options


def _named_files(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        match child:
            case ast.keyword(arg="file_path", value=ast.Constant(value=str(path))):
                yield path


def _components(tree: SourceTree, configs: Iterable[str]) -> dict[str, set[str]]:
    """Group of options → the dotted names of the components that these configurations put there."""
    groups: dict[str, set[str]] = {}
    for path in configs:
        if path not in tree.paths():
            continue
        for key, entry in yaml_options(tree.text(path)).items():
            group, _, last = key.rpartition(".")
            if last == "_component_" and group:
                groups.setdefault(group, set()).add(str(entry["default"]))
    return groups


def _component_options(library: Modules, group: str, names: Iterable[str]) -> dict[str, Entry]:
    """The parameters of the components, with a default only where they agree."""
    options: dict[str, Entry] = {}
    for name in sorted(names):
        if name.startswith("torch.optim."):
            parameters: dict[str, Entry] = {each: {"type": None, "default": "<required>"} for each in _ADAM}
        else:
            parameters = signature_options(library, name.rpartition(".")[2])
        for parameter, entry in parameters.items():
            known = options.setdefault(f"{group}.{parameter}", entry)
            if known != entry:
                options[f"{group}.{parameter}"] = {"type": None, "default": "<required>"}
    return options
