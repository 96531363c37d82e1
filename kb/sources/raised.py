"""The code that a traceback went through, in the release that raised it: the line, its condition, what is around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from trainmedic.kb.error_messages import packages
from trainmedic.kb.errors import SourceError
from trainmedic.kb.model.evidence import Evidence, Traceback
from trainmedic.kb.model.place import Span
from trainmedic.kb.sources.library import Library
from trainmedic.kb.sources.search import Lines
from trainmedic.kb.sources.statements import condition, negated
from trainmedic.kb.sources.syntax import module_of
from trainmedic.kb.sources.tree import SourceTree

MOST_TRACEBACKS = 3
MOST_AROUND = 14
"""Lines that are shown."""
_BEFORE = 9
"""Of them before the line that raises."""
_LEAST_CODE = 6
"""Characters of a line that is looked for in the traceback."""
_LEAVING = (ast.Return, ast.Continue, ast.Break)
_INSTALLED = ("site-packages", "dist-packages")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A place in a package. ``symbol`` is the function with its classes, empty for code of the module."""

    package: str
    tree: SourceTree
    path: str
    line: int
    symbol: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """``code`` holds the line, ``condition`` what must hold to get there, as far as the function says.

    ``innermost`` is false if the exception came from code that is not at hand, which this line called.
    """

    code: Lines
    line: int
    condition: str
    innermost: bool
    exception: str
    span: Span


def raised_in(evidence: Evidence, library: Library) -> tuple[Raised, ...]:
    """Where each traceback ends in a package whose source is at hand."""
    found: dict[tuple[str, int], Raised] = {}
    for trace in _told(evidence):
        frames = list(frames_of(trace, evidence, library))
        if frames:
            number, frame = frames[0]
            found.setdefault((frame.path, frame.line), _raised(frame, trace, innermost=number == 0))
    return tuple(found.values())


def frames_in(evidence: Evidence, library: Library) -> tuple[Frame, ...]:
    """The places of all tracebacks in packages at hand, innermost first, each once."""
    found = {
        (frame.path, frame.symbol): frame
        for trace in reversed(_told(evidence))
        for _, frame in reversed(list(frames_of(trace, evidence, library)))
    }
    return tuple(reversed(found.values()))


def frames_of(trace: Traceback, evidence: Evidence, library: Library) -> Iterator[tuple[int, Frame]]:
    """The frames that are in a package at hand, innermost first, each with how many were inside of it.

    A frame counts if the function at its line has the name that the traceback gives, and if the traceback shows that
    very line, or shows none and the user said which release it is.
    """
    shown = _text_of(trace, evidence)
    for number, text in enumerate(reversed(trace.frames)):
        place, _, function = text.partition(" ")
        path, _, line = place.replace("\\", "/").rpartition(":")
        for name, inner in _packaged(path):
            stated = evidence.versions.get(name)
            version = stated.exact if stated is not None else None
            tree = library.here(name, version)
            if tree is None or inner not in tree or not line.isdecimal():
                continue
            try:
                frame = _frame(tree, name, inner, int(line), trace.span)
            except SourceError:
                continue
            named = "" if function == "<module>" else function.rpartition(".")[2]
            if frame is None or (frame.symbol.rpartition(".")[2] != named and not named.startswith("<")):
                continue
            line_shown = _shown(frame, path, shown)
            if line_shown if line_shown is not None else version is not None:
                yield number, frame
                break


def enclosing(module: ast.Module, line: int) -> tuple[str, Function | None]:
    """The function that a line is in, named with its classes; empty for code of the module."""
    name, found, body = "", None, module.body
    while inside := [node for node in _definitions(body) if _first(node) <= line <= (node.end_lineno or line)]:
        node = inside[-1]
        name = f"{name}.{node.name}" if name else node.name
        found, body = (node if not isinstance(node, ast.ClassDef) else found), node.body
    return (name, found) if found is not None else ("", None)


