"""Facts about modules from their syntax alone, without importing them: classes, constants, values.

Expressions are evaluated only as far as constants, names assigned to constants, arithmetic, containers and members of
enumerations go. Everything else becomes ``{"$expr": source}``: known to be computed, not known what.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainmedic.kb.sources.tree import SourceTree, tree_digest

_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
# The source is not ours: 10**10**10 must not hang the extraction.
_LARGEST_POWER = 64


def joined(tree: SourceTree, *others: SourceTree) -> SourceTree:
    """Several packages as one, named after the first; what two of them have is that of the first."""
    if not others:
        return tree
    homes = {path: each for each in (*reversed(others), tree) for path in each.files}
    files = {path: homes[path].files[path] for path in sorted(homes)}
    return replace(tree, digest=tree_digest(files), files=files, read=lambda path: homes[path].read(path))


class Modules:
    """A set of parsed modules: their classes by name and their constants."""

    def __init__(self, tree: SourceTree, paths: Iterable[str]) -> None:
        self.modules: dict[str, ast.Module] = {}
        for path in paths:
            self.modules[path] = module_of(tree.text(path))
        self.classes: dict[str, tuple[str, ast.ClassDef]] = {}
        for path, module in self.modules.items():
            for node in ast.walk(module):
                if isinstance(node, ast.ClassDef):
                    self.classes.setdefault(node.name, (path, node))
        self._foreign = {path: _foreign(path, module) for path, module in self.modules.items()}
        self._constants: dict[str, dict[str, ast.expr]] = {
            path: _assignments(module.body) for path, module in self.modules.items()
        }
        self._shared: dict[str, ast.expr] = {}
        for table in self._constants.values():
            for name, value in table.items():
                self._shared.setdefault(name, value)

    @classmethod
    def matching(cls, tree: SourceTree, *patterns: str) -> Modules:
        return cls(tree, [path for path in tree.paths() if any(re.fullmatch(pattern, path) for pattern in patterns)])

    def value(self, node: ast.expr, path: str, depth: int = 0) -> Any:
        """The value of an expression, or ``{"$expr": …}``."""
        try:
            return self._value(node, path, depth)
        except _NotStatic:
            return {"$expr": ast.unparse(node)}

    def _value(self, node: ast.expr, path: str, depth: int) -> Any:
        # Constants that name each other would recurse for ever.
        if depth > 12:
            raise _NotStatic
        match node:
            case ast.Constant():
                if node.value is Ellipsis or isinstance(node.value, (bytes, complex)):
                    raise _NotStatic
                return node.value
            case ast.List() | ast.Tuple() | ast.Set():
                return [self._value(item, path, depth + 1) for item in node.elts]
            case ast.Dict():
                if any(key is None for key in node.keys):
                    raise _NotStatic
                return {
                    self._value(key, path, depth + 1): self._value(item, path, depth + 1)
                    for key, item in zip(node.keys, node.values, strict=True)
                    if key is not None
                }
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._value(operand, path, depth + 1)
                if not isinstance(number, (int, float)):
                    raise _NotStatic
                return -number
            case ast.BinOp():
                return self._arithmetic(node, path, depth)
            case ast.Name(id=name):
                target = self._constants.get(path, {}).get(name) or self._shared.get(name)
                if target is None:
                    raise _NotStatic
                return self._value(target, path, depth + 1)
            case ast.Attribute(value=ast.Name(id=owner), attr="value" | "name") if owner not in self.classes:
                raise _NotStatic
            case ast.Attribute(value=ast.Attribute() as inner, attr="value"):
                return self._value(inner, path, depth + 1)
            case ast.Attribute(value=ast.Name(id=owner), attr=member) if owner in self.classes:
                return self._member(owner, member, depth)
            case _:
                return self._computed(node, path, depth + 1)

    def _computed(self, node: ast.expr, path: str, depth: int) -> Any:
        """Conversions, text with values in it, and a choice between two values, over constants."""
        match node:
            case ast.Call(func=ast.Name(id="int" | "float" as kind), args=[argument], keywords=[]):
                return _converted(kind, self._value(argument, path, depth))
            case ast.Call(func=ast.Name(id=owner), args=[argument, *_]) if self._is_integer(owner):
                return _converted("int", self._value(argument, path, depth))
            case ast.JoinedStr():
                return "".join(str(self._value(part, path, depth)) for part in node.values)
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self._value(inner, path, depth)
            case ast.IfExp(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
                same = self._value(left, path, depth) == self._value(right, path, depth)
                return self._value(node.body if same else node.orelse, path, depth)
            case _:
                raise _NotStatic

    def _arithmetic(self, node: ast.BinOp, path: str, depth: int) -> Any:
        left, right = self._value(node.left, path, depth + 1), self._value(node.right, path, depth + 1)
        if isinstance(left, list) and isinstance(right, list) and isinstance(node.op, ast.Add):
            return left + right
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            raise _NotStatic
        if isinstance(node.op, ast.Pow) and abs(right) <= _LARGEST_POWER and abs(left) <= 1000:
            return left**right
        action = _ARITHMETIC.get(type(node.op))
        if action is None or (right == 0 and isinstance(node.op, (ast.Div, ast.FloorDiv))):
            raise _NotStatic
        return action(left, right)

    def _member(self, owner: str, member: str, depth: int) -> Any:
        path, node = self.classes[owner]
        table = _assignments(node.body)
        if member not in table:
            raise _NotStatic
        return self._value(table[member], path, depth + 1)

    def _is_integer(self, name: str) -> bool:
        """Whether a class of these sources is an integer that prints in its own way, as DeepSpeed has one."""
        found = self.classes.get(name)
        return found is not None and [last_name(base) for base in found[1].bases] == ["int"]

    def is_enum(self, name: str) -> bool:
        """Whether a class of these sources is an enumeration."""
        found = self.classes.get(name)
        return found is not None and any("Enum" in ast.unparse(base) for base in found[1].bases)

    def members(self, name: str) -> list[Any]:
        """An enumeration's values."""
        path, node = self.classes[name]
        values = [self.value(value, path) for key, value in _assignments(node.body).items() if not key.startswith("_")]
        return [value for value in values if not isinstance(value, dict)]

    def member_names(self, name: str) -> list[str]:
        """An enumeration's members by name, in the order of `members`."""
        path, node = self.classes[name]
        table = _assignments(node.body)
        return [key for key in table if not key.startswith("_") and not isinstance(self.value(table[key], path), dict)]

    def lineage(self, name: str) -> list[tuple[str, ast.ClassDef]]:
        """(path, class) from the most basic known base to the class itself, as attribute lookup needs it."""
        return [self.classes[each] for each in reversed(self._order(name, ()))]

    def _order(self, name: str, above: tuple[str, ...]) -> list[str]:
        """Method resolution order, near enough: the class, then its bases left to right, later repeats winning."""
        if name not in self.classes or name in above:
            return []
        order = [name]
        path, node = self.classes[name]
        for base in node.bases:
            if last_name(base) not in self._foreign[path]:
                order += self._order(last_name(base), (*above, name))
        return [each for index, each in enumerate(order) if each not in order[index + 1 :]]


def _converted(kind: str, value: Any) -> Any:
    """``int(1e8)`` and the like; an infinite number as text, which JSON can hold."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _NotStatic from None
    if math.isinf(number) or math.isnan(number):
        return str(number)
    return int(number) if kind == "int" else number


class _NotStatic(Exception):
    """The expression needs the program to run."""


def _foreign(path: str, module: ast.Module) -> frozenset[str]:
    """Names that a module imports from another project: a class of that name here is not the one it means."""
    found: set[str] = set()
    for node in ast.walk(module):
        absolute = isinstance(node, ast.ImportFrom) and not node.level
        if isinstance(node, ast.ImportFrom) and absolute and (node.module or "").split(".")[0] not in path.split("/"):
            found.update(alias.asname or alias.name for alias in node.names)
    return frozenset(found)


def module_of(text: str) -> ast.Module:
    """An empty module where the text cannot be parsed: it is for another Python, or none."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _assignments(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found
