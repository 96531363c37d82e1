"""Frameworks that declare their options as command-line flags."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import PurePosixPath

from trainmedic.kb.frameworks.book import Entry, OptionsByOwner
from trainmedic.kb.sources.shapes import (
    argparse_options,
    class_options,
    factory_options,
    options_by_class,
    with_aliases,
)
from trainmedic.kb.sources.syntax import Modules
from trainmedic.kb.sources.tree import SourceTree


def accelerate(tree: SourceTree) -> OptionsByOwner:
    """Accelerate: the arguments of ``accelerate launch``, the keys of its configuration, and the plugins that they
    become."""
    sources = Modules.matching(tree, r"accelerate/(commands/(launch|config/config_args)|utils/dataclasses)\.py")
    owned: OptionsByOwner = {}
    launch = "accelerate/commands/launch.py"
    if launch in sources.modules:
        owned["launch"] = argparse_options(sources, launch, positional=True)
    owned.update(options_by_class(sources, ["ClusterConfig", "DeepSpeedPlugin"]))
    if "FullyShardedDataParallelPlugin" in sources.classes:
        owned["FSDP"] = class_options(sources, "FullyShardedDataParallelPlugin")
    return owned


def megatron_core(tree: SourceTree) -> OptionsByOwner:
    """Megatron-LM: flags that are declared, and flags that are made of classes."""
    sources = Modules.matching(
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


def openrlhf(tree: SourceTree) -> OptionsByOwner:
    """OpenRLHF: one argparse program for each algorithm."""
    sources = Modules.matching(tree, r"(openrlhf/cli|examples)/\w+\.py")
    return {
        PurePosixPath(path).stem: options for path in sources.modules if (options := argparse_options(sources, path))
    }


_SERVER = r"sglang/srt/server_args\.py"
_FIELDS = r"sglang/srt/arg_groups/fields/\w+\.py"


def sglang(tree: SourceTree) -> OptionsByOwner:
    """SGLang: the flags of its server, and the fields of ServerArgs, which trainers pass to the engine as keywords.

    A field's annotation may declare its flag: ``tp_size: A[int, Arg(help=…, aliases=["--tensor-parallel-size"])] = 1``.
    """
    sources = Modules.matching(tree, _SERVER, _FIELDS)
    declared = class_options(sources, "ServerArgs")
    for path, node in sources.classes.values():
        if "/arg_groups/fields/" in path:
            declared.update(class_options(sources, node.name))
    fields: dict[str, Entry] = {}
    flags: dict[str, Entry] = {}
    for name, entry in declared.items():
        kind, declaration = _unwrapped(str(entry["type"]))
        if declaration is None or _called(declaration) != "Derived":
            fields[name] = {**entry, "type": kind}
        if declaration is not None and _called(declaration) != "Derived":
            flags.update(_flag(name, fields[name], declaration))
    for path in sources.modules:
        flags.update(with_aliases(argparse_options(sources, path)))
    return {"server": _plain(flags), "ServerArgs": fields}


def _unwrapped(annotation: str) -> tuple[str, ast.expr | None]:
    """The type inside ``A[type, declaration]``, and the declaration if there is one."""
    node = ast.parse(annotation, mode="eval").body
    match node:
        case ast.Subscript(value=ast.Name(id="A"), slice=ast.Tuple(elts=[kind, declaration, *_])):
            return ast.unparse(kind), declaration
        case _:
            return annotation, None


def _called(declaration: ast.expr) -> str:
    return ast.unparse(declaration.func) if isinstance(declaration, ast.Call) else ""


def _flag(name: str, entry: Entry, declaration: ast.expr) -> dict[str, Entry]:
    keywords = declaration.keywords if isinstance(declaration, ast.Call) else []
    words = {keyword.arg: _constant(keyword.value) for keyword in keywords}
    if words.get("no_cli"):
        return {}
    kind = str(entry["type"]).removeprefix("Optional[").removesuffix("]")
    flag: Entry = {key: value for key, value in entry.items() if key != "choices"}
    if "action" in words or "type_parser" in words:
        flag.update(type=None, nargs="?")
    elif kind == "bool":
        flag = {"type": "flag", "default": entry["default"], "action": "store_true"}
    elif kind.lower().startswith("list["):
        flag["nargs"] = "+"
    elif words.get("nargs"):
        flag["nargs"] = words["nargs"]
    aliases = words.get("aliases")
    names = [words.get("cli_name") or name, *(aliases if isinstance(aliases, list) else ())]
    return {str(spelling).removeprefix("--"): dict(flag) for spelling in names}


def _constant(node: ast.expr) -> object:
    try:
        value: object = ast.literal_eval(node)
    except ValueError:
        value = None
    return value


def _plain(flags: Mapping[str, Entry]) -> dict[str, Entry]:
    """With underscores; what names nothing that a user types is left out: further spellings, computed defaults."""
    return {
        name.replace("-", "_"): {key: value for key, value in entry.items() if key != "aliases"}
        for name, entry in flags.items()
    }


def slime(tree: SourceTree) -> OptionsByOwner:
    """slime: its flags; Megatron's, which it takes as well, come from another checkout."""
    sources = Modules.matching(tree, r"slime/(utils|backends/\w+(/server)?|router)/(arguments|router)\.py")
    owned = {"slime": {}, "fsdp": _dashed(class_options(sources, "FSDPArgs")) if "FSDPArgs" in sources.classes else {}}
    for path in sources.modules:
        owned["slime"].update(argparse_options(sources, path, "reset_arg"))
    return owned


def _dashed(options: Mapping[str, Entry]) -> dict[str, Entry]:
    return {name.replace("_", "-"): entry for name, entry in options.items()}
