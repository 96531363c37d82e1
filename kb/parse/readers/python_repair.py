"""Python that does not parse → the syntax tree of what survived: cut off, elided, damaged, pasted with prose between.

tree-sitter finds the statements, calls and keyword arguments around the damage; `ast` parses each at its own place.
So the reader sees one kind of tree, and names, loads and casts resolve as in a whole script.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.readers.nodes import MOST_NODES, deepest_bracket

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_Tree = TypeVar("_Tree", ast.Assign, ast.Expr, ast.Call, ast.Dict, ast.List, ast.Attribute, ast.JoinedStr, ast.keyword)

MOST_BRACKETS = 90
_DEEPEST = 12
_LAST_COLUMN = 2000  # an expression is parsed behind as many blanks as there are columns before it
_FEWEST_STEPS = 1000
_BYTES_A_STEP = 4  # whole programs take a step in forty bytes
_COMMENT_LINE = regex(rb"^[ \t]*+#[^\n]*", re.MULTILINE)
_LONGEST = 65_536
"""Bytes of a damaged program that are read."""
_CALLEES = ("identifier", "attribute")
_TARGETS = (*_CALLEES, "subscript")
_STRAIGHT = str.maketrans("“”‘’", "\"\"''")


def straightened(text: str) -> str:
    """``text`` with straight quotation marks for curly ones, character by character."""
    return text.translate(_STRAIGHT)


def survivors(text: str) -> ast.Module:
    """The statements of ``text`` that can be read; of a damaged one its calls, assignments and dicts."""
    return ast.Module(body=_Salvage(text).statements(), type_ignores=[])


@cache
def _parser() -> Parser:
    # Here, for few scripts need it: loading takes 20 ms, and `trainmedic check` has 400.
    import tree_sitter_python
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_python.language()))


def _root(source: bytes) -> Node | None:
    """The tree of a text; None without tree-sitter, which is compiled and so not in the single file of `ui.doctor`, and
    if its repair takes too many steps: their number can grow with the text's square."""
    steps = 0

    def give_up(*_: object) -> bool:
        nonlocal steps
        steps += 1
        return steps > _FEWEST_STEPS + len(source) // _BYTES_A_STEP

    try:
        parser = _parser()
    except ImportError:
        return None
    try:
        return parser.parse(lambda at, _: source[at : at + _LONGEST], progress_callback=give_up).root_node
    except ValueError:
        parser.reset()  # it would go on with this text
        return None


