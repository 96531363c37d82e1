"""Python as events: calls and assignments in the order written, each with the loops, tests and contexts around it.

Names stand for what they hold: ``self.optimizer`` and ``optimizer`` are names alike. What a call of a function of the
same text does is found by following it, three calls deep.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from trainmedic.kb.lazy import regex

_DEEPEST = 3
_OPTIMIZER = regex(r"(?:\w*Adam\w*|SGD\w*|Lion\w*|Adafactor|Muon|RMSprop|LBFGS|Adagrad|Shampoo|SOAP|Sophia\w*)\Z")
_LOADER = regex(r"loader|dataloader|batches|_dl\Z|\bdl\Z|dataset|iterator", 2)  # 2: case is ignored

Loop: TypeAlias = ast.For | ast.While | ast.AsyncFor


@dataclass(frozen=True, slots=True)
class Guard:
    """A test under which something runs; ``holds`` is False in the ``else`` branch."""

    test: ast.expr
    holds: bool


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One call or assignment. ``contexts`` are what the ``with`` statements around it enter."""

    node: ast.Call | ast.Assign | ast.AugAssign
    scope: str
    at: int
    loops: tuple[Loop, ...] = ()
    guards: tuple[Guard, ...] = ()
    contexts: tuple[ast.expr, ...] = ()

    @property
    def name(self) -> str:
        """The called name as written, ``""`` for an assignment."""
        return dotted(self.node.func) if isinstance(self.node, ast.Call) else ""

    @property
    def tail(self) -> str:
        """The last part of the called name."""
        return last_part(self.node.func) if isinstance(self.node, ast.Call) else ""

    @property
    def receiver(self) -> ast.expr | None:
        """The object that the method is called on."""
        func = self.node.func if isinstance(self.node, ast.Call) else None
        return func.value if isinstance(func, ast.Attribute) else None


def exclude_each_other(one: Event, other: Event) -> bool:
    """Whether two events stand in different branches of one test."""
    return any(a.test is b.test and a.holds != b.holds for a in one.guards for b in other.guards)


def dotted(node: ast.AST | None, *, of_value: bool = False) -> str:
    """``torch.optim.AdamW`` of a chain of names, else ``""``; ``of_value``: of ``get_model().train`` what has names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif not of_value:
        return ""
    return ".".join(reversed(parts))


def last_part(node: ast.AST) -> str:
    """The last part of a name, whatever it is an attribute of."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def names_in(node: ast.AST) -> set[str]:
    """The dotted names that an expression reads, and their beginnings."""
    return {name for part in ast.walk(node) if (name := dotted(part))}


