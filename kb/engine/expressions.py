"""The condition language: a whitelisted subset of Python expressions, compiled once into three-valued closures.

`compile_expression` reads the text with `ast`, refuses everything that is not listed, and never lets Python run it.
The first walk gives the bare value, fast. The second, `Expression.explain`, runs only if a rule fired or cannot be
told, for the terms, their places, and the facts that could still change the result.
Logic is Kleene's: ``false and unknown`` is false, ``true or unknown`` is true.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.functions import ALL_FUNCTIONS, COMPUTATIONS, FACT_CALLS, SPECIAL
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.engine.prefilter import ALWAYS, SHAPES, Shape, empty, marks_of, said_by
from trainmedic.kb.engine.values import UNKNOWN, Key, Result, Unknown, arithmetic, equal, member, ordered, show, truth
from trainmedic.kb.engine.vocabulary import NO_WORDS, Vocabulary
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Term
from trainmedic.kb.model.run import Scalar
from trainmedic.kb.suggest import closest

Evaluator: TypeAlias = Callable[[Facts], Result]

MAX_TEXT, MAX_NODES, MAX_DEPTH, MAX_LITERAL, MAX_NUMBER = 4000, 500, 40, 300, 1e18
ALLOWED = "and, or, not, comparisons, in, + - * / // %, literals, tuples, setting names and " + ", ".join(ALL_FUNCTIONS)

_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_NOTHING = Facts(Evidence())
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A compiled piece. ``reads``: its facts; ``asks``: those worth asking for.

    ``kind``: and, or, not, maybe, certain, leaf.
    """

    kind: str
    text: str
    evaluate: Evaluator
    children: tuple[Node, ...] = ()
    reads: tuple[Key, ...] = ()
    asks: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Source of an expression: a text in these ``words``, or one fact by its ``key``."""

    text: str
    words: Vocabulary = field(default=NO_WORDS, repr=False)
    key: Key | None = None


@dataclass(frozen=True)
class Expression:
    """A compiled expression, which holds where all of its parts do.

    ``evaluate(facts)`` is its value; `explain` gives the reasons as well. It is pickled as its text, with what it reads
    and its values where the evidence is silent: most are never evaluated, and so never compiled again.
    """

    parts: tuple[Part, ...]

    @cached_property
    def root(self) -> Node:
        nodes = [_compiled(part) for part in self.parts]
        return nodes[0] if len(nodes) == 1 else _junction("and", " and ".join(n.text for n in nodes), tuple(nodes))

    @property
    def evaluate(self) -> Evaluator:
        """The closure; its value is a `kb.model.run.Value` or `UNKNOWN`."""
        return self.root.evaluate

    @cached_property
    def reads(self) -> tuple[Key, ...]:
        """Its facts."""
        return self.root.reads

    @cached_property
    def marks(self) -> frozenset[str]:
        """Marks of which the evidence must have one, or it is silent about all facts of the expression."""
        return marks_of(self.reads)

    @cached_property
    def _on_empty(self) -> dict[Shape, bool | Unknown]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        silent = {} if ALWAYS in self.marks else {shape: truth(self.evaluate(empty(shape))) for shape in SHAPES}
        state = {"parts": self.parts, "reads": self.reads, "marks": self.marks}
        return {**state, "_on_empty": silent}

    def holds(self, facts: Facts) -> bool | Unknown:
        """The value as a condition; where the evidence is silent, without evaluating it."""
        known = self.where_silent(facts)
        if known is not None:
            return known
        value = self.root.evaluate(facts)
        return value if value is True or value is False else truth(value)

    def where_silent(self, facts: Facts) -> bool | Unknown | None:
        """The value as a condition if the evidence says nothing about any of its facts, else None."""
        said = said_by(facts)
        if not self.marks.isdisjoint(said.marks):
            return None
        known = self._on_empty.get(said.shape)
        if known is None:
            known = self._on_empty[said.shape] = truth(self.root.evaluate(empty(said.shape)))
        return known

    def reads_user_text(self, facts: Facts) -> bool:
        """Whether any fact of it was read from what the user provided."""
        return any(facts.fact(key).user_provided for key in self.reads)

    def explain(self, facts: Facts) -> Outcome:
        """The value with terms, evidence of the terms that hold, and the facts that could change an unknown result."""
        value = truth(self.root.evaluate(facts))
        walk = _Walk(facts)
        walk.visit(self.root, True, value is not False)
        return Outcome(
            value=None if value is UNKNOWN else value,
            evidence=tuple(dict.fromkeys(walk.spans)),
            missing=tuple(dict.fromkeys(walk.missing)) if value is UNKNOWN else (),
            user_provided=walk.user_provided,
            terms=tuple(walk.terms),
        )


def compile_expression(text: str, words: Vocabulary) -> Expression:
    """Compile a condition. Raises `InvalidPage` saying which line of the text is wrong and what is allowed."""
    expression = Expression((Part(text, words),))
    expression.root  # noqa: B018  compiled now, so that what is wrong is found now
    return expression


def all_of(*expressions: Expression) -> Expression:
    """One expression that holds where all of these do. At least one."""
    return Expression(tuple(part for expression in expressions for part in expression.parts))


def fact_expression(text: str, key: Key) -> Expression:
    """An expression that is one fact."""
    return Expression((Part(text, key=key),))


def _compiled(part: Part) -> Node:
    return _node(part.text, part.words) if part.key is None else _fact_node(part.text, part.key)


def _node(text: str, words: Vocabulary) -> Node:
    if len(text) > MAX_TEXT:
        raise InvalidPage(f"the expression is longer than {MAX_TEXT} characters")
    # The parser ends a line at a lone carriage return too, and counts lines so.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = ast.parse("(" + text + "\n)", mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        reason = getattr(error, "msg", None) or "cannot be read"
        raise InvalidPage(f"line {line} of the expression: {reason}", hint=f"allowed: {ALLOWED}") from None
    # A part takes a character at least; three nodes make one of a name.
    if len(text) * 3 > MAX_NODES and sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise InvalidPage(f"the expression has more than {MAX_NODES} parts; split the rule or write a module")
    root = _Compiler("(" + text + "\n)", words).node(tree.body, 0)
    if (tree.body.lineno, tree.body.col_offset) == (1, 0):  # our own parenthesis closed early, or a bare tuple
        raise InvalidPage("line 1 of the expression: unbalanced parentheses, or a list where one value is expected")
    return root


def _fact_node(text: str, key: Key) -> Node:
    """A leaf that is one fact."""

    def read(facts: Facts) -> Result:
        fact = facts.known.get(key)  # most are known by then, and a call takes as long as the rest
        return (facts.fact(key) if fact is None else fact).value

    return Node("leaf", text, read, reads=(key,), asks=(key,))


@dataclass(slots=True)
class _Walk:
    """The second walk. ``live``: the branch contributes to a result that is true, or could still be."""

    facts: Facts
    terms: list[Term] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    user_provided: bool = False

    def visit(self, node: Node, want: bool, live: bool) -> None:
        if node.kind == "not":
            self.visit(node.children[0], not want, live)
        elif node.kind in ("and", "or"):
            self._junction(node, want, live)
        elif node.kind in ("maybe", "certain") and want and truth(node.children[0].evaluate(self.facts)) is True:
            self.visit(node.children[0], want, live)
        else:
            self._leaf(node, want, live)

    def _junction(self, node: Node, want: bool, live: bool) -> None:
        whole = _turned(truth(node.evaluate(self.facts)), want)
        every = (node.kind == "and") == want
        for child in node.children:
            value = _turned(truth(child.evaluate(self.facts)), want)
            contributes = every or (value is True if whole is True else value is UNKNOWN)
            self.visit(child, want, live and contributes)

    def _leaf(self, node: Node, want: bool, live: bool) -> None:
        value = _turned(truth(node.evaluate(self.facts)), want)
        facts = [self.facts.fact(key) for key in node.reads]
        spans = tuple(dict.fromkeys(span for fact in facts for span in fact.spans))
        text = node.text if want else f"not {node.text}" if node.text.isidentifier() else f"not ({node.text})"
        seen = "; ".join(dict.fromkeys(fact.seen for fact in facts))
        self.terms.append(Term(text=text, value=None if value is UNKNOWN else value, seen=seen, evidence=spans))
        if not live:
            return
        if value is True:
            self.spans.extend(spans)
            self.user_provided = self.user_provided or any(fact.user_provided for fact in facts)
        else:  # unknown: a false leaf never lies on a live branch
            for key in node.asks:
                self.missing.extend(self.facts.fact(key).missing)


def _turned(value: bool | Unknown, want: bool) -> bool | Unknown:
    return value if want or value is UNKNOWN else not value


class _Compiler:
    def __init__(self, text: str, words: Vocabulary) -> None:
        self.bytes = text.encode()
        self.starts = [0, *(at + 1 for at, char in enumerate(self.bytes) if char == 10)]
        self.words = words

    def refuse(self, node: ast.AST, reason: str) -> InvalidPage:
        return InvalidPage(f"line {getattr(node, 'lineno', 1)} of the expression: {reason}", hint=f"allowed: {ALLOWED}")

    def source(self, node: ast.expr) -> str:
        """The text of a piece on one line (`ast.get_source_segment` splits the whole text for every piece)."""
        start = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        return " ".join(self.bytes[start:end].decode().split())

    def node(self, node: ast.expr, depth: int) -> Node:
        """Compile one piece. Raises `InvalidPage` for what is not allowed."""
        if depth > MAX_DEPTH:
            raise self.refuse(node, f"nested deeper than {MAX_DEPTH}")
        match node:
            case ast.BoolOp():
                kind = "and" if isinstance(node.op, ast.And) else "or"
                return _junction(kind, self.source(node), tuple(self.node(part, depth + 1) for part in node.values))
            case ast.UnaryOp(op=ast.Not()):
                return self._not(node, depth)
            case ast.UnaryOp(op=ast.USub()):
                return self._minus(node, depth)
            case ast.Compare():
                return self._compare(node, depth)
            case ast.BinOp():
                return self._binary(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.Name():
                return self._name(node)
            case ast.Constant():
                value = self._literal(node)
                return Node("leaf", self.source(node), lambda facts: value)
            case ast.Tuple() | ast.List():
                return self._sequence(node, depth)
            case _:
                raise self.refuse(node, f"{type(node).__name__} is not allowed: {self.source(node)[:60]!r}")

    def _name(self, node: ast.Name) -> Node:
        if node.id not in self.words.names:
            near = closest(node.id, sorted(self.words.names), partial=True)
            hint = f" (did you mean {near}?)" if near else ""
            raise self.refuse(node, f"{node.id!r} is neither a canonical setting nor a fact{hint}")
        return _fact_node(node.id, ("name", node.id))

    def _literal(self, node: ast.Constant) -> Scalar:
        value = node.value
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str) and len(value) <= MAX_LITERAL:
            return value
        if isinstance(value, (int, float)) and abs(value) <= MAX_NUMBER:
            return value
        raise self.refuse(node, f"a literal of this kind or size is not allowed: {self.source(node)[:60]}")

    def _not(self, node: ast.UnaryOp, depth: int) -> Node:
        inner = self.node(node.operand, depth + 1)
        evaluate = inner.evaluate

        def negate(facts: Facts) -> Result:
            value = truth(evaluate(facts))
            return value if value is UNKNOWN else not value

        return Node("not", self.source(node), negate, (inner,), inner.reads, inner.asks)

    def _minus(self, node: ast.UnaryOp, depth: int) -> Node:
        inner = self.node(node.operand, depth + 1)
        return _computed(self.source(node), (inner,), lambda value: arithmetic("-", 0, value))

    def _binary(self, node: ast.BinOp, depth: int) -> Node:
        symbol = _BINARY.get(type(node.op))
        if symbol is None:
            raise self.refuse(node, f"{type(node.op).__name__} is not allowed: {self.source(node)[:60]!r}")
        sides = (self.node(node.left, depth + 1), self.node(node.right, depth + 1))
        return _computed(self.source(node), sides, lambda left, right: arithmetic(symbol, left, right))

    def _sequence(self, node: ast.Tuple | ast.List, depth: int) -> Node:
        parts = tuple(self.node(part, depth + 1) for part in node.elts)
        return _computed(self.source(node), parts, lambda *values: tuple(values))

    def _compare(self, node: ast.Compare, depth: int) -> Node:
        symbols = []
        for op in node.ops:
            symbol = _COMPARE.get(type(op))
            if symbol is None:
                raise self.refuse(node, f"'is' is not allowed; write == : {self.source(node)[:60]!r}")
            symbols.append(symbol)
        sides = tuple(self.node(part, depth + 1) for part in (node.left, *node.comparators))
        links = tuple(
            _in(symbol == "in", left, right) if symbol in ("in", "not in") else _order(symbol, left, right)
            for left, symbol, right in zip(sides, symbols, sides[1:], strict=False)
        )
        evaluate = links[0] if len(links) == 1 else _conjunction(links)
        return Node("leaf", self.source(node), evaluate, (), _reads(sides), _asks(sides))

    def _call(self, node: ast.Call, depth: int) -> Node:
        if not isinstance(node.func, ast.Name) or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise self.refuse(
                node, f"only plain calls with positional arguments are allowed: {self.source(node)[:60]!r}"
            )
        name = node.func.id
        if name in FACT_CALLS:
            return self._fact(node, name)
        if name in SPECIAL:
            return self._special(node, name, depth)
        function = COMPUTATIONS.get(name)
        if function is None:
            raise self.refuse(node, f"there is no function {name!r}")
        self._count(node, name, function.least, function.most)
        return _computed(self.source(node), tuple(self.node(part, depth + 1) for part in node.args), function.call)

    def _count(self, node: ast.Call, name: str, least: int, most: int) -> None:
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise self.refuse(node, f"{name}() takes {wanted} argument(s), not {len(node.args)}")

    def _fact(self, node: ast.Call, name: str) -> Node:
        call = FACT_CALLS[name]
        self._count(node, name, call.least, call.most)
        arguments: list[str] = []
        wanted: type | tuple[type, ...] = (int, float) if call.numbers else str
        for place, argument in enumerate(node.args):
            if not isinstance(argument, ast.Constant) or not isinstance(argument.value, wanted):
                kind = "numbers" if call.numbers else "quoted texts"
                raise self.refuse(node, f"{name}() takes {kind}: {self.source(node)[:60]!r}")
            text = str(argument.value)
            wrong = call.checks[min(place, len(call.checks) - 1)](text, self.words)
            if wrong is not None:
                raise self.refuse(node, f"{name}(): {wrong}")
            arguments.append(text)
        return _fact_node(self.source(node), (name, *arguments))

    def _special(self, node: ast.Call, name: str, depth: int) -> Node:
        self._count(node, name, *SPECIAL[name])
        children = tuple(self.node(argument, depth + 1) for argument in node.args)
        inner, text = children[0], self.source(node)
        if name == "known":
            return Node("leaf", text, lambda facts: inner.evaluate(facts) is not UNKNOWN, (), inner.reads)
        if name == "when_known":
            return Node(
                "leaf", text, lambda facts: _joined(part.evaluate(facts) for part in children), (), _reads(children)
            )
        default = name == "maybe"

        def decided(facts: Facts) -> Result:
            value = truth(inner.evaluate(facts))
            return default if value is UNKNOWN else value

        return Node(name, text, decided, (inner,), inner.reads)


def _joined(values: Iterable[Result]) -> str:
    shown = list(values)
    return "" if UNKNOWN in shown else "".join(map(show, shown))


def _reads(nodes: tuple[Node, ...]) -> tuple[Key, ...]:
    return tuple(dict.fromkeys(key for node in nodes for key in node.reads))


def _asks(nodes: tuple[Node, ...]) -> tuple[Key, ...]:
    return tuple(dict.fromkeys(key for node in nodes for key in node.asks))


def _junction(kind: str, text: str, nodes: tuple[Node, ...]) -> Node:
    parts = tuple(node.evaluate for node in nodes)
    evaluate = _conjunction(parts) if kind == "and" else _disjunction(parts)
    return Node(kind, text, evaluate, nodes, _reads(nodes), _asks(nodes))


def _conjunction(parts: tuple[Evaluator, ...]) -> Evaluator:
    def evaluate(facts: Facts) -> Result:
        result: bool | Unknown = True
        for part in parts:
            value = part(facts)
            if value is not True and value is not False:
                value = truth(value)
            if value is False:
                return False
            if value is UNKNOWN:
                result = UNKNOWN
        return result

    return evaluate


def _disjunction(parts: tuple[Evaluator, ...]) -> Evaluator:
    def evaluate(facts: Facts) -> Result:
        result: bool | Unknown = False
        for part in parts:
            value = part(facts)
            if value is not True and value is not False:
                value = truth(value)
            if value is True:
                return True
            if value is UNKNOWN:
                result = UNKNOWN
        return result

    return evaluate


def _computed(text: str, nodes: tuple[Node, ...], call: Callable[..., Result]) -> Node:
    parts = tuple(node.evaluate for node in nodes)
    if not any(node.reads for node in nodes):
        constant = call(*(part(_NOTHING) for part in parts))
        return Node("leaf", text, lambda facts: constant)

    def evaluate(facts: Facts) -> Result:
        values = [part(facts) for part in parts]
        return UNKNOWN if UNKNOWN in values else call(*values)

    return Node("leaf", text, evaluate, (), _reads(nodes), _asks(nodes))


def _order(symbol: str, left: Node, right: Node) -> Evaluator:
    first, second = left.evaluate, right.evaluate
    equality = symbol in ("==", "!=")

    def evaluate(facts: Facts) -> Result:
        a, b = first(facts), second(facts)
        if a is UNKNOWN or b is UNKNOWN:
            return UNKNOWN
        if equality:
            return equal(a, b) == (symbol == "==")
        return ordered(symbol, a, b)

    return evaluate


def _in(wanted: bool, left: Node, right: Node) -> Evaluator:
    first, second = left.evaluate, right.evaluate

    def evaluate(facts: Facts) -> Result:
        item, holder = first(facts), second(facts)
        if item is UNKNOWN or holder is UNKNOWN:
            return UNKNOWN
        found = member(item, holder)
        return found if found is UNKNOWN else found == wanted

    return evaluate
