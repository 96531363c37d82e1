"""Help texts of options in a framework's source: docstrings, ``help=``, comments of YAML files; first sentences."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

from trainmedic.kb.sentences import sentences
from trainmedic.kb.sources.syntax import module_of
from trainmedic.kb.sources.tree import SourceTree

MOST = 260
"""Characters of one text, or one sentence if that is longer."""
LONGEST = 500
LEFT_OUT = re.compile(r"(^|/)(tests?|examples?|docs?|benchmarks?)/")
BASES = ("Arguments", "Args", "Config", "Schema", "Mixin")
"""Ends of the names of classes from which the catalogued ones may have their options."""
_PARAMETER = re.compile(r"^(?P<indent> *)(?P<name>[a-z][\w]*) ?\((?P<type>[^\n]*)\): *(?P<text>.*)$")
_LINK = re.compile(r"\[`?~?([^\]`]+)`?\](?:\([^)]*\))?")
_DEFAULT = re.compile(r"(?:the )?defaults?\b", re.IGNORECASE)
_KEY = re.compile(r"^(?P<indent> *)(?P<name>[A-Za-z_][\w-]*):")

Told = tuple[str, str, str]
"""The option's name, the class that it belongs to (empty: a flag), and the text."""


def told(tree: SourceTree) -> Iterator[Told]:
    for path in tree.paths():
        if LEFT_OUT.search(path):
            continue
        if path.endswith(".py"):
            yield from _python(module_of(tree.text(path)))
        elif path.endswith((".yaml", ".yml")) and "/config" in path:
            yield from _yaml(tree.text(path), path)


def _python(module: ast.Module) -> Iterator[Told]:
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield from ((name, node.name, text) for name, text in _docstring(ast.get_docstring(node) or ""))
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.value is not None:
                    yield field.target.id, node.name, described(field.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            flags = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            for flag in flags:
                if flag.startswith("--"):
                    yield flag.removeprefix("--"), "", described(node)


def described(value: ast.expr) -> str:
    """The text under ``help`` or ``description`` within a field's declaration."""
    for node in ast.walk(value):
        pairs: list[tuple[object, ast.expr]] = []
        if isinstance(node, ast.keyword):
            pairs = [(node.arg, node.value)]
        elif isinstance(node, ast.Dict):
            pairs = [(_text(key), item) for key, item in zip(node.keys, node.values, strict=True)]
        for name, item in pairs:
            if name in ("help", "description") and _text(item):
                return _text(item)
    return ""


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _docstring(text: str) -> Iterator[tuple[str, str]]:
    """The parameters that a docstring describes."""
    name, indent = "", 0
    parts: list[str] = []
    for line in (*text.split("\n"), "end"):
        match = _PARAMETER.match(line)
        outside = line.strip() and len(line) - len(line.lstrip()) <= indent
        if name and (match is not None or outside or not line.strip()):
            yield name, " ".join(parts)
            name = ""
        if match is not None:
            name, indent, parts = match["name"], len(match["indent"]), [match["text"]]
        elif name:
            parts.append(line.strip())


def _yaml(text: str, path: str) -> Iterator[Told]:
    """The comments above the keys of a file, whose folder is the section that it is put into."""
    above: list[str] = []
    keys: list[tuple[int, str]] = []
    for line in text.split("\n"):
        match = _KEY.match(line)
        if line.strip().startswith("#"):
            above.append(line.strip().lstrip("# "))
        elif match is not None:
            indent = len(match["indent"])
            keys = [*((place, name) for place, name in keys if place < indent), (indent, match["name"])]
            dotted = ".".join(name for _, name in keys)
            yield f"{Path(path).parent.name}.{dotted}", "", " ".join(above)
            yield dotted, "", " ".join(above)
            above = []
        elif not line.strip():
            above = []


def short(text: str) -> str:
    """The first sentences, without links."""
    text = " ".join(_LINK.sub(lambda match: f"`{match[1]}`" if "[`" in match[0] else match[1], text).split())
    chosen = ""
    for sentence in sentences(text):
        if _DEFAULT.match(sentence):
            continue  # the catalogue knows the default of every release
        if chosen and len(chosen) + len(sentence) > MOST:
            break
        chosen = f"{chosen} {sentence}".strip()
    return chosen if len(chosen) <= LONGEST else ""


def help_texts(tree: SourceTree, names: Collection[str], owners: Collection[str]) -> dict[str, dict[str, str]]:
    """Option → class → text, of these options and classes; where all classes say the same, under the empty name."""
    endings: dict[str, list[str]] = defaultdict(list)
    for name in names:
        parts = name.replace("-", "_").split(".")
        for start in range(len(parts) - 1):
            endings[".".join(parts[start:])].append(name)
    plain = {name.replace("-", "_"): name for name in names}
    found: dict[str, dict[str, str]] = defaultdict(dict)
    inherited: dict[str, dict[str, str]] = defaultdict(dict)
    for name, owner, text in told(tree):
        spelled, words = name.replace("-", "_"), short(text)
        keys = [plain[spelled]] if spelled in plain else endings.get(spelled, []) if "." in spelled else []
        for key in keys if words else ():
            if not owner or owner in owners:
                found[key].setdefault(owner, words)
            elif owner.endswith(BASES):
                inherited[key].setdefault("", words)
    found = {**inherited, **found}
    same = {name: {"": next(iter(texts.values()))} for name, texts in found.items() if len(set(texts.values())) == 1}
    return {name: dict(sorted({**found, **same}[name].items())) for name in sorted(found)}
