"""Options out of the ways frameworks declare them: argparse calls, annotated classes, signatures, reads, YAML trees."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml

from trainmedic.kb.frameworks.book import Entry
from trainmedic.kb.lazy import regex
from trainmedic.kb.sources.syntax import Modules

_WRAPPERS: Mapping[str, object] = {"list": [], "dict": {}, "tuple": [], "set": []}


def argparse_options(sources: Modules, path: str, *functions: str, positional: bool = False) -> dict[str, Entry]:
    """Every long option that a module adds with ``add_argument``, in ``for`` loops over constants as well.

    ``functions`` add arguments too: ``reset_arg(parser, "--lr", default=1e-6)``.
    """
    options: dict[str, Entry] = {}
    for call in _calls(sources, path, sources.modules[path], ("add_argument", *functions)):
        words = [sources.value(arg, path) for arg in call.args]
        names = [word for word in words if isinstance(word, str)]
        long = [name[2:] for name in names if name.startswith("--")]
        long = long or [name for name in names if positional and not name.startswith("-")]
        if long:
            given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
            options[long[0]] = _argument(
                sources, path, given, [name for name in names if name not in (long[0], f"--{long[0]}")]
            )
    return options


def _calls(sources: Modules, path: str, node: ast.AST, functions: Collection[str]) -> Iterator[ast.Call]:
    """The calls of ``functions`` below a node; a loop's body once for each constant it runs over."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.For) and isinstance(child.target, ast.Name):
            values = sources.value(child.iter, path)
            if isinstance(values, list):
                for value in values:
                    # A copy, since the transformer changes the tree in place.
                    bound = _Bound(child.target.id, value)
                    for statement in child.body:
                        module = ast.Module([bound.visit(copy.deepcopy(statement))], [])
                        yield from _calls(sources, path, module, functions)
                continue
        if isinstance(child, ast.Call) and _type_name(child.func).rpartition(".")[2] in functions:
            yield child
        yield from _calls(sources, path, child, functions)


