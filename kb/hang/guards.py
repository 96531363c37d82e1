"""Context of a line in the user's own source: the conditions it stands under, and the loops around it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from trainmedic.kb.hang.where import about
from trainmedic.kb.model.place import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """``conditions``: the tests of the branches that a line is in, and those on the rank that leave before it.
    ``loops``: the lines where its loops begin."""

    conditions: tuple[str, ...] = ()
    loops: tuple[int, ...] = ()
    known: bool = False


def around(sources: Iterable[Source], file: str, line: int) -> Around:
    """Blocks around a line of a file that was given too; none if it was not, or cannot be parsed."""
    base = file.replace("\\", "/").rpartition("/")[2]
    for source in sources:
        if (source.name or "").replace("\\", "/").rpartition("/")[2] == base and not source.truncated:
            tree = _parsed(source.text)
            if tree is not None:
                enclosing = list(_enclosing(tree, line))
                inside = (ast.unparse(node.test) for node in enclosing if isinstance(node, ast.If))
                return Around(
                    conditions=(*inside, *(f"not ({ast.unparse(test)})" for test in _left_by(enclosing, line))),
                    loops=tuple(node.lineno for node in enclosing if isinstance(node, (ast.For, ast.While))),
                    known=True,
                )
    return Around()


@lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _enclosing(node: ast.AST, line: int) -> Iterator[ast.AST]:
    """The branches, loops and functions around a line, outermost first; no line of a test or head is inside."""
    for child in ast.iter_child_nodes(node):
        end = getattr(child, "end_lineno", None)
        if end is None or not child.lineno <= line <= end:  # type: ignore[attr-defined]
            continue
        body = getattr(child, "body", None)
        if isinstance(child, (ast.If, ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)) and body:
            inside = body[0].lineno <= line
            if inside:
                yield child
        yield from _enclosing(child, line)
        return


def _left_by(enclosing: Iterable[ast.AST], line: int) -> Iterator[ast.expr]:
    """The tests of the rank above a line, in the bodies around it, that end the function or the loop's pass."""
    for node in enclosing:
        for statement in getattr(node, "body", ()):
            if isinstance(statement, ast.If) and statement.end_lineno is not None and statement.end_lineno < line:
                leaves = isinstance(statement.body[-1], (ast.Return, ast.Continue, ast.Break))
                if leaves and about((), "rank", (ast.unparse(statement.test),)):
                    yield statement.test
