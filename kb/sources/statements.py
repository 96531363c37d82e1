"""The messages in one Python source: what raises, asserts, warns or logs a problem, and under which condition.

Nothing is imported or run. A message becomes a template: literal text with holes ``{expression}``; literal braces are
doubled, and runs of white space are one space.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import TypeGuard

from trainmedic.kb.error_messages.template import split
from trainmedic.kb.sources.syntax import module_of

LEAST_LITERAL = 12
"""Literal characters that a message must have, or it would match anything."""
LEAST_IN_ASSERTION = 24
"""The same for assertions, of which most only protect the code from itself."""
MOST_TEMPLATE = 220
MOST_CONDITION = 100
MOST_HOLE = 60
_LOGGED = frozenset({"warn", "warning", "warning_once", "error", "exception", "critical", "fatal", "warning_advice"})
_LOGGED_ON_RANK_0 = frozenset({"warning_rank0", "warning_rank0_once", "error_rank0", "warning_on_rank_0"})
_CHECKS = frozenset({"_check", "_check_value", "_check_type", "_assert"})
_PYTHON = (
    *("object has no attribute", "got an unexpected keyword argument", "No module named", "object is not callable"),
    *("object is not subscriptable", "is not defined", "unhashable type"),
)
"""What Python says itself: a library that raises it again is not what is meant."""
_PRINTED = ("warning", "[warning", "error", "[error", "unsloth:", "failed", "**** ")
_OPPOSITES: tuple[tuple[type[ast.cmpop], type[ast.cmpop]], ...] = (
    *((ast.Eq, ast.NotEq), (ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
)
_NEGATED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {**dict(_OPPOSITES), **{no: yes for yes, no in _OPPOSITES}}
_LEAVING = (ast.Return, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``kind`` is the exception's name, ``assert``, ``warning``, ``error`` (a log line) or ``print``."""

    template: str
    kind: str
    line: int
    function: str
    condition: str