class _Bound(ast.NodeTransformer):
    """Puts a loop's value in the place of its variable."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.bound = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.copy_location(ast.Constant(self.bound), node) if node.id == self.name else node


def _argument(sources: Modules, path: str, given: Mapping[str, ast.expr], aliases: list[str]) -> Entry:
    action = sources.value(given["action"], path) if "action" in given else None
    switch = action in ("store_true", "store_false")
    kind = "flag" if switch else _type_name(given["type"]) if "type" in given else "str"
    entry: Entry = {"type": kind, "default": action == "store_false" if switch else None}
    if "default" in given:
        entry["default"] = sources.value(given["default"], path)
    elif "required" in given and sources.value(given["required"], path) is True:
        entry["default"] = "<required>"
    if "choices" in given:
        choices = sources.value(given["choices"], path)
        if isinstance(choices, list):
            entry["choices"] = choices
    if "nargs" in given:
        entry["nargs"] = sources.value(given["nargs"], path)
    if isinstance(action, str):
        entry["action"] = action
    elif action is not None:  # a class of its own, which may take a value or none
        entry.update(type=None, nargs="?")
    if aliases:
        entry["aliases"] = aliases
    return entry


def with_aliases(options: Mapping[str, Entry]) -> dict[str, Entry]:
    """The options, and each further long name of one (``--use-mcore-models``, ``--mcore-models``) as an option too."""
    complete = dict(options)
    for entry in options.values():
        for alias in entry.get("aliases", ()):
            if alias.startswith("--"):
                complete.setdefault(alias[2:], entry)
    return complete


def factory_options(sources: Modules, path: str, factory: str) -> dict[str, Entry]:
    """The options that a module makes of dataclasses with ``factory(Class, exclude=[…])``, as Megatron does.

    A field ``some_name`` becomes ``--some-name``; a flag that is on by default ``--no-…`` and ``--disable-…``.
    """
    options: dict[str, Entry] = {}
    for function in ast.walk(sources.modules[path]):
        if not isinstance(function, ast.FunctionDef):
            continue
        local = {
            node.targets[0].id: node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for call in ast.walk(function):
            if not (isinstance(call, ast.Call) and _type_name(call.func) == factory and call.args):
                continue
            words = next((keyword.value for keyword in call.keywords if keyword.arg == "exclude"), None)
            words = local.get(words.id, words) if isinstance(words, ast.Name) else words
            exclude = sources.value(words, path) if words is not None else []
            for name, entry in class_options(sources, _type_name(call.args[0])).items():
                if name not in exclude:
                    options.update(_arguments(sources, name.replace("_", "-"), entry))
    return options


def _arguments(sources: Modules, name: str, entry: Entry) -> dict[str, Entry]:
    """The arguments that a field becomes, as ``add_argument`` would have declared them."""
    names = [word.removeprefix("--") for word in entry.pop("names", ())]
    field_default, entry["default"] = entry["default"], entry.pop("argparse_default", entry["default"])
    kind = entry["type"].removeprefix("Optional[").removesuffix(" | None")
    kind = kind.removesuffix("]") if entry["type"].startswith("Optional[") else kind
    item = re.fullmatch(r"[Ll]ist\[(\w+)\]", kind)
    if item is not None:
        entry.setdefault("nargs", "+")
    if sources.is_enum(kind):
        values, entry["choices"] = sources.members(kind), sources.member_names(kind)
        entry["default"] = entry["choices"][values.index(entry["default"])] if entry["default"] in values else None
    choices = entry.get("choices")
    if isinstance(choices, list) and choices:
        kind = "int" if isinstance(choices[0], int) else "str"
    elif choices:
        del entry["choices"]  # computed when the program runs
    entry["type"] = item[1] if item is not None else kind
    if kind != "bool" or "action" in entry:
        return dict.fromkeys(names or [name], entry)
    action = "store_true" if field_default is False else "store_false"
    flag: Entry = {"type": "flag", "default": entry["default"], "action": action}
    return dict.fromkeys(names or ([name] if action == "store_true" else [f"no-{name}", f"disable-{name}"]), flag)


def _type_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)


def class_options(sources: Modules, name: str, prefix: str = "") -> dict[str, Entry]:
    """The fields of a dataclass or pydantic model, bases inside the sources included."""
    options: dict[str, Entry] = {}
    for path, node in sources.lineage(name):
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                field = statement.target.id
                annotation = ast.unparse(statement.annotation)
                if field.startswith("_") or "ClassVar" in annotation or "ConfigDict" in annotation:
                    continue
                entry = options[prefix + field] = field_of(sources, path, statement)
                for alias in entry.get("aliases", ()):
                    options[prefix + str(alias)] = {key: value for key, value in entry.items() if key != "aliases"}
    return options


def nested_options(sources: Modules, name: str, prefix: str = "", parts: str = "") -> dict[str, Entry]:
    """`class_options`; a field that holds another of these classes is the options of that one, with dots.

    ``parts`` is the regular expression of the fields for which that is done; empty: all.
    """
    options: dict[str, Entry] = {}
    for key, entry in class_options(sources, name, prefix).items():
        held = re.fullmatch(r"(?:Optional\[)?(\w+)\]?", str(entry["type"]))
        left = parts and not re.fullmatch(parts, key.rpartition(".")[2])
        if held is None or left or held[1] not in sources.classes or held[1] == name or sources.is_enum(held[1]):
            options[key] = entry
            continue
        options.update(nested_options(sources, held[1], f"{key}.", parts))
        _overwrite(options, f"{key}.", entry["default"])
    return options


def _overwrite(options: dict[str, Entry], prefix: str, default: object) -> None:
    """Defaults of ``field(default_factory=lambda: OptimizerConfig(lr=5e-6))``, which are not those of the class."""
    computed = str(default["$expr"]) if isinstance(default, dict) and "$expr" in default else ""
    for call in ast.walk(ast.parse(computed)):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            known = options.get(f"{prefix}{keyword.arg}")
            if known is not None and isinstance(keyword.value, ast.Constant):
                known["default"] = keyword.value.value


def field_of(sources: Modules, path: str, statement: ast.AnnAssign) -> Entry:
    """The field of a dataclass or pydantic model."""
    entry: Entry = {"type": ast.unparse(statement.annotation), "default": "<required>"}
    choices = _choices(sources, path, statement.annotation)
    if choices:
        entry["choices"] = choices
    value = _annotated_default(statement)
    if value is None:
        return entry
    if isinstance(value, ast.Call) and _type_name(value.func).rsplit(".", 1)[-1] in ("field", "Field", "PrivateAttr"):
        _from_field_call(sources, path, value, entry)
    else:
        entry["default"] = sources.value(value, path)
    return entry


def _annotated_default(statement: ast.AnnAssign) -> ast.expr | None:
    """The value behind ``=``, or the ``Field(...)`` inside ``Annotated[...]``."""
    if statement.value is not None:
        return statement.value
    for node in ast.walk(statement.annotation):
        if isinstance(node, ast.Call) and _type_name(node.func) == "Field":
            return node
    return None


def _from_field_call(sources: Modules, path: str, call: ast.Call, entry: Entry) -> None:
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if call.args and not (isinstance(call.args[0], ast.Constant) and call.args[0].value is Ellipsis):
        entry["default"] = sources.value(call.args[0], path)
    if "default" in given and not (isinstance(given["default"], ast.Constant) and given["default"].value is Ellipsis):
        entry["default"] = sources.value(given["default"], path)
    if "default_factory" in given:
        factory = given["default_factory"]
        if isinstance(factory, ast.Name) and factory.id in _WRAPPERS:
            entry["default"] = _WRAPPERS[factory.id]
        elif isinstance(factory, ast.Lambda):
            entry["default"] = sources.value(factory.body, path)
        else:
            entry["default"] = {"$expr": ast.unparse(factory)}
    for bound in ("ge", "le"):
        if bound in given:
            entry[bound] = sources.value(given[bound], path)
    if isinstance(given.get("alias"), ast.Constant):
        entry["aliases"] = [sources.value(given["alias"], path)]
    metadata = given.get("metadata")
    if isinstance(metadata, ast.Dict):
        for key, item in zip(metadata.keys, metadata.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "choices":
                found = sources.value(item, path)
                if isinstance(found, list):
                    entry["choices"] = found
            elif isinstance(key, ast.Constant) and key.value == "argparse_meta" and isinstance(item, ast.Dict):
                _from_argparse_keywords(sources, path, item, entry)
    if "deprecated" in given or "DEPRECATED" in ast.unparse(call)[:400].upper().split("HELP", 1)[-1][:40]:
        entry["deprecated"] = True


def _from_argparse_keywords(sources: Modules, path: str, keywords: ast.Dict, entry: Entry) -> None:
    """What a field's metadata says that ``add_argument`` takes instead of what follows from its annotation."""
    for key, item in zip(keywords.keys, keywords.values, strict=True):
        word = key.value if isinstance(key, ast.Constant) else None
        if word == "type":
            entry["type"] = _type_name(item)
        elif word == "default":
            entry["argparse_default"] = sources.value(item, path)
        elif word in ("nargs", "choices", "action"):
            entry[word] = sources.value(item, path)
        elif word == "arg_names":
            entry["names"] = sources.value(item, path)


