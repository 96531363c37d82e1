"""A configuration class with what it inherits, across packages, and the programs that read such classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TypeAlias

from trainmedic.kb.errors import NotFound
from trainmedic.kb.frameworks.book import Entry
from trainmedic.kb.sources.help import described
from trainmedic.kb.sources.shapes import field_of
from trainmedic.kb.sources.syntax import Modules, joined, last_name, module_of
from trainmedic.kb.sources.tree import SourceTree

_Lineage: TypeAlias = list[tuple[str, ast.ClassDef]]
_DEEPEST = 6
"""Modules that hand a name on before the one that defines it."""
_PARSERS: Mapping[str, str] = {
    **{"ArgumentParser": "argparse", "HfArgumentParser": "HfArgumentParser", "TrlParser": "HfArgumentParser"},
    **{"hydra.main": "hydra", "cyclopts.App": "cyclopts", "App": "cyclopts", "fire.Fire": "fire"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A field of a class: the class that declares it, and where. ``entry`` has its type, default and choices."""

    name: str
    entry: Entry
    help: str
    owner: str
    package: str
    version: str
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A parser in a module: of which kind, and the classes or the configuration that it reads."""

    path: str
    line: int
    kind: str
    reads: tuple[str, ...] = ()


def options_of(name: str, tree: SourceTree, *others: SourceTree) -> dict[str, Option]:
    """The fields of a class as it accepts them, those of its bases in ``others`` included. Raises `NotFound`.

    What a class declares again replaces what it inherits, and keeps its place.
    """
    lookup = Lookup((tree, *others))
    lineage = lookup.lineage(*lookup.named(name, tree))
    modules = Modules(joined(tree, *others), lookup.around({path for path, _ in lineage}))
    found: dict[str, Option] = {}
    for path, node in lineage:
        home = lookup.home(path)
        for statement in node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=key), annotation=kind) if not (
                    key.startswith("_") or "ClassVar" in ast.unparse(kind)
                ):
                    found[key] = Option(
                        name=key,
                        entry=field_of(modules, path, statement),
                        help=described(statement.value) if statement.value is not None else "",
                        owner=node.name,
                        package=home.package,
                        version=home.version,
                        path=path,
                        line=statement.lineno,
                    )
    return found


def programs(tree: SourceTree) -> Iterator[Program]:
    """The parsers that a package makes, in the order of its files."""
    for path in tree.paths():
        text = tree.text(path) if path.endswith(".py") else ""
        if not any(name.rpartition(".")[2] in text for name in _PARSERS):
            continue
        module = module_of(text)
        assigned = {
            node.targets[0].id: node.value
            for node in ast.walk(module)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for call in ast.walk(module):
            if isinstance(call, ast.Call):
                kind = _PARSERS.get(ast.unparse(call.func)) or _PARSERS.get(last_name(call.func))
                if kind is not None:
                    yield Program(path=path, line=call.lineno, kind=kind, reads=tuple(_read_by(call, assigned)))


def _read_by(call: ast.Call, assigned: Mapping[str, ast.expr]) -> Iterator[str]:
    """The classes that a parser is made of, or the configuration that it names."""
    given = [*call.args[:1], *(each.value for each in call.keywords if each.arg in ("dataclass_types", "config_name"))]
    for node in given:
        value = assigned.get(node.id, node) if isinstance(node, ast.Name) else node
        for each in value.elts if isinstance(value, (ast.Tuple, ast.List)) else [node]:
            match each:
                case ast.Name() | ast.Attribute():
                    yield last_name(each)
                case ast.Constant(value=str() as name):
                    yield name


@dataclass(slots=True)
class Lookup:
    """Finds what the name of a class means in a module."""

    trees: Sequence[SourceTree]
    modules: dict[str, ast.Module] = field(default_factory=dict)

    def home(self, path: str) -> SourceTree:
        return next(tree for tree in self.trees if path in tree)

    def module(self, path: str) -> ast.Module:
        if path not in self.modules:
            self.modules[path] = module_of(self.home(path).text(path))
        return self.modules[path]

    def named(self, name: str, tree: SourceTree, below: str = "") -> tuple[str, ast.ClassDef]:
        """The class of this name in a package, nearest to its top. Raises `NotFound`."""
        declared = re.compile(rf"^class {re.escape(name)}\b", re.MULTILINE)
        paths = (path for path in tree.paths() if path.startswith(below) and path.endswith(".py"))
        for path in sorted(paths, key=lambda path: (path.count("/"), path)):
            if declared.search(tree.text(path)) and (node := self.defined(name, path)) is not None:
                return path, node
        raise NotFound(f"{tree.package} {tree.version} has no class {name}")

    def defined(self, name: str, path: str) -> ast.ClassDef | None:
        nodes = ast.walk(self.module(path))
        return next((node for node in nodes if isinstance(node, ast.ClassDef) and node.name == name), None)

    def meant(self, name: str, path: str, depth: int = 0) -> tuple[str, ast.ClassDef] | None:
        """The class that a module means by a name; None if it is of no package at hand."""
        node = self.defined(name, path)
        if node is not None:
            return path, node
        for target, original in self.imported(name, path):
            if target in self.paths(target) and depth < _DEEPEST:
                found = self.meant(original, target, depth + 1)
                if found is not None:
                    return found
            top = target.partition("/")[0].removesuffix(".py") + "/"
            for tree in self.trees:
                if any(each.startswith(top) for each in tree.paths()):
                    try:
                        return self.named(original, tree, top)
                    except NotFound:
                        continue
        return None

    def paths(self, target: str) -> frozenset[str]:
        return frozenset({target} if any(target in tree for tree in self.trees) else ())

    def imported(self, name: str, path: str) -> Iterator[tuple[str, str]]:
        """(module, name there) of an imported name."""
        for node in ast.walk(self.module(path)):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        yield self.target(node, path), alias.name

    def target(self, node: ast.ImportFrom, path: str) -> str:
        """The file of a module that is imported from; that of a package is its ``__init__.py``."""
        above = PurePosixPath(path).parents[node.level - 1].as_posix() if node.level else ""
        dotted = "/".join(filter(None, (above, (node.module or "").replace(".", "/"))))
        package = f"{dotted}/__init__.py"
        return package if self.paths(package) else f"{dotted}.py"

    def around(self, paths: set[str]) -> list[str]:
        """These modules and those that they import from: their constants and enumerations."""
        near = {
            self.target(node, path)
            for path in paths
            for node in ast.walk(self.module(path))
            if isinstance(node, ast.ImportFrom)
        }
        return [*sorted(paths), *sorted(each for each in near - paths if self.paths(each))]

    def lineage(
        self, path: str, node: ast.ClassDef, above: frozenset[str] = frozenset()
    ) -> list[tuple[str, ast.ClassDef]]:
        """(path, class) from the most basic known base to the class itself, as attribute lookup needs it."""
        found: _Lineage = []
        for base in reversed(node.bases):
            meant = self.meant(last_name(base), path)
            if meant is not None and meant[1].name + meant[0] not in above:
                known = {id(each) for _, each in found}
                inherited = self.lineage(*meant, above | {node.name + path})
                found += [pair for pair in inherited if id(pair[1]) not in known]
        return [*found, (path, node)]
