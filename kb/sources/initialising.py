"""Field values after a configuration class is initialised, traced without running anything.

``__post_init__`` is read statement by statement over known values. Where a condition or a value needs more than these
(hardware, the environment, other code) both ways are followed, and a field on which they differ is not known.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from trainmedic.kb.errors import NotFound
from trainmedic.kb.sources.classes import Lookup
from trainmedic.kb.sources.syntax import Modules, joined, last_name
from trainmedic.kb.sources.tree import SourceTree

UNKNOWN: Final = object()
_DEEPEST = 8
"""Methods that call one another."""
_MOST_STEPS, _MOST_ITEMS = 20_000, 100
COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: lambda left, right: left is right if left is None or right is None else left == right,
    ast.IsNot: lambda left, right: left is not right if left is None or right is None else left != right,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: lambda left, right: operator.mul(*_numbers(left, right)),
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: lambda left, right: operator.mod(*_numbers(left, right)),
}
_BUILTINS: Mapping[str, Callable[..., Any]] = {
    **{"len": len, "str": str, "int": int, "float": float, "bool": bool, "list": list, "max": max, "min": min},
    **{"dict": dict, "set": list, "tuple": list, "any": any, "all": all, "abs": abs},
}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **{"str": str, "int": int, "float": float, "bool": bool, "list": list, "tuple": list, "dict": dict},
}
_METHODS = ("lower", "upper", "strip", "startswith", "endswith", "split", "replace", "get", "keys", "removeprefix")
_CHANGES = ("append", "extend", "update", "pop", "insert", "remove", "setdefault", "clear", "add")
_HARMLESS = ("isinstance", "getattr", "hasattr", "type", "fields", "asdict", "trainer_config_process", "vars", "repr")
"""Functions that may be handed the object and leave its fields as they are."""


def initialised(
    name: str, tree: SourceTree, *others: SourceTree, values: Mapping[str, Any]
) -> dict[str, tuple[bool, Any, str]]:
    """Field → (whether its value is known, the value, the place), for the fields that ``__post_init__`` sets.

    ``values`` are those given and the defaults; a field without one is not known. Raises `NotFound` if the class, or
    the base whose ``__post_init__`` it calls, is in none of the packages.
    """
    lookup = Lookup((tree, *others))
    lineage = lookup.lineage(*lookup.named(name, tree))
    modules = Modules(joined(tree, *others), lookup.around({path for path, _ in lineage}))
    run = _Run(lookup=lookup, modules=modules, lineage=list(reversed(lineage)), fields=dict(values))
    try:
        run.method("__post_init__", 0, 0)
    except _Stopped:  # it refuses these values
        return {}
    return {key: (run.fields[key] is not UNKNOWN, run.fields[key], where) for key, where in run.places.items()}


class _Stopped(Exception):
    """What follows is not reached: the object is not made."""


class _Returned(Exception):
    """The method ends here."""


@dataclass(slots=True, kw_only=True)
class _Run:
    """``lineage`` is in the order of attribute lookup; ``places`` says where a field was last set."""

    lookup: Lookup
    modules: Modules
    lineage: Sequence[tuple[str, ast.ClassDef]]
    fields: dict[str, Any]
    places: dict[str, str] = field(default_factory=dict)
    steps: int = 0

    def method(self, name: str, start: int, depth: int) -> bool:
        """Follow a method of the first class from ``start`` on that has it; whether one has."""
        for index in range(start, len(self.lineage)):
            path, owner = self.lineage[index]
            node = next((each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name == name), None)
            if node is not None:
                frame = _Frame(run=self, path=path, index=index, depth=depth, label=f"{owner.name}.{name} ({path}")
                frame.whole(node.body)
                return True
        return False

    def complete(self) -> bool:
        """Whether every base of the classes is at hand."""
        known = {node.name for _, node in self.lineage} | {"object", "ABC", "Generic", "Protocol"}
        return all(last_name(base) in known for _, node in self.lineage for base in node.bases)

    def forget(self, where: str, code: ast.AST | None = None) -> None:
        """The fields that this code may set, all of them where it does not say which, are not known any more."""
        names = None if code is None else _set_in(code)
        for name in sorted(self.fields if names is None else names):
            self.fields[name] = UNKNOWN
            self.places[name] = where


@dataclass(slots=True, kw_only=True)
class _Frame:
    """One method on its way."""

    run: _Run
    path: str
    index: int
    depth: int
    label: str
    locals: dict[str, Any] = field(default_factory=dict)
    returned: list[dict[str, Any]] = field(default_factory=list)
    """The fields as they may be where the method ends early."""

    # --- statements -------------------------------------------------------------------------------------------------

    def whole(self, statements: Sequence[ast.stmt]) -> None:
        try:
            self.block(statements)
        except _Returned:
            pass
        except _Stopped:
            if not self.returned:
                raise
            self.run.fields = self.returned.pop()
        self.run.fields = _merged([self.run.fields, *self.returned])

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.run.steps += 1
            if self.run.steps > _MOST_STEPS:
                raise NotFound("the code of the class is too long to be followed")
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.If():
                self.branches(self.truth(node.test), node.body, node.orelse)
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self.assign(target, value, node)
            case ast.AnnAssign(value=ast.expr() as given):
                self.assign(node.target, self.value(given), node)
            case ast.AugAssign():
                self.assign(node.target, self.arithmetic(node.op, node.target, node.value), node)
            case ast.Expr(value=ast.Call() as call):
                self.call(call)
            case ast.Expr():
                self.value(node.value)
            case ast.For():
                self.loop(node)
            case ast.While():
                self.maybe(node.body, node)
            case ast.With():
                self.block(node.body)
            case ast.Try():
                self.attempt(node)
            case ast.Return():
                if isinstance(node.value, ast.Call):
                    self.call(node.value)
                raise _Returned
            case ast.Raise():
                raise _Stopped

    def branches(self, known: bool | None, body: Sequence[ast.stmt], other: Sequence[ast.stmt]) -> None:
        if known is not None:
            self.block(body if known else other)
            return
        before = dict(self.run.fields), dict(self.locals)
        ends = []
        for way in (body, other):
            self.run.fields, self.locals = dict(before[0]), dict(before[1])
            stopped: BaseException | None = None
            try:
                self.block(way)
            except (_Stopped, _Returned) as reached:
                stopped = reached
            ends.append((stopped, self.run.fields, self.locals))
        going = [end for end in ends if end[0] is None]
        returned = [end for end in ends if isinstance(end[0], _Returned)]
        if not going and not returned:
            raise _Stopped
        if not going:
            self.run.fields = _merged([end[1] for end in returned])
            raise _Returned
        self.returned += [end[1] for end in returned]
        self.run.fields = _merged([end[1] for end in going])
        self.locals = _merged([end[2] for end in going])

    def maybe(self, body: Sequence[ast.stmt], node: ast.stmt) -> None:
        """Statements that run never, once or often."""
        self.forget_set_in(ast.Module(list(body), []), node)

    def attempt(self, node: ast.Try) -> None:
        try:
            self.block([*node.body, *node.orelse])
        except _Stopped:
            self.forget_set_in(node, node)
        for handler in node.handlers:
            self.maybe(handler.body, node)
        self.block(node.finalbody)

    def loop(self, node: ast.For) -> None:
        items = self.value(node.iter)
        jumps = any(isinstance(each, ast.Break | ast.Continue) for each in ast.walk(node))
        if not isinstance(items, list) or len(items) > _MOST_ITEMS or jumps:
            self.maybe(node.body, node)
            return
        for item in items:
            self.assign(node.target, item, node)
            self.block(node.body)

    def forget_set_in(self, tree: ast.AST, node: ast.stmt) -> None:
        self.run.forget(self.where(node), tree)
        for child in ast.walk(tree):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                self.locals[child.id] = UNKNOWN

    def assign(self, target: ast.expr, value: Any, node: ast.stmt) -> None:
        match target:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                self.put(name, value, node)
            case ast.Name(id=name):
                self.locals[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                fits = isinstance(value, list) and len(value) == len(parts)
                for index, part in enumerate(parts):
                    self.assign(part, value[index] if fits else UNKNOWN, node)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                self.put(name, UNKNOWN, node)

    def put(self, name: str, value: Any, node: ast.AST) -> None:
        self.run.fields[name] = value
        self.run.places[name] = self.where(node)

    def where(self, node: ast.AST) -> str:
        return f"{self.label}:{getattr(node, 'lineno', 0)})"

    def call(self, node: ast.Call) -> None:
        """A call for what it does."""
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name):
                if not self.run.method(name, self.index + 1, self.depth) and not self.run.complete():
                    raise NotFound(f"{self.label} calls a base that is not at hand")
            case ast.Attribute(value=ast.Name(id=owner), attr="__post_init__" as name) if owner != "self":
                at = [n for n, (_, each) in enumerate(self.run.lineage) if each.name == owner]
                if not at or not self.run.method(name, at[0], self.depth + 1):
                    raise NotFound(f"{self.label} calls a base that is not at hand")
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if self.depth < _DEEPEST:
                self.own(name, node)
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=name), attr=change):
                if change in _CHANGES:
                    self.put(name, UNKNOWN, node)
            case ast.Name(id="setattr") if len(node.args) == 3 and _is_self(node.args[0]):
                name = self.value(node.args[1])
                if isinstance(name, str):
                    self.put(name, self.value(node.args[2]), node)
                else:
                    self.run.forget(self.where(node))
            case _:
                self.value(node)

    def own(self, name: str, node: ast.Call) -> None:
        """A method of the object: followed if it takes nothing, else what it may set is not known."""
        methods = [each for _, owner in self.run.lineage for each in owner.body if getattr(each, "name", "") == name]
        if methods and not node.args and not node.keywords:
            self.run.method(name, 0, self.depth + 1)
        elif methods:
            self.reached(name, node, set())

    def reached(self, name: str, node: ast.AST, seen: set[str]) -> bool:
        """Whether this is a method or property; what it may set, by others too, is not known any more."""
        for _, owner in self.run.lineage:
            for method in owner.body:
                if isinstance(method, ast.FunctionDef) and method.name == name and name not in seen:
                    seen.add(name)
                    self.run.forget(self.where(node), method)
                    for each in ast.walk(method):
                        if isinstance(each, ast.Attribute) and _is_self(each.value):
                            self.reached(each.attr, node, seen)
        return name in seen

    # --- values -----------------------------------------------------------------------------------------------------

    def truth(self, node: ast.expr) -> bool | None:
        """Kleene's: None if it is not known."""
        match node:
            case ast.BoolOp(op=ast.And()):
                parts = [self.truth(each) for each in node.values]
                return False if False in parts else None if None in parts else True
            case ast.BoolOp(op=ast.Or()):
                parts = [self.truth(each) for each in node.values]
                return True if True in parts else None if None in parts else False
            case ast.UnaryOp(op=ast.Not()):
                inner = self.truth(node.operand)
                return None if inner is None else not inner
            case _:
                value = self.value(node)
                return None if value is UNKNOWN else bool(value)

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.List() | ast.Tuple() | ast.Set():
                parts = [self.value(each) for each in node.elts]
                return UNKNOWN if any(part is UNKNOWN for part in parts) else parts
            case ast.Name(id=name):
                return self.locals[name] if name in self.locals else self.static(node)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return UNKNOWN if self.reached(name, node, set()) else self.field(name)
            case ast.Attribute(attr="value", value=inner) if isinstance(self.value(inner), str):
                return self.value(inner)
            case ast.Attribute(value=ast.Attribute() as inner):
                self.value(inner)  # a property may set fields
                return self.static(node)
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self.logical(node)
            case ast.UnaryOp(op=ast.USub()):
                inner = self.value(node.operand)
                return -inner if isinstance(inner, int | float) else UNKNOWN
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.compared(op, self.value(left), self.value(right))
            case ast.BinOp():
                return self.arithmetic(node.op, node.left, node.right)
            case ast.Call():
                return self.called(node)
            case _:
                return self.composed(node)

    def composed(self, node: ast.expr) -> Any:
        match node:
            case ast.IfExp():
                known = self.truth(node.test)
                if known is None:
                    return _one([self.value(node.body), self.value(node.orelse)])
                return self.value(node.body if known else node.orelse)
            case ast.ListComp(elt=element, generators=[ast.comprehension(ifs=[]) as each]):
                return self.listed(element, each)
            case ast.Subscript(value=inner, slice=index):
                return _attempt(operator.getitem, self.value(inner), self.value(index))
            case _:
                return self.static(node)

    def static(self, node: ast.expr) -> Any:
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                at = [n for n, (_, each) in enumerate(self.run.lineage) if each.name == owner and n > self.index]
                if at:
                    return self.of_class(name, at[0])
        value = self.run.modules.value(node, self.path)
        return UNKNOWN if isinstance(value, dict) and "$expr" in value else value

    def field(self, name: str) -> Any:
        return self.run.fields[name] if name in self.run.fields else self.of_class(name, 0)

    def of_class(self, name: str, start: int) -> Any:
        """The value that the first class from ``start`` on assigns to a name in its body."""
        for index, (path, owner) in list(enumerate(self.run.lineage))[start:]:
            for statement in owner.body:
                match statement:
                    case (
                        ast.Assign(targets=[ast.Name(id=key)], value=value)
                        | ast.AnnAssign(target=ast.Name(id=key), value=ast.expr() as value)
                    ) if key == name:
                        return replace(self, path=path, index=index, locals={}).value(value)
        return UNKNOWN

    def logical(self, node: ast.expr) -> Any:
        """``a or b`` has the value of one of them."""
        if isinstance(node, ast.BoolOp):
            stops = isinstance(node.op, ast.Or)
            for each in node.values:
                value = self.value(each)
                if value is UNKNOWN:
                    known = self.truth(node)
                    return known if known is not None and not stops else UNKNOWN
                if bool(value) is stops or each is node.values[-1]:
                    return value
        known = self.truth(node)
        return UNKNOWN if known is None else known

    def compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        return _attempt(COMPARED[type(op)], left, right)

    def arithmetic(self, op: ast.operator, left: ast.expr, right: ast.expr) -> Any:
        action = _ARITHMETIC.get(type(op))
        if action is None:
            return UNKNOWN
        return _attempt(action, self.value(left), self.value(right))

    def listed(self, element: ast.expr, each: ast.comprehension) -> Any:
        items = self.value(each.iter)
        if not isinstance(items, list) or not isinstance(each.target, ast.Name):
            return UNKNOWN
        found = []
        for item in items:
            self.locals[each.target.id] = item
            found.append(self.value(element))
        return UNKNOWN if any(part is UNKNOWN for part in found) else found

    def called(self, node: ast.Call) -> Any:
        """A call for its value. One that is handed the object may set any field."""
        name = last_name(node.func)
        if any(_is_self(each) for each in node.args) and name not in _HARMLESS:
            self.run.forget(self.where(node))
            return UNKNOWN
        if node.keywords:
            return UNKNOWN
        match node.func, node.args:
            case ast.Name(id="isinstance"), [item, kinds]:
                return self.is_a(self.value(item), kinds)
            case ast.Name(id="getattr"), [ast.Name(id="self"), key, *_]:
                wanted = self.value(key)
                return self.field(wanted) if isinstance(wanted, str) else UNKNOWN
            case ast.Name(id=kind), [item] if self.run.modules.is_enum(kind):
                return self.value(item)
            case ast.Name(id=builtin), arguments if builtin in _BUILTINS:
                return _attempt(_BUILTINS[builtin], *map(self.value, arguments))
            case ast.Attribute(attr="expanduser"), [item]:
                text = self.value(item)
                return text if isinstance(text, str) and not text.startswith("~") else UNKNOWN
            case ast.Attribute(value=ast.Name(id="self")), _:
                self.own(name, node)
                return UNKNOWN
            case ast.Attribute(value=inner, attr=method), arguments if method in _METHODS:
                owner = self.value(inner)
                if isinstance(owner, str | dict):
                    return _attempt(lambda *given: getattr(owner, method)(*given), *map(self.value, arguments))
        return UNKNOWN

    def is_a(self, value: Any, kinds: ast.expr) -> Any:
        names = [last_name(each) for each in (kinds.elts if isinstance(kinds, ast.Tuple) else [kinds])]
        if value is UNKNOWN:
            return UNKNOWN
        if value is None:
            return "NoneType" in names
        if any(name in _TYPES and isinstance(value, _TYPES[name]) for name in names):
            return True
        return False if all(name in _TYPES for name in names) else UNKNOWN


def _attempt(action: Callable[..., Any], *values: Any) -> Any:
    if any(value is UNKNOWN for value in values):
        return UNKNOWN
    try:
        result = action(*values)
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
        return UNKNOWN
    return UNKNOWN if isinstance(result, str | list) and len(result) > 10_000 else result


def _numbers(*values: Any) -> tuple[Any, ...]:
    """Raises `TypeError` for texts and lists: by a number that a stranger wrote they become as long as he likes."""
    if not all(isinstance(value, int | float) for value in values):
        raise TypeError("not numbers")
    return values


def _one(values: Sequence[Any]) -> Any:
    """The value that all have; a switch and a number are never the same."""
    first = values[0]
    return first if all(type(each) is type(first) and each == first for each in values) else UNKNOWN


def _merged(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(name for state in states for name in state)
    return {name: _one([state.get(name, UNKNOWN) for state in states]) for name in names}


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _set_in(tree: ast.AST) -> set[str] | None:
    """The fields that a stretch of code sets; None if it does not say which."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=name), attr=change)):
                found.update([name] if change in _CHANGES else ())
            case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id="self"), ast.Constant(value=str(name)), _]):
                found.add(name)
            case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id="self"), *_]):
                return None
    return found