def _choices(sources: Modules, path: str, annotation: ast.expr) -> list[Any]:
    """The words of a ``Literal`` or enumeration in an annotation."""
    # A forward reference: the annotation is a string with the expression in it.
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return []
    for node in ast.walk(annotation):
        if isinstance(node, ast.Subscript) and _type_name(node.value).rsplit(".", 1)[-1] == "Literal":
            words = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            values = [sources.value(word, path) for word in words]
            return [value for value in values if not isinstance(value, dict)]
        if isinstance(node, ast.Name) and sources.is_enum(node.id):
            return sources.members(node.id)
    return []


def lookup_options(sources: Modules, path: str, function: str) -> dict[str, Entry]:
    """Keys that a module looks up with ``function(mapping, KEY, DEFAULT)``: a configuration without a declaration."""
    options: dict[str, Entry] = {}
    for node in ast.walk(sources.modules[path]):
        if isinstance(node, ast.Call) and _type_name(node.func) == function and len(node.args) == 3:
            name, default = sources.value(node.args[1], path), sources.value(node.args[2], path)
            if isinstance(name, str) and isinstance(node.args[0], ast.Name) and node.args[0].id == "param_dict":
                known = default is None or isinstance(default, dict)
                options[name] = {"type": None if known else type(default).__name__, "default": default}
    return options