def guards(body: Sequence[ast.stmt], line: int) -> tuple[str, int]:
    """The condition under which a line is reached, empty if none is, and the line where that begins."""
    tests: tuple[ast.expr, ...] = ()
    start = line
    while True:
        outer = tests
        for statement in body:
            if _has(statement, line):
                break
            if isinstance(statement, ast.If) and not statement.orelse and isinstance(statement.body[-1], _LEAVING):
                tests = (*outer, negated(statement.test))  # of several guards only the last counts
        else:
            return condition(tests) if tests else "", start
        match statement:
            case ast.If():
                holds = any(_has(each, line) for each in statement.body)
                tests = (*tests, statement.test if holds else negated(statement.test))
                body, start = statement.body if holds else statement.orelse, statement.lineno
            case ast.Assert():
                return condition((*tests, negated(statement.test))), min(start, statement.lineno)
            case ast.Try():
                handled = [each for handler in statement.handlers for each in handler.body]
                body = [*statement.body, *handled, *statement.orelse, *statement.finalbody]
            case ast.For() | ast.AsyncFor() | ast.While() | ast.With() | ast.AsyncWith():
                body = [*statement.body, *getattr(statement, "orelse", ())]
            case _:
                return condition(tests) if tests else "", start


def _told(evidence: Evidence) -> Sequence[Traceback]:
    with_frames = [trace for trace in evidence.tracebacks if trace.frames]
    return sorted(with_frames, key=lambda trace: not trace.root)[:MOST_TRACEBACKS]


def _raised(frame: Frame, trace: Traceback, *, innermost: bool) -> Raised:
    text = frame.tree.text(frame.path)
    module = _module(text)
    _, function = enclosing(module, frame.line)
    when, start = guards(function.body if function is not None else module.body, frame.line)
    lines = text.replace("\r\n", "\n").split("\n")
    top, bottom = (function.lineno, function.end_lineno or len(lines)) if function is not None else (1, len(lines))
    first = max(top, min(start, frame.line), frame.line - _BEFORE)
    last = min(bottom, frame.line + MOST_AROUND - 1 - _BEFORE, first + MOST_AROUND - 1)
    code = Lines(
        package=frame.tree.package,
        version=frame.tree.version,
        path=frame.path,
        first=first,
        text="\n".join(lines[first - 1 : last]),
        symbol=frame.symbol,
    )
    return Raised(
        code=code,
        line=frame.line,
        condition=when,
        innermost=innermost,
        exception=trace.exception,
        span=trace.span,
    )


def _frame(tree: SourceTree, package: str, path: str, line: int, span: Span) -> Frame | None:
    text = tree.text(path)
    if not 0 < line <= text.count("\n") + 1:
        return None
    symbol, _ = enclosing(_module(text), line)
    return Frame(package=package, tree=tree, path=path, line=line, symbol=symbol, span=span)


def _shown(frame: Frame, path: str, lines: Sequence[str]) -> bool | None:
    """Whether the line below the frame in the traceback is that of the release; None if there is none."""
    head = f'{path.rpartition("/")[2]}", line {frame.line},'
    frames = ((line.find('File "'), after) for line, after in pairwise(lines) if head in line)
    below = [after for at, after in frames if after[at : at + 2] == "  "]  # code is indented more than its frame
    code = frame.tree.text(frame.path).split("\n")[frame.line - 1].strip()
    return any(line.endswith(code) for line in below) if below and len(code) >= _LEAST_CODE else None


def _text_of(trace: Traceback, evidence: Evidence) -> Sequence[str]:
    source = next((each for each in evidence.sources if each.name == trace.span.attachment), None)
    lines = source.text.split("\n") if source is not None else []
    return [line.rstrip() for line in lines[trace.span.line - 1 : trace.span.end_line]]


def _packaged(path: str) -> Iterator[tuple[str, str]]:
    """The packages that a path may be in, with its path there: behind ``site-packages``, or in a checkout."""
    parts = path.split("/")
    known = _modules()
    for at in range(len(parts) - 2, -1, -1):
        if parts[at] in known and (at == 0 or parts[at - 1] in _INSTALLED or not set(parts[:at]) & set(_INSTALLED)):
            yield known[parts[at]], "/".join(parts[at:])


@cache
def _modules() -> Mapping[str, str]:
    return {module: name for name in packages.names() for module in packages.package(name).modules}


@lru_cache(maxsize=4)
def _module(text: str) -> ast.Module:
    return module_of(text)


def _has(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or line)


def _first(node: Function | ast.ClassDef) -> int:
    return min((node.lineno, *(each.lineno for each in node.decorator_list)))


def _definitions(body: Sequence[ast.AST]) -> Iterator[Function | ast.ClassDef]:
    """Those of a block, also below conditions and loops, not those inside of others."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
        elif isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from _definitions(list(ast.iter_child_nodes(node)))