class _Salvage:
    def __init__(self, text: str) -> None:
        source = text.encode()[:_LONGEST].decode("utf-8", "ignore").encode()
        # Around damage, each line of comments costs tree-sitter another pass over those before it.
        self.source = _COMMENT_LINE.sub(lambda line: b" " * len(line[0]), source)
        self.end = len(self.source.rstrip())
        self.expressions = 0

    def statements(self) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        pending = [root] if (root := _root(self.source)) is not None else []
        while pending:
            node = pending.pop()
            intact = node.type.endswith(("_statement", "_definition")) and not node.has_error
            if intact and (whole := self._statement(node)):
                statements += whole
            elif node.type == "assignment" and (value := node.child_by_field_name("right")) is not None:
                statements.append(self._assignment(node.children[0], self._expression(value), node))
            elif node.type == "call":
                statements.append(self._at(ast.Expr(value=self._expression(node)), node))
            elif node.type == "expression_statement" and node.children[0].type == "dictionary":
                statements.append(self._at(ast.Expr(value=self._expression(node.children[0])), node))
            elif node.type != "dictionary":
                torn, rest = self._torn(node)
                statements += torn
                pending.extend(reversed([child for child in rest if child.child_count]))
        return statements

    def _statement(self, node: Node) -> list[ast.stmt]:
        """A whole statement, at the line and column where it is in the text."""
        indented = node.start_point.column > 0
        source = ("if 1:\n" if indented else "\n") + " " * node.start_point.column + _text(node)
        try:
            module = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        ast.increment_lineno(module, node.start_point.row - 1)
        wrapper = module.body[0]
        return wrapper.body if indented and isinstance(wrapper, ast.If) else module.body

    def _expression(self, node: Node, depth: int = 0) -> ast.expr:
        """An expression; a damaged one as far as it is a call, dict or list, else one without a value."""
        self.expressions += 1
        if self.expressions > MOST_NODES or node.start_point.column > _LAST_COLUMN:
            return self._at(ast.JoinedStr(values=[]), node)
        if not node.has_error:
            text = _text(node)
            try:
                if deepest_bracket(text) <= MOST_BRACKETS:
                    tree = ast.parse("(\n" + " " * node.start_point.column + text + "\n)", mode="eval")
                    ast.increment_lineno(tree, node.start_point.row - 1)
                    return tree.body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                pass
        if depth < _DEEPEST:
            children = node.named_children
            if node.type == "call":
                callees = [child for child in _flat(node.children) if child.type in _CALLEES]
                if callees and children[-1].type == "argument_list":
                    return self._call(callees[-1], children[-1].children, node, depth)
            if node.type == "attribute" and len(children) == 2:
                owner = self._expression(children[0], depth + 1)
                return self._at(ast.Attribute(value=owner, attr=_text(children[1])), node)
            if node.type == "dictionary":
                return self._dict(children, node, depth)
            if node.type in ("list", "tuple"):
                elements = [self._expression(child, depth + 1) for child in children if child.type != "ERROR"]
                return self._at(ast.List(elts=elements), node)
        return self._at(ast.JoinedStr(values=[]), node)

    def _dict(self, children: Sequence[Node], node: Node, depth: int = 0) -> ast.Dict:
        pairs = [child.children for child in children if child.type == "pair"]
        entries = [(pair[0], pair[2]) for pair in pairs if len(pair) == 3 and pair[2].end_byte < self.end]
        keys: list[ast.expr | None] = [self._expression(key, depth + 1) for key, _ in entries]
        values = [self._expression(value, depth + 1) for _, value in entries]
        return self._at(ast.Dict(keys=keys, values=values), node)

    def _call(self, callee: Node, arguments: Sequence[Node], node: Node, depth: int = 0) -> ast.Call:
        function, keywords = self._expression(callee, depth + 1), self._keywords(arguments, depth)
        return self._at(ast.Call(func=function, args=[], keywords=keywords), node)

    def _keywords(self, arguments: Sequence[Node], depth: int) -> list[ast.keyword]:
        """``key=value`` arguments, also if the comma before one is missing. A value that the end cuts off is none."""
        nodes = list(_flat(arguments))
        keywords = []
        for at, node in enumerate(nodes):
            if node.type == "keyword_argument" and node.child_count == 3:
                key, value = node.children[0], node.children[2]
            elif node.type == "identifier" and len(nodes) > at + 2 and nodes[at + 1].type == "=":
                key, value = node, nodes[at + 2]
            else:
                continue
            if value.is_named and value.type not in ("string_start", "ERROR") and value.end_byte < self.end:
                keyword = ast.keyword(arg=_text(key), value=self._expression(value, depth + 1))
                keywords.append(self._at(keyword, node))
        return keywords

    def _torn(self, node: Node) -> tuple[list[ast.stmt], list[Node]]:
        """Calls and dicts whose closing bracket is missing, read from the nodes beside each other; the other nodes."""
        statements: list[ast.stmt] = []
        rest: list[Node] = []
        children, at = node.children, 0
        while at < len(children):
            child, following = children[at], [sibling.type for sibling in children[at + 1 : at + 3]]
            if child.type in _CALLEES and following[:1] == ["("]:
                end = _next(children, at + 2, ("(", ")"))
                call = self._call(child, children[at + 2 : end], child)
                statements += [self._at(ast.Expr(value=call), child)] if call.keywords else []
                at = end
            elif child.type in _TARGETS and following == ["=", "{"]:
                end = _next(children, at + 3, ("{", "}"))
                statements.append(self._assignment(child, self._dict(children[at + 3 : end], child), child))
                at = end
            elif child.type in _TARGETS and following in (["=", "call"], ["=", "dictionary"]):
                statements.append(self._assignment(child, self._expression(children[at + 2]), child))
                at += 3
            else:
                rest.append(child)
                at += 1
        return statements, rest

    def _assignment(self, target: Node, value: ast.expr, node: Node) -> ast.stmt:
        return self._at(ast.Assign(targets=[self._expression(target)], value=value), node)

    def _at(self, tree: _Tree, node: Node) -> _Tree:
        """``tree`` with the place of ``node``: both count columns in UTF-8 bytes."""
        tree.lineno, tree.col_offset = node.start_point.row + 1, node.start_point.column
        tree.end_lineno, tree.end_col_offset = node.end_point.row + 1, node.end_point.column
        return tree


def _flat(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if node.type == "ERROR":
            yield from node.children
        else:
            yield node


def _next(nodes: Sequence[Node], start: int, types: tuple[str, ...]) -> int:
    """The index of the first node from ``start`` on of one of ``types``; behind the last if there is none."""
    return next((at for at in range(start, len(nodes)) if nodes[at].type in types), len(nodes))


def _text(node: Node) -> str:
    return (node.text or b"").decode()
