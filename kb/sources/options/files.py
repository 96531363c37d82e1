"""Frameworks whose options are those of configuration files."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from trainmedic.kb.frameworks.book import Entry, OptionsByOwner
from trainmedic.kb.sources.shapes import leaves, read_options, signature_options, yaml_options, yaml_tree
from trainmedic.kb.sources.syntax import Modules
from trainmedic.kb.sources.tree import SourceTree

_EXAMPLES = {
    "grpo": r"grpo_(math|sliding)_\w+",
    "sft": r"sft(_\w+)?",
    "dpo": "dpo",
    "rm": "rm",
    "ppo": r"ppo_math_\w+",
    "distillation": "distillation_math(_megatron)?",
}
"""Algorithm → its example files, the basic one being the one with the shortest name."""


def nemo_rl(tree: SourceTree) -> OptionsByOwner:
    """NeMo RL: the example file of each algorithm; every option is written in one, and runs start from a copy."""
    owned = {}
    for owner, name in _EXAMPLES.items():
        paths = [path for path in tree.paths() if re.fullmatch(rf"examples/configs/{name}\.yaml", path)]
        options: dict[str, Entry] = {}
        for path in sorted(paths, key=len):
            options = {**yaml_options(tree.text(path)), **options}
        if options:
            owned[owner] = options
    return owned


def skyrl_train(tree: SourceTree) -> OptionsByOwner:
    """SkyRL before it was merged into one package: a Hydra file with others mounted in it.

    They are mounted by its defaults list: ``megatron_config@trainer.policy.megatron_config: policy``.
    """
    folder = "skyrl_train/config/"
    text = tree.text(f"{folder}ppo_base_config.yaml")
    options = yaml_options(text)
    for group, place, name in re.findall(r"^ +- (\w+)@([\w.]+): (\w+)$", text, re.MULTILINE):
        mounted = f"{folder}{group}/{name}.yaml"
        if mounted in tree.paths():
            options.update({f"{place}.{key}": entry for key, entry in yaml_options(tree.text(mounted)).items()})
    return {"main_base": options}


_ADAM = ("lr", "betas", "eps", "weight_decay", "amsgrad", "fused", "foreach")
"""Arguments of ``torch.optim.AdamW``, the same in every release that a catalogue covers."""


def torchtune(tree: SourceTree) -> OptionsByOwner:
    """torchtune: what each recipe reads, and the parameters of the components that its shipped configurations name.

    Only these have defaults that hold whatever the configuration says, so values of shipped files are left out.
    """
    registry = ast.parse(tree.text("torchtune/_recipe_registry.py"))
    recipes = {
        PurePosixPath(paths[0]).stem: [path for path in paths if path.endswith(".yaml")]
        for node in ast.walk(registry)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Recipe"
        for paths in [list(_named_files(node))]
    }
    files = {PurePosixPath(path).stem: path for path in tree.paths() if path.startswith("recipes/")}
    sources, library = Modules.matching(tree, r"recipes/(?:dev/)?\w+\.py"), Modules.matching(tree, r"torchtune/.*\.py")
    owned = {}
    for recipe, configs in recipes.items():
        if files.get(recipe) not in sources.modules:
            continue
        options = read_options(sources, files[recipe], "cfg")
        for group, names in _components(tree, [f"recipes/configs/{path}" for path in configs]).items():
            options.pop(group, None)
            options[f"{group}._component_"] = {"type": "str", "default": "<required>"}
            options.update(_component_options(library, group, names))
        owned[recipe] = options
    return owned


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


_TRAINERS = ("ppo_trainer", "ppo_megatron_trainer", "sft_trainer", "sft_trainer_engine")


def verl(tree: SourceTree) -> OptionsByOwner:
    """verl: the tree of settings of each trainer."""
    folder = "verl/trainer/config/"
    return {owner: leaves(_composed(tree, folder, owner)) for owner in _TRAINERS if f"{folder}{owner}.yaml" in tree}


def _composed(tree: SourceTree, folder: str, name: str) -> dict[str, Any]:
    """A Hydra file below ``folder`` with what its defaults list mounts, as Hydra composes them."""
    composition = _Composition(tree=tree, folder=folder)
    composition.mount(name, (), ())
    return composition.whole


_OVERRIDE = "override "


@dataclass(slots=True, kw_only=True)
class _Composition:
    """``chosen`` is the file of each group that was mounted, and of each ``override``."""

    tree: SourceTree
    folder: str
    whole: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        path = f"{self.folder}{name}.yaml"
        return self.tree.text(path) if path in self.tree else ""

    def mount(self, name: str, at: tuple[str, ...], above: tuple[str, ...]) -> None:
        """Put a file at its place, what it builds on before or after it. What is not there is left out."""
        own = yaml_tree(self.text(name))
        listed = own.pop("defaults", [])
        pairs = [next(iter(each.items())) if isinstance(each, dict) else (str(each), "") for each in listed]
        self.chosen.update({key: str(option) for key, option in pairs if key.startswith(_OVERRIDE)})
        for key, option in pairs if ("_self_", "") in pairs else [*pairs, ("_self_", "")]:
            if key == "_self_":
                _merge_into(self.whole, at, own)
            elif not key.startswith(_OVERRIDE) and name not in above:
                self.mount_listed(key, str(option or ""), name, at, (*above, name))

    def mount_listed(self, key: str, option: str, name: str, at: tuple[str, ...], above: tuple[str, ...]) -> None:
        path, _, package = key.removeprefix("optional ").partition("@")
        option = self.chosen.get(_OVERRIDE + key, option)
        option = re.sub(r"\$\{(\w+)\}", lambda match: self.chosen.get(match[1], match[0]), option)
        self.chosen[path] = option
        group = "" if path.startswith("/") else name.rpartition("/")[0]
        target = posixpath.normpath("/".join(filter(None, (group, path.strip("/"), option))))
        inner = tuple(package.split(".")) if package not in ("", "_here_", "_global_") else ()
        if not package and option:
            inner = tuple(path.strip("/").split("/"))
        everywhere = package == "_global_" or (not package and "@package _global_" in self.text(target)[:200])
        self.mount(target, () if everywhere else (*at, *inner), above)


def _merge_into(whole: dict[str, Any], at: tuple[str, ...], own: Mapping[str, Any]) -> None:
    for key in at:
        if not isinstance(whole.get(key), dict):
            whole[key] = {}
        whole = whole[key]
    for key, value in own.items():
        if isinstance(value, dict) and isinstance(whole.get(key), dict):
            _merge_into(whole[key], (), value)
        else:
            whole[key] = value