def read_options(sources: Modules, path: str, variable: str) -> dict[str, Entry]:
    """Keys that a module reads as ``cfg.name`` or ``cfg.get("name", DEFAULT)``; without a default they are required."""
    options: dict[str, Entry] = {}
    methods = set()
    for node in ast.walk(sources.modules[path]):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get") as method,
                args=[ast.Constant(value=str(key)), *rest],
            ) if name == variable:
                methods.add(method)
                default = sources.value(rest[0], path) if rest else None
                options[key] = {"type": None if default is None else type(default).__name__, "default": default}
            case ast.Attribute(value=ast.Name(id=name), attr=key) if (
                name == variable and node not in methods and key not in dir(dict)
            ):
                options.setdefault(key, {"type": None, "default": "<required>"})
    return options


def assigned_options(module: ast.Module) -> set[str]:
    """Names that a Python configuration file assigns, those inside ``dict(…)`` with dots."""
    names: set[str] = set()
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            _named(node.value, node.targets[0].id, names)
    return names


def _named(value: ast.expr, name: str, names: set[str]) -> None:
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "dict":
        for keyword in value.keywords:
            if keyword.arg is not None:
                _named(keyword.value, f"{name}.{keyword.arg}", names)
    else:
        names.add(name)


def signature_options(sources: Modules, name: str) -> dict[str, Entry]:
    """The parameters of a function, or of a class's ``__init__``, with their defaults; empty if none has this name."""
    for path, module in sources.modules.items():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                node = next((each for each in node.body if getattr(each, "name", "") == "__init__"), node)
            elif getattr(node, "name", "") != name:
                continue
            if isinstance(node, ast.FunctionDef):
                return _parameters(sources, path, node.args)
    return {}


def _parameters(sources: Modules, path: str, arguments: ast.arguments) -> dict[str, Entry]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    pairs = [*zip(positional, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return {
        each.arg: {
            "type": ast.unparse(each.annotation) if each.annotation is not None else None,
            "default": "<required>" if default is None else sources.value(default, path),
        }
        for each, default in pairs
        if each.arg != "self"
    }


# PyYAML follows YAML 1.1, where a float needs a dot.
class _Loader(yaml.SafeLoader):
    """YAML as Hydra reads it: ``1e-5`` is a number, as in YAML 1.2."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", regex(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789"))


def yaml_options(text: str) -> dict[str, Entry]:
    """The leaves of a YAML tree, flattened with dots; lists and empty mappings are leaves."""
    return leaves(yaml_tree(text))


def yaml_tree(text: str) -> dict[str, Any]:
    tree: dict[str, Any] = yaml.load(text, _Loader) or {}
    return tree


def leaves(tree: Mapping[str, Any]) -> dict[str, Entry]:
    options: dict[str, Entry] = {}
    _flatten(tree, "", options)
    return options


def _flatten(node: object, prefix: str, options: dict[str, Entry]) -> None:
    if isinstance(node, Mapping) and (node or not prefix):
        for key, value in node.items():
            if str(key) in ("_target_", "defaults", "hydra") and not (prefix and str(key) != "defaults"):
                continue
            _flatten(value, f"{prefix}.{key}" if prefix else str(key), options)
        return
    kind = None if node is None else type(node).__name__
    options[prefix] = {"type": kind, "default": node}
