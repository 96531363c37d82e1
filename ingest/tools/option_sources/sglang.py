"""SGLang: the flags of its server, and the fields of ServerArgs, which trainers pass to the engine as keywords.

A field's annotation may declare its flag: ``tp_size: A[int, Arg(help=…, aliases=["--tensor-parallel-size"])] = 1``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from trainmedic.ingest.tools.extract_shapes import argparse_options, class_options, with_aliases
from trainmedic.ingest.tools.extract_source import GitTree, Sources
from trainmedic.ingest.tools.extract_store import Entry, OptionsByOwner

_SERVER = r"(?:python/)?sglang/srt/server_args\.py"
_FIELDS = r"(?:python/)?sglang/srt/arg_groups/fields/\w+\.py"


def options_by_owner(tree: GitTree) -> OptionsByOwner:
    sources = Sources.matching(tree, _SERVER, _FIELDS)
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