def messages_of(source: str, *, every: bool = False) -> Iterator[Message]:
    """The messages of a module in the order of the text; none if it cannot be parsed.

    ``every``: with what has too little text to be looked up by, and assertions without one.
    """
    module = module_of(source)
    constants = {
        node.targets[0].id: node.value
        for node in module.body
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    seen: set[tuple[str, str, int]] = set()
    for message in _Reader(constants, every).block(module.body, (), ""):
        identity = (message.template, message.kind, message.line)
        if identity not in seen:
            seen.add(identity)
            yield message


class _Reader:
    """Walks statements with the conditions that lead to them and the names assigned so far."""

    def __init__(self, names: Mapping[str, ast.expr], every: bool) -> None:
        self._names, self._every = dict(names), every
        self._lists: dict[str, list[tuple[ast.expr, tuple[ast.expr, ...]]]] = {}

    def block(self, body: Sequence[ast.stmt], tests: tuple[ast.expr, ...], function: str) -> Iterator[Message]:
        outer = tests
        ends = bool(body) and isinstance(body[-1], ast.Raise)
        for statement in body:
            if ends and isinstance(statement, ast.Expr) and _is_print(statement.value):
                yield from self._message(statement.value.args[:1], "error", statement, tests, function)
                continue
            yield from self._statement(statement, tests, function)
            if isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], _LEAVING):
                # What follows a guard clause runs if the guard did not leave; only the last guard counts.
                tests = (*outer, negated(statement.test))

    def _statement(self, node: ast.stmt, tests: tuple[ast.expr, ...], function: str) -> Iterator[Message]:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                path = f"{function}.{name}" if function else name
                for call in node.decorator_list:
                    if isinstance(call, ast.Call) and _name(call.func) == "deprecated":
                        yield from self._message(call.args[:1], "warning", call, (), path)
                inner = self if isinstance(node, ast.ClassDef) else _Reader(self._names, self._every)
                yield from inner.block(node.body, (), path)
            case ast.If():
                yield from self.block(node.body, (*tests, node.test), function)
                others = (*tests, negated(node.test))
                yield from self.block(node.orelse, others, function)
            case ast.Try():
                yield from self.block(node.body, tests, function)
                for handler in node.handlers:
                    caught = ast.unparse(handler.type) if handler.type is not None else "Exception"
                    yield from self.block(handler.body, (ast.Name(id=f"except {caught}"),), function)
                yield from self.block((*node.orelse, *node.finalbody), tests, function)
            case ast.Match():
                for case in node.cases:
                    pattern = f"{ast.unparse(node.subject)} matches {ast.unparse(case.pattern)}"
                    yield from self.block(case.body, (*tests, ast.Name(id=pattern)), function)
            case ast.For() | ast.AsyncFor() | ast.While() | ast.With() | ast.AsyncWith():
                yield from self.block(node.body, tests, function)
                yield from self.block(getattr(node, "orelse", ()), tests, function)
            case ast.Raise(exc=ast.Call() as call):
                yield from self._message(call.args[:1] or _text_keyword(call), _name(call.func), node, tests, function)
            case ast.Assert():
                yield from self._assertion(node, (*tests, negated(node.test)), function)
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                self._assign(name, value)
                yield from self._calls(node, tests, function)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()) if name in self._names:
                self._names[name] = ast.BinOp(self._names[name], ast.Add(), node.value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[text])) if (
                name in self._lists
            ):
                self._lists[name].append((text, tests))
            case _:
                yield from self._calls(node, tests, function)

    def _assertion(self, node: ast.Assert, tests: tuple[ast.expr, ...], function: str) -> Iterator[Message]:
        if node.msg is not None:
            yield from self._message([node.msg], "assert", node, tests, function)
        elif self._every:
            yield Message("", "assert", node.lineno, function, condition(tests))

    def _assign(self, name: str, value: ast.expr) -> None:
        self._names[name] = value
        if isinstance(value, ast.List) and not value.elts:
            self._lists[name] = []

    def _calls(self, node: ast.stmt, tests: tuple[ast.expr, ...], function: str) -> Iterator[Message]:
        """Warnings and log lines among the calls of a simple statement; what it appends to a list is remembered."""
        match node:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="append"),
                    args=[(ast.JoinedStr() | ast.Constant(value=str())) as appended],
                )
            ):
                self._lists.setdefault(name, []).append((appended, tests))
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and (kind := _logged(call) or self._logged_by_alias(call)):
                text, test = call.args[:1], tests
                if kind in _CHECKS or kind == "_p_assert":
                    if len(call.args) < 2:
                        continue
                    text, test = call.args[1:2], (*tests, negated(call.args[0]))
                    if isinstance(text[0], ast.Lambda):
                        text = [text[0].body]
                    kind = "assert" if kind.endswith("_assert") else "RuntimeError"
                elif len(call.args) > 1 and kind in ("warning", "error"):
                    text = [_percent(call)]
                yield from self._message(text, kind, call, test, function)

    def _logged_by_alias(self, call: ast.Call) -> str:
        """The same for ``warn = logger.warning if first else logger.info; warn(…)``."""
        assigned = self._names.get(call.func.id) if isinstance(call.func, ast.Name) else None
        choices = [assigned.body, assigned.orelse] if isinstance(assigned, ast.IfExp) else [assigned]
        kinds = [_logged(ast.Call(choice, [], [])) for choice in choices if isinstance(choice, ast.Attribute)]
        return max(kinds, default="")

    def _collected(self, text: ast.expr, kind: str, function: str) -> Iterator[Message]:
        """The problems in a list, where a message is nothing but that list."""
        used = {item.id for item in ast.walk(text) if isinstance(item, ast.Name)}
        for name in sorted(used & self._lists.keys()):
            for item, tests in self._lists.pop(name):
                if literal_length("".join(_parts(item, self._names, 0))) >= LEAST_IN_ASSERTION:
                    yield from self._message([item], kind, item, tests, function)

    def _message(
        self,
        text: Sequence[ast.expr],
        kind: str,
        node: ast.stmt | ast.expr,
        tests: tuple[ast.expr, ...],
        function: str,
    ) -> Iterator[Message]:
        if not text:
            return
        parts = "".join(_parts(text[0], self._names, 0))
        template = " ".join(parts.split())
        if not any(character.isalpha() for character in "".join(split(template)[0])):
            yield from self._collected(text[0], kind, function)
        if kind == "print" and not template.lower().startswith(_PRINTED):
            return
        if _is_of_python(template) and not self._every:
            return
        if len(template) > MOST_TEMPLATE:
            template = _shortened(template)
        least = LEAST_IN_ASSERTION if kind in ("assert", "AssertionError") else LEAST_LITERAL
        if self._every or (literal_length(template) >= least and " " in template.strip()):
            yield Message(template, kind, node.lineno, function, condition(tests))


