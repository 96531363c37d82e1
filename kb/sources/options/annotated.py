"""Options declared by annotations: ``tp_size: A[int, Arg(help=…, aliases=["--tensor-parallel-size"])] = 1``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from trainmedic.kb.frameworks.book import Entry
from trainmedic.kb.frameworks.profiles import Declaration
from trainmedic.kb.sources.shapes import argparse_options, class_options, with_aliases
from trainmedic.kb.sources.syntax import Modules
from trainmedic.kb.sources.tree import SourceTree


def declared(tree: SourceTree, each: Declaration) -> Iterator[tuple[str, dict[str, Entry]]]:
    """The flags of a server, and the fields of its class, which trainers pass as keywords; fields of classes that are
    ``within`` are that class's too."""
    sources = Modules.matching(tree, *each.files)
    server, name = each.names
    annotated = class_options(sources, name)
    for path, node in sources.classes.values():
        if re.fullmatch(each.within, path):
            annotated.update(class_options(sources, node.name))
    fields: dict[str, Entry] = {}
    flags: dict[str, Entry] = {}
    for option, entry in annotated.items():
        kind, declaration = _unwrapped(str(entry["type"]))
        if declaration is None or _called(declaration) != "Derived":
            fields[option] = {**entry, "type": kind}
        if declaration is not None and _called(declaration) != "Derived":
            flags.update(_flag(option, fields[option], declaration))
    for path in sources.modules:
        flags.update(with_aliases(argparse_options(sources, path)))
    yield server, _plain(flags)
    yield name, fields


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
