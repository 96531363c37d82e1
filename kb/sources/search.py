"""Looking into the source of a release: lines that match, a symbol, and what changed between two releases.

Every result says where it is: package, version, file, line.
"""

from __future__ import annotations

import ast
import difflib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from trainmedic.kb.errors import InvalidRequest, NotFound
from trainmedic.kb.lazy import regex
from trainmedic.kb.sources.tree import SourceTree
from trainmedic.kb.suggest import closest

_LONGEST_LINE = 300
_LONGEST_PATTERN = 300
_MOST_WILDCARDS = 2
_WILDCARD = regex(r"\.[*+]")
_SPECIAL = regex(r"\\.[*+?]?|\.[*+?]?|[\^$]", re.DOTALL)
_TOKEN = regex(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(|\)|[*+|]|\{\d*,\d*\}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines of a file; ``first`` counts from 1."""

    package: str
    version: str
    path: str
    first: int
    text: str
    symbol: str = ""

    @property
    def last(self) -> int:
        return self.first + self.text.count("\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """``complete`` is false if the time or the number of matches ended the search."""

    matches: tuple[Lines, ...]
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """``before`` or ``after`` is None if a release lacks it. ``text`` is a unified diff."""

    before: Lines | None
    after: Lines | None
    text: str


def find(tree: SourceTree, pattern: str, *, below: str = "", most: int = 50, seconds: float = 2.0) -> Found:
    """The lines that a regular expression matches, in paths that start with ``below``. Raises `InvalidRequest`.

    Patterns that take exponential time are refused; one line may still take long, so a service searches confined.
    """
    wanted = compiled(pattern)
    end, matches = time.monotonic() + seconds, list[Lines]()
    needed = _needed(pattern)
    for path in sorted(tree.paths(), key=lambda path: ("/models/" in path, path)):  # shared code first
        if not path.startswith(below):
            continue
        if time.monotonic() > end:
            return Found(matches=tuple(matches), complete=False)
        text = tree.text(path)
        for number, line in enumerate(_split(text) if needed in text else (), start=1):
            if time.monotonic() > end:
                return Found(matches=tuple(matches), complete=False)
            if not wanted.search(line[:_LONGEST_LINE]):
                continue
            if len(matches) == most:
                return Found(matches=tuple(matches), complete=False)
            matches.append(_lines(tree, path, number, line[:_LONGEST_LINE]))
    return Found(matches=tuple(matches), complete=True)


def symbol(tree: SourceTree, module: str, name: str = "") -> Lines:
    """A class, function, method or assigned name, decorators included; a whole file without ``name``.

    ``module`` is a path or a dotted name. Raises `NotFound`.
    """
    path = path_of(tree, module)
    if not name:
        return _lines(tree, path, 1, "\n".join(_split(tree.text(path))))
    known = defined(tree.text(path))
    if name not in known:
        near = closest(name, known)
        hint = f"did you mean {near}?" if near else None
        raise NotFound(f"{tree.package} {tree.version} has no {name} in {path}", hint=hint)
    first, last = known[name]
    lines = _split(tree.text(path))[first - 1 : last]
    return _lines(tree, path, first, "\n".join(lines), name)


def diff(before: SourceTree, after: SourceTree, module: str, name: str = "") -> Difference:
    """The changes of a symbol, or of a file without ``name``. Raises `NotFound` if neither release has it."""
    sides: list[Lines | None] = []
    missing: NotFound | None = None
    for tree in (before, after):
        try:
            sides.append(symbol(tree, module, name))
        except NotFound as error:
            missing = error
            sides.append(None)
    old, new = sides
    if missing and old is None and new is None:
        raise missing
    return Difference(before=old, after=new, text="".join(_unified(before, after, old, new)))


def path_of(tree: SourceTree, module: str) -> str:
    """The file of a path or dotted module. Raises `NotFound`."""
    if module in tree:
        return module
    dotted = module.replace(".", "/")
    for path in (f"{dotted}.py", f"{dotted}/__init__.py"):
        if path in tree:
            return path
    known = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in tree.paths()]
    near = closest(module, tree.paths() if "/" in module else known)
    hint = f"did you mean {near}?" if near else None
    raise NotFound(f"{tree.package} {tree.version} has no module {module}", hint=hint)


def _unified(before: SourceTree, after: SourceTree, old: Lines | None, new: Lines | None) -> Iterator[str]:
    old_text, new_text = _listed(old), _listed(new)
    if old_text == new_text:
        return
    names = [f"{tree.package} {tree.version}" for tree in (before, after)]
    paths = [side.path if side else "not there" for side in (old, new)]
    yield f"--- {names[0]}: {paths[0]}\n+++ {names[1]}: {paths[1]}\n"
    for group in difflib.SequenceMatcher(None, old_text, new_text, autojunk=False).get_grouped_opcodes(3):
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        yield f"@@ -{_start(old, a)},{b - a} +{_start(new, c)},{d - c} @@\n"
        for kind, i, j, k, m in group:
            if kind == "equal":
                yield from (f" {line}\n" for line in old_text[i:j])
            else:
                yield from (f"-{line}\n" for line in old_text[i:j])
                yield from (f"+{line}\n" for line in new_text[k:m])


def _listed(side: Lines | None) -> Sequence[str]:
    return side.text.split("\n") if side else ()


def _start(side: Lines | None, index: int) -> int:
    return side.first + index if side else 0


def _lines(tree: SourceTree, path: str, first: int, text: str, name: str = "") -> Lines:
    return Lines(package=tree.package, version=tree.version, path=path, first=first, text=text, symbol=name)


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises `InvalidRequest` for what is not a pattern, or may take for ever."""
    if len(pattern) > _LONGEST_PATTERN:
        raise InvalidRequest(f"the pattern is longer than {_LONGEST_PATTERN} characters", hint="search for less")
    if _repeats_a_choice(pattern) or len(_WILDCARD.findall(pattern)) > _MOST_WILDCARDS:
        hint = f"no repetition or | in a repeated group, and at most {_MOST_WILDCARDS} times .*"
        raise InvalidRequest("the pattern may never finish", hint=hint)
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidRequest(f"{pattern!r:.80} is not a regular expression ({error})") from error


def _needed(pattern: str) -> str:
    """Text that every match has, as far as it can be told of simple patterns."""
    plain = _SPECIAL.sub("\0", pattern)
    return "" if set(plain) & set("|()[]{}*+?\\") else max(plain.split("\0"), key=len)


def _repeats_a_choice(pattern: str) -> bool:
    """Whether a repeated group can match the same text in several ways."""
    open_groups, closed = [False], False
    for found in _TOKEN.finditer(pattern):
        token = found[0]
        if token == "(":
            open_groups.append(False)
        elif token == ")" and len(open_groups) > 1:
            closed = open_groups.pop()
            open_groups[-1] |= closed
            if closed and pattern[found.end() : found.end() + 1] in ("*", "+", "{"):
                return True
        elif token in ("*", "+", "|") or token.startswith("{"):
            open_groups[-1] = True
    return False


def _split(text: str) -> list[str]:
    """The lines as Python's parser counts them; `str.splitlines` knows more ends. No empty one after the last."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


@lru_cache(maxsize=32)
def defined(text: str) -> dict[str, tuple[int, int]]:
    """The lines of each definition by its dotted name; of several the last, as for Python, of assignments the first."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, tuple[int, int]] = {}
    _define(module.body, "", found)
    return found


def _define(body: Sequence[ast.stmt], above: str, found: dict[str, tuple[int, int]]) -> None:
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                first = min((node.lineno, *(each.lineno for each in node.decorator_list)))
                found[above + node.name] = (first, node.end_lineno or node.lineno)
                _define(node.body, f"{above}{node.name}.", found)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.setdefault(above + name, (node.lineno, node.end_lineno or node.lineno))
            case ast.If(body=inner, orelse=other) | ast.Try(body=inner, orelse=other):
                _define([*inner, *other], above, found)
            case ast.With(body=inner):
                _define(inner, above, found)