def words_in(node: ast.AST) -> set[str]:
    """The parts of all names of an expression, and its string constants."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            found.add(part.value)
    return found


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((word.value for word in call.keywords if word.arg == name), None)


def mentions(words: Iterable[str], *parts: str) -> bool:
    """Whether one of these words has one of the parts in it, in upper or lower case."""
    return any(part in word.lower() for word in words for part in parts)


def is_constant(node: ast.AST | None, value: object) -> bool:
    """Whether an expression is this very constant."""
    return isinstance(node, ast.Constant) and node.value is value


def targets(node: ast.Call | ast.Assign | ast.AugAssign) -> list[str]:
    """The names that an assignment binds, in order."""
    found: list[ast.expr] = []
    for target in [node.target] if isinstance(node, ast.AugAssign) else getattr(node, "targets", []):
        found += target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return [dotted(target) for target in found]


@dataclass
class _Collector:
    """Walks a text once. Functions and classes are scopes of their own."""

    events: list[Event] = field(default_factory=list)
    functions: dict[str, list[str]] = field(default_factory=dict)
    numbered: int = 0

    def body(self, nodes: list[ast.stmt], around: Event) -> None:
        """Statements in order. What follows ``if x: continue`` runs only where x does not hold."""
        for node in nodes:
            self.statement(node, around)
            if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Continue | ast.Return):
                around = replace(around, guards=(*around.guards, Guard(node.test, False)))

    def statement(self, node: ast.stmt, around: Event) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.definition(node, around)
            case ast.For() | ast.AsyncFor():
                self.expression(node.iter, around)
                self.body(node.body, replace(around, loops=(*around.loops, node)))
                self.body(node.orelse, around)
            case ast.While():
                inner = replace(around, loops=(*around.loops, node))
                self.expression(node.test, inner)
                self.body(node.body, inner)
            case ast.If():
                self.expression(node.test, around)
                self.body(node.body, replace(around, guards=(*around.guards, Guard(node.test, True))))
                self.body(node.orelse, replace(around, guards=(*around.guards, Guard(node.test, False))))
            case ast.With() | ast.AsyncWith():
                entered = tuple(item.context_expr for item in node.items)
                for item in entered:
                    self.expression(item, around)
                self.body(node.body, replace(around, contexts=(*around.contexts, *entered)))
            case ast.Try():
                for block in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                    self.body(block, around)
            case ast.AnnAssign(value=ast.expr() as value):
                self.expression(value, around)
                self.add(ast.copy_location(ast.Assign(targets=[node.target], value=value), node), around)
            case ast.Assign() | ast.AugAssign():
                self.expression(node.value, around)
                self.add(node, around)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.expression(child, around)

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, around: Event) -> None:
        self.numbered += 1
        scope = f"{around.scope}/{node.name}:{self.numbered}"
        if not isinstance(node, ast.ClassDef):
            self.functions.setdefault(node.name, []).append(scope)
        contexts = () if isinstance(node, ast.ClassDef) else tuple(node.decorator_list)
        self.body(node.body, Event(around.node, scope, around.at, contexts=contexts))

    def expression(self, node: ast.AST, around: Event) -> None:
        """The calls of an expression, inner ones first."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr | ast.keyword | ast.comprehension):
                self.expression(child, around)
        if isinstance(node, ast.Call):
            self.add(node, around)

    def add(self, node: ast.Call | ast.Assign | ast.AugAssign, around: Event) -> None:
        self.events.append(replace(around, node=node, at=len(self.events)))


