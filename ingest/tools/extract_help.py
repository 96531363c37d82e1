"""What a framework's own source says of its options, read statically: docstrings, ``help=``, comments of YAML files.

``python -m trainmedic.ingest.tools.extract_help --checkout DIR --framework trl --tag v1.9.0`` writes
``kb/frameworks/<framework>/help.json``; ``--wheel FILE`` instead of checkout and tag reads a package. Only options of
the catalogue are kept, in their first sentences.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainmedic.ingest.tools.extract import DATA, release_of
from trainmedic.ingest.tools.extract_source import GitTree, WheelTree
from trainmedic.kb.frameworks.tables import table
from trainmedic.kb.sentences import sentences

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


def told(tree: GitTree) -> Iterator[Told]:
    for path in tree.paths:
        if LEFT_OUT.search(path):
            continue
        if path.endswith(".py"):
            try:
                module = ast.parse(tree.text(path))
            except SyntaxError:
                continue
            yield from _python(module)
        elif path.endswith((".yaml", ".yml")) and "/config" in path:
            yield from _yaml(tree.text(path), path)


def _python(module: ast.Module) -> Iterator[Told]:
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield from ((name, node.name, text) for name, text in _docstring(ast.get_docstring(node) or ""))
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.value is not None:
                    yield field.target.id, node.name, _described(field.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            flags = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            for flag in flags:
                if flag.startswith("--"):
                    yield flag.removeprefix("--"), "", _described(node)


def _described(value: ast.expr) -> str:
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


def help_texts(tree: GitTree, framework: str) -> dict[str, dict[str, str]]:
    """Option → class → text; where all classes say the same, under the empty name."""
    catalog = table(framework)
    assert catalog is not None
    endings: dict[str, list[str]] = defaultdict(list)
    for name in catalog.names:
        parts = name.replace("-", "_").split(".")
        for start in range(len(parts) - 1):
            endings[".".join(parts[start:])].append(name)
    plain = {name.replace("-", "_"): name for name in catalog.names}
    owners = {name for group in catalog.owner_sets for name in group}
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


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trainmedic.ingest.tools.extract_help", description=__doc__)
    parser.add_argument("--checkout", type=Path, help="a git checkout or git directory of the framework")
    parser.add_argument("--wheel", type=Path, help="a wheel of the framework, instead of a checkout and a tag")
    parser.add_argument("--framework", required=True)
    parser.add_argument("--tag", help="the release tag to read")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the catalogue files")
    args = parser.parse_args(argv)
    if not (args.wheel or (args.checkout and args.tag)):
        parser.error("give --checkout and --tag, or --wheel")
    tree = WheelTree(args.wheel) if args.wheel else GitTree(args.checkout, args.tag)
    texts = help_texts(tree, args.framework)
    lines = [f"{json.dumps(name)}: {json.dumps(text, ensure_ascii=False)}" for name, text in texts.items()]
    body = ",\n".join(lines)
    content = f'{{"release": {json.dumps(release_of(tree.tag))}, "options": {{\n{body}\n}}}}\n'
    (args.data / args.framework / "help.json").write_text(content, encoding="utf-8")
    sys.stdout.write(f"{len(texts)} options\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