def _is_print(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def _is_of_python(template: str) -> bool:
    literal = " ".join(split(template)[0]).replace("__init__", "")
    for words in _PYTHON:
        literal = literal.replace(words, "")
    return not any(character.isalpha() for character in literal)


def _text_keyword(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords if keyword.arg in ("message", "msg", "detail")][:1]


def _name(node: ast.expr) -> str:
    """The last name of a called thing: ``getLogger`` for ``logging.getLogger(x)``."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else "Exception"


def _logged(call: ast.Call) -> str:
    """What a call does with its message: ``warning``, ``error``, ``print``, ``sys.exit``, a check; empty if nothing."""
    name = _name(call.func)
    owner = _name(call.func.value).lower() if isinstance(call.func, ast.Attribute) else ""
    if (name in _CHECKS and owner == "torch") or name == "_p_assert":
        return name
    owned = owner in ("warnings", "accelerator", "self") or "log" in owner
    if name in _LOGGED_ON_RANK_0 or (name in _LOGGED and owned):
        return "error" if name.startswith(("error", "exception", "critical", "fatal")) else "warning"
    if name == "warn" and not owner:
        return "warning"
    if name == "print" and not owner:
        return "print"
    if name == "error" and "parser" in owner:
        return "error"
    return "SystemExit" if name == "exit" and owner == "sys" else ""


def _percent(call: ast.Call) -> ast.expr:
    """``logger.warning("%s of %s", a, b)`` as the expression ``"%s of %s" % (a, b)``."""
    first = call.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str) and "%" in first.value:
        return ast.BinOp(first, ast.Mod(), ast.Tuple(list(call.args[1:]), ast.Load()))
    return first


def _parts(node: ast.expr, names: Mapping[str, ast.expr], depth: int) -> Iterator[str]:
    """The template of an expression that makes a text."""
    match node:
        case ast.Constant(value=str() as text):
            yield _escaped(text)
        case ast.JoinedStr(values=values):
            for value in values:
                inner = value.value if isinstance(value, ast.FormattedValue) else value
                yield from _parts(inner, {}, depth)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _parts(left, names, depth)
            yield from _parts(right, names, depth)
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=right):
            yield from _formatted_percent(text, right.elts if isinstance(right, ast.Tuple) else [right])
        case ast.Call(func=ast.Attribute(value=text, attr="format")) if _is_text(text, names):
            base = "".join(_parts(text, names, depth))
            yield from _formatted(base, node)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as glue), attr="join"), args=[argument]) if (
            isinstance(argument, (ast.List, ast.Tuple))
        ):
            for number, item in enumerate(argument.elts):
                yield _escaped(glue) if number else ""
                yield from _parts(item, names, depth)
        case ast.Call(func=ast.Attribute(attr="dedent" | "cleandoc" | "strip"), args=[text, *_]):
            yield from _parts(text, names, depth)
        case ast.Call(func=ast.Attribute(value=ast.Constant() as text, attr="strip")):
            yield from _parts(text, names, depth)
        case ast.Name(id=name) if name in names and depth < 4:
            yield from _parts(names[name], names, depth + 1)
        case _:
            yield _hole(node)


def _is_text(node: ast.expr, names: Mapping[str, ast.expr]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names and _is_text(names[node.id], {})
    if isinstance(node, ast.BinOp):
        return _is_text(node.left, names)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _formatted_percent(text: str, values: Sequence[ast.expr]) -> Iterator[str]:
    """``"%s of %d" % (a, b)``."""
    start = at = 0
    remaining = iter(values)
    while (at := text.find("%", at)) >= 0:
        yield _escaped(text[start:at])
        end = at + 1
        if text[end : end + 1] == "%":
            yield "%"
            at = start = end + 1
            continue
        if text[end : end + 1] == "(" and ")" in text[end:]:
            end = text.index(")", end) + 1
        while end < len(text) and not text[end].isalpha():
            end += 1
        value = next(remaining, None)
        yield _inserted(value) if value is not None else "{}"
        at = start = end + 1
    yield _escaped(text[start:])


def _inserted(value: ast.expr) -> str:
    """A value between the literal parts: text as it is, all else as a hole."""
    is_text = isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))
    return "".join(_parts(value, {}, 0)) if is_text else _hole(value)


def _formatted(base: str, call: ast.Call) -> Iterator[str]:
    """``"{} of {total}".format(a, total=b)``; the braces of ``base`` are doubled."""
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    try:
        fields = list(Formatter().parse(base.replace("{{", "{").replace("}}", "}")))
    except ValueError:
        fields = [(base, None, None, None)]
    number = 0
    for text, field, _, _ in fields:
        yield _escaped(text)
        if field is None:
            continue
        key = field.partition(".")[0].partition("[")[0]
        value = named.get(key)
        if value is None and (not key or key.isdigit()):
            index = int(key) if key else number
            number += 1
            value = call.args[index] if index < len(call.args) else None
        yield _hole(value) if value is not None else "{}"


def _hole(node: ast.expr) -> str:
    """An expression as a hole. Conversions and counts keep what they are about."""
    while isinstance(node, ast.Call) and len(node.args) == 1 and _name(node.func) in ("str", "repr", "list", "sorted"):
        node = node.args[0]
    text = " ".join(ast.unparse(node).split())
    return f"{{{text}}}" if len(text) <= MOST_HOLE and "{" not in text and "}" not in text else "{}"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _shortened(template: str) -> str:
    """The template's beginning, cut behind a word and outside of a hole."""
    cut = template[:MOST_TEMPLATE].rsplit(" ", 1)[0]
    return cut[: cut.rindex("{")].rstrip() if cut.count("{") != cut.count("}") else cut


def literal_length(template: str) -> int:
    """Characters outside of holes, white space not counted."""
    outside = inside = 0
    for character in template:
        inside += (character == "{") - (character == "}")
        outside += not inside and not character.isspace() and character != "}"
    return outside


def negated(test: ast.expr) -> ast.expr:
    """The opposite of a condition, as a person would write it."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[operation], comparators=comparators):
            return ast.Compare(left, [_NEGATED[type(operation)]()], comparators)
        case ast.BoolOp(op=operation, values=values):
            return ast.BoolOp(ast.Or() if isinstance(operation, ast.And) else ast.And(), [negated(v) for v in values])
        case _:
            return ast.UnaryOp(ast.Not(), test)


def condition(tests: Sequence[ast.expr]) -> str:
    """The nearest conditions as one expression: as many, from the inside out, as stay short."""
    text = ""
    for count in range(1, min(len(tests), 3) + 1):
        chosen = list(tests[-count:])
        longer = ast.unparse(chosen[0] if count == 1 else ast.BoolOp(ast.And(), chosen))
        if text and len(longer) > MOST_CONDITION * 3 // 5:
            break
        text = longer
    text = " ".join(text.split())
    return text if len(text) <= MOST_CONDITION else text[: MOST_CONDITION - 1].rstrip() + "…"