class Program:
    """One text with its events. ``whole``: nothing of it is left out, so that what is absent is known to be."""

    def __init__(self, tree: ast.Module, *, whole: bool) -> None:
        collector = _Collector()
        nowhere = Event(ast.Assign(targets=[], value=ast.Constant(None)), "", 0)
        collector.body(tree.body, nowhere)
        self.tree = tree
        self._within: dict[int, list[Event]] = {}
        self.events = collector.events
        self.functions = collector.functions
        self.whole = whole and not any(
            isinstance(node, ast.Expr) and is_constant(node.value, Ellipsis) for node in ast.walk(tree)
        )

    @cached_property
    def tails(self) -> frozenset[str]:
        """The last parts of all names that are called."""
        return frozenset(event.tail for event in self.events)

    @cached_property
    def words(self) -> frozenset[str]:
        """The parts of all names, imports among them, and all string constants."""
        found = words_in(self.tree)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.alias):
                found.update(node.name.split("."))
            elif isinstance(node, ast.arg | ast.keyword) and node.arg:
                found.add(node.arg)
        return frozenset(found)

    def calls(self, *tails: str) -> Iterator[Event]:
        """The calls whose name ends in one of these."""
        return (event for event in self.events if event.tail in tails)

    @cached_property
    def assignments(self) -> Mapping[str, list[Event]]:
        """The events that bind each name, in order."""
        found: dict[str, list[Event]] = {}
        for event in self.events:
            for name in filter(None, targets(event.node)):
                found.setdefault(name, []).append(event)
        return found

    def assigned(self, name: str, before: Event | None = None) -> Event | None:
        """The last assignment of a name in the scope of ``before`` ahead of it; without one, the last in the text."""
        found = reversed(self.assignments.get(name, ()))
        if before is None:
            return next(found, None)
        return next((event for event in found if event.at < before.at and event.scope == before.scope), None)

    def value(self, name: str, before: Event | None = None) -> ast.expr | None:
        """The expression that `assigned` gives the name, if it is its only target."""
        event = self.assigned(name, before)
        if event is None or not isinstance(event.node, ast.Assign) or len(targets(event.node)) != 1:
            return None
        return event.node.value

    def within(self, loop: Loop) -> list[Event]:
        """The events of a loop, and those of the functions of this text that it calls, in order."""
        found = self._within.get(id(loop))
        if found is None:
            found = self._within[id(loop)] = self.followed(event for event in self.events if loop in event.loops)
        return found

    def followed(self, events: Iterable[Event]) -> list[Event]:
        """Events with those of the functions of this text that they call, in order; each at its first call."""
        return list(self._followed(events, {}, 1))

    def _followed(self, events: Iterable[Event], calls: dict[str, int], depth: int) -> Iterator[Event]:
        """``calls``: how many calls deep each function was come to. It is followed again only in fewer of them."""
        for event in events:
            yield event
            if event.tail in self.functions and depth < calls.get(event.tail, _DEEPEST + 1):
                calls[event.tail] = depth
                for scope in self.functions[event.tail]:
                    yield from self._followed(self.scopes.get(scope, ()), calls, depth + 1)

    @cached_property
    def scopes(self) -> Mapping[str, list[Event]]:
        """The events of each scope, in order."""
        found: dict[str, list[Event]] = {}
        for event in self.events:
            found.setdefault(event.scope, []).append(event)
        return found

    @cached_property
    def training(self) -> list[Loop]:
        """The loops that hold a backward pass, outermost first."""
        loops = dict.fromkeys(loop for event in self.events for loop in event.loops)
        return [loop for loop in loops if any(map(is_backward, self.within(loop)))]

    @cached_property
    def outermost(self) -> list[Loop]:
        """The `training` loops that stand in no other one."""
        inner = {loop for other in self.training for loop in _loops_in(other)}
        return [loop for loop in self.training if loop not in inner]

    @cached_property
    def steps(self) -> list[tuple[Loop, list[Event]]]:
        """The innermost of the `training` loops, each turn of which is a micro batch, with what is `within` them."""
        inner = [loop for loop in self.training if not any(other in self.training for other in _loops_in(loop))]
        return [(loop, self.within(loop)) for loop in inner]

    @cached_property
    def made(self) -> list[tuple[str, Event, ast.Call]]:
        """(name, assignment, call) of everything that a call makes and a single name holds."""
        found = []
        for event in self.events:
            match event.node:
                case ast.Assign(value=ast.Call() as call) if len(names := targets(event.node)) == 1:
                    found.append((names[0], event, call))
        return found

    @cached_property
    def optimizers(self) -> list[tuple[str, Event, ast.Call]]:
        """Those of `made` that are optimizers."""
        return [each for each in self.made if _OPTIMIZER.match(last_part(each[2].func))]


def _loops_in(loop: Loop) -> Iterator[Loop]:
    for node in ast.walk(loop):
        if isinstance(node, ast.For | ast.While | ast.AsyncFor) and node is not loop:
            yield node


def is_backward(event: Event) -> bool:
    """``loss.backward()``, ``accelerator.backward(loss)``, ``engine.backward(loss)``, ``manual_backward(loss)``."""
    return event.tail in ("backward", "manual_backward") and "autograd" not in event.name


def loss_of(event: Event) -> ast.expr | None:
    """The expression from which a backward pass starts, without the scaling around it."""
    assert isinstance(event.node, ast.Call)
    loss = event.node.args[0] if event.node.args else event.receiver
    if isinstance(loss, ast.Call) and last_part(loss.func) in ("scale", "scale_loss") and loss.args:
        loss = loss.args[0]
    return loss


def iterates_data(loop: Loop) -> bool:
    """Whether a loop runs over batches, as its iterable is called."""
    return isinstance(loop, ast.For | ast.AsyncFor) and any(map(_LOADER.search, words_in(loop.iter)))


Flaws: TypeAlias = Iterator[tuple[ast.AST, ...]]
Check: TypeAlias = Callable[[Program], Flaws]
