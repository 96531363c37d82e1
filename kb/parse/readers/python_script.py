"""Python text → options with positions: keyword arguments of calls and entries of configuration dicts. Never executed.

``scope`` is the called name's last part: the class (``DPOConfig``); ``from_pretrained`` where the trained model is
loaded and ``X.from_pretrained`` for any other load (see `kb.parse.readers.loads`; the first argument is the option
``pretrained_model_name_or_path``). Dict literals assigned to a name that says
configuration have scope ``deepspeed`` where they are one for DeepSpeed, else none;
``os.environ[...] = ...`` has ``env``. In a Python configuration file (profiles: ``python_settings``) every assignment
at the top level is an option; ``lr=dict(value=1)`` is ``lr.value``.
Names resolve through plain assignments; what only running the program would tell is `Unresolved`.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator

from trainmedic.kb.frameworks.profiles import BESIDE, SCRIPTED, profiles, select
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Call
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.run import CAST, Origin, Scalar, Value
from trainmedic.kb.parse.code import flaws
from trainmedic.kb.parse.code.program import dotted, last_part
from trainmedic.kb.parse.readers import casts, loads
from trainmedic.kb.parse.readers.literal import Scanner
from trainmedic.kb.parse.readers.nodes import (
    DEEPEST,
    LONGEST_INTEGER,
    Entries,
    Flattener,
    Items,
    Leaf,
    Node,
    Pair,
    deepest_bracket,
    leaf,
    unresolved,
)
from trainmedic.kb.parse.readers.python_repair import MOST_BRACKETS, straightened, survivors
from trainmedic.kb.parse.source import LineIndex, Piece, Reading
from trainmedic.kb.parse.text.completeness import elided
from trainmedic.kb.parse.text.patterns import CONFIG_KEYS

_TOO_LARGE = 10**LONGEST_INTEGER
_MOST_CALLS = 400
_LEAST_KEYWORDS = 2
"""Keywords that configure training, which make the arguments of a plain function options."""
_POSITIONAL = {
    "from_pretrained": (0, "pretrained_model_name_or_path"),
    "DPOTrainer": (1, "ref_model"),
    "KTOTrainer": (1, "ref_model"),
}
"""The argument of a call that is mostly written without its name, and its place."""
_LONGEST = 300_000  # longer text is scanned, not parsed
_CLEAN = regex("[\x00\r\x0b\x0c\ud800-\udfff]")
_MAGIC = regex(r"^([ \t]*)[!%](?=[\w% ])", re.MULTILINE)
_PROMPT = regex(r"^(?:>>> ?|\.\.\. )", re.MULTILINE)
_KEYWORD_LINE = regex(r"^[ \t]*(?P<key>[A-Za-z_]\w*)[ \t]*=(?!=)", re.MULTILINE)
_CONFIG_NAME = regex(r"args|config|cfg|kwargs|param|argument|\bds\b|zero", re.IGNORECASE)
_VARIABLES = {name: regex(file.variable, re.IGNORECASE) for name, file in BESIDE.items() if file.variable}
"""Library → the names of variables that hold its configuration."""
_STRATEGIES = ("IntervalStrategy", "SaveStrategy", "EvaluationStrategy")
"""Enumerations of transformers whose values are their names in lower case."""
_MODULES = frozenset({"torch", "th", "np", "numpy", "jnp", *SCRIPTED, *select("library")})
_FUNCTIONS = frozenset({"from_pretrained", "get_peft_model", "prepare_model_for_kbit_training", "initialize"})
_IGNORED = frozenset(
    {"ArgumentParser", "Path", "Namespace", "HfArgumentParser", "Exception", "ValueError", "RuntimeError"}
)
_SETTINGS = frozenset(name for profile in profiles().values() for name in profile.python_settings)
_FIRST = regex(
    r"\A(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*[a-z_]\w*[ \t]*=[^=\n][^\n]*,[ \t]*(?:#[^\n]*)?(?=\n|\Z)"
)  # `key=value,`


def read(piece: Piece) -> Reading:
    """All options that ``piece`` spells out; ``partial`` where it is a fragment, elided or unreadable in part."""
    flattener = Flattener(piece, Origin.PYTHON)
    text = _PROMPT.sub(lambda match: " " * len(match[0]), _CLEAN.sub(" ", piece.text))
    text = _MAGIC.sub(r"\1#", text)
    straight = straightened(text)
    parsed = _parse(text) or (_parse(straight) if straight != text else None)
    if parsed is None:
        message = "this is not complete Python; read as far as it goes"
        flattener.problem("python_error", message, 0, min(len(text), 80))
        program = _Program(survivors(text), text, 0, text, fragment=True)
        if not any(isinstance(node, ast.Call | ast.Dict | ast.Import | ast.ImportFrom) for node in program.nodes):
            _keyword_lines(text, flattener)
    else:
        tree, source, shift, fragment = parsed
        program = _Program(tree, source, shift, text, fragment=fragment)
    for scope, entries in program.groups():
        flattener.add(entries, scope)
    found = () if parsed is None else flaws.read(program.tree, text, program.place(piece), whole=not elided(piece))
    return flattener.reading(partial=program.partial, calls=program.calls(piece), flaws=found)


def _parse(text: str) -> tuple[ast.Module, str, int, bool] | None:
    """(tree, parsed source, characters put before the text, whether it is only a fragment of a call)."""
    if len(text) > _LONGEST or deepest_bracket(text) > MOST_BRACKETS:
        return None
    first = _FIRST.search(text)
    loose = (
        first is not None and first[0].count("(") == first[0].count(")") and first[0].count("[") == first[0].count("]")
    )
    wraps = [("", ""), ("if 1:\n", "\n"), ("_(\n", "\n)"), ("_ = (\n", "\n)")]
    for before, after in [wraps[2], *wraps] if loose else wraps:
        source = before + text + after
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(source), source, len(before), before.startswith("_(")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _keyword_lines(text: str, flattener: Flattener) -> None:
    """The ``key=value`` lines of a damaged text that holds no call: arguments copied out of one."""
    scanner = Scanner(text, code="python_error")
    for line in _KEYWORD_LINE.finditer(text):
        if line.start() < scanner.at:
            continue
        scanner.at = line.end()
        value = scanner.value(1)
        if isinstance(value, Leaf | Items):
            pair = Pair(key=line["key"], start=line.start("key"), end=line.end("key"), value=scanner.whole(value))
            flattener.add(Entries(start=line.start(), end=scanner.at, pairs=[pair]))
    flattener.flaws(scanner.flaws)


class _Program:
    """One parsed text: assignments, calls and dicts, as entries with offsets into the user's text."""

    def __init__(self, tree: ast.Module, source: str, shift: int, text: str, *, fragment: bool) -> None:
        self.tree = tree
        self.text = text
        self.shift = shift
        self.fragment = self.partial = fragment
        self.lines = source.split("\n")
        self.starts = LineIndex(source).starts
        self.nodes = list(ast.walk(tree))
        self.names: dict[str, ast.expr | None] = {}
        self.used: set[int] = set()
        self.spreading: set[int] = set()  # what is being spread now: a dictionary may spread itself
        self.loads = loads.scopes(self.nodes)
        self.top = frozenset(id(node) for node in tree.body)
        self.configuration = any(
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in _SETTINGS
            for node in tree.body
        )
        for node in self.nodes:
            if isinstance(node, ast.AugAssign) and id(node) in self.top and isinstance(node.target, ast.Name):
                before = self.names.get(node.target.id)
                after = before and ast.copy_location(ast.BinOp(before, node.op, node.value), node)
                self.names[node.target.id] = after
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assigned(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._assigned(node.target, node.value)
            elif isinstance(node, ast.AugAssign | ast.For):
                self._assigned(node.target, None)

    def _assigned(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = None if target.id in self.names else value

    def groups(self) -> Iterator[tuple[str, Entries]]:
        """(scope, entries) in the order written."""
        found: list[tuple[int, str, Entries]] = []
        for node in self.nodes:
            if isinstance(node, ast.Call) and (scope := self._called(node)) is not None:
                start = self.offset(node.lineno, node.col_offset)
                found.append((start, self.loads.get(id(node), scope), self._call(node, scope)))
        for node in self.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                setting = self.configuration and id(node) in self.top
                group = (self._setting if setting else self._assignment)(node.targets[0], node.value)
                if group is not None:
                    found.append((group[1].start, *group))
        for node in self.nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Dict):
                entries = self._dict(node.value, 0)
                found.append((entries.start, _dict_scope("", entries), entries))
        found += [(entries.start, CAST, entries) for entries in casts.entries(self.nodes, self.loads, self)]
        for _, scope, entries in sorted(found, key=lambda item: item[0]):
            yield scope, entries

    def calls(self, piece: Piece) -> Iterator[Call]:
        """The calls with arguments, of whatever is called, in the order written."""
        flattener = Flattener(piece, Origin.PYTHON)
        nodes = [node for node in self.nodes if isinstance(node, ast.Call) and (node.args or node.keywords)]
        for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))[:_MOST_CALLS]:
            name = dotted(node.func, of_value=True)
            if not name or (name == "_" and self.fragment):
                continue
            pairs = [
                Pair(key=str(at), start=self.start(arg), end=self.start(arg), value=self.node(arg))
                for at, arg in enumerate(node.args)
                if not isinstance(arg, ast.Starred)
            ]
            pairs += [
                Pair(key=word.arg, start=start, end=start + len(word.arg), value=self.node(word.value))
                for word in node.keywords
                if word.arg is not None
                for start in (self.offset(word.lineno, word.col_offset),)
            ]
            place = piece.span(self.start(node.func), self.end(node.func))
            yield Call(name=name, arguments=flattener.arguments(pairs, name), span=place)

    def place(self, piece: Piece) -> Callable[[ast.expr | ast.stmt], Span]:
        """The user's span of a node; of a statement with a body, of its first line."""

        def span(node: ast.expr | ast.stmt) -> Span:
            return piece.span(self.start(node), self.end(node))

        return span

    def _called(self, call: ast.Call) -> str | None:
        """The scope of a call whose arguments are configuration, or None."""
        name = last_part(call.func)
        if name == "_" and self.fragment:
            return ""
        if name in _IGNORED or name in ("dict", "add_argument"):
            return None
        if name[:1].isupper() or name in _FUNCTIONS or name.endswith("_main"):
            return name
        configures = sum(keyword.arg in CONFIG_KEYS for keyword in call.keywords)
        return name if name and configures >= _LEAST_KEYWORDS else None

    def _call(self, call: ast.Call, scope: str) -> Entries:
        entries = Entries(start=self.start(call), end=self.end(call))
        if any(isinstance(arg, ast.Constant) and arg.value is Ellipsis for arg in call.args):
            self.partial = True
        at, key = _POSITIONAL.get(scope, (len(call.args), ""))
        if at < len(call.args):
            value = self.node(call.args[at])
            entries.pairs.append(Pair(key=key, start=value.start, end=value.end, value=value))
        for keyword in call.keywords:
            if keyword.arg is None:
                self._spread(keyword.value, entries)
                continue
            start = self.offset(keyword.lineno, keyword.col_offset)
            value = self._type(keyword.value) if keyword.arg == "type" else self.node(keyword.value)
            entries.pairs.append(Pair(key=keyword.arg, start=start, end=start + len(keyword.arg), value=value))
        return entries

    def _type(self, value: ast.expr) -> Node:
        """A class, in the configuration files that name classes instead of calling them, is its name."""
        held = self._held(value) if self.configuration else None
        name = dotted(held, of_value=True)
        name = name or (value.id if self.configuration and isinstance(value, ast.Name) else "")
        return leaf(self.text, self.start(value), self.end(value), name) if name else self.node(value)

    def _spread(self, value: ast.expr, entries: Entries) -> None:
        """``**{...}`` and ``**name``."""
        held = self._held(value)
        node = None
        if held is not None and id(held) not in self.spreading:
            self.spreading.add(id(held))
            node = self.node(held)
            self.spreading.discard(id(held))
        if isinstance(node, Entries):
            self.used.add(id(held))
            entries.pairs.extend(node.pairs)
        else:
            self.partial = True

    def _held(self, value: ast.expr) -> ast.expr | None:
        return self.names.get(value.id) if isinstance(value, ast.Name) else value

    def _setting(self, target: ast.expr, value: ast.expr) -> tuple[str, Entries] | None:
        if not isinstance(target, ast.Name):
            return None
        start = self.start(target)
        pair = Pair(key=target.id, start=start, end=self.end(target), value=self.node(value))
        return "", Entries(start=start, end=pair.value.end, pairs=[pair])

    def _assignment(self, target: ast.expr, value: ast.expr) -> tuple[str, Entries] | None:
        start = self.start(target)
        if isinstance(target, ast.Name):
            if id(value) in self.used or not _CONFIG_NAME.search(target.id):
                return None
            entries = self.node(value)
            return (_dict_scope(target.id, entries), entries) if isinstance(entries, Entries) else None
        if isinstance(target, ast.Subscript):
            key = target.slice
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                return None
            base = ast.unparse(target.value) if isinstance(target.value, ast.Attribute | ast.Name) else ""
            if base not in ("os.environ", "environ") and not _CONFIG_NAME.search(base):
                return None
            scope = "env" if "environ" in base else _dict_scope(base, None)
            pair = Pair(key=key.value, start=self.start(key), end=self.end(key), value=self.node(value))
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute):
            holder = target.value.attr
            if not _CONFIG_NAME.search(holder):
                return None
            end = self.end(target)
            scope = "" if holder.endswith("args") else holder
            pair = Pair(key=target.attr, start=end - len(target.attr), end=end, value=self.node(value))
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            held = self.names.get(target.value.id)
            owner = self._called(held) if isinstance(held, ast.Call) else None
            if owner is None and not _CONFIG_NAME.search(target.value.id):
                return None
            scope, end = owner or "", self.end(target)
            pair = Pair(key=target.attr, start=end - len(target.attr), end=end, value=self.node(value))
        else:
            return None
        return scope, Entries(start=start, end=pair.value.end, pairs=[pair])

    def node(self, expr: ast.expr, depth: int = 0) -> Node:
        """An expression as leaves, lists and entries; what is not spelled out is unresolved."""
        start, end = self.start(expr), self.end(expr)
        if depth < DEEPEST:
            if isinstance(expr, ast.List | ast.Tuple | ast.Set):
                return Items(start=start, end=end, items=[self.node(item, depth + 1) for item in expr.elts])
            if isinstance(expr, ast.Dict):
                return self._dict(expr, depth)
            if (
                isinstance(expr, ast.Call)
                and isinstance(expr.func, ast.Name)
                and expr.func.id == "dict"
                and not expr.args
            ):
                return self._call(expr, "dict")
            if isinstance(expr, ast.Name):
                held = self.names.get(expr.id)
                if isinstance(held, ast.Dict) and depth < 4:
                    self.used.add(id(held))
                    return self.node(held, depth + 8)
                return self._named(expr, held, start, end)
        known, value = self._fixed(expr)
        if not known:
            return unresolved(self.text, start, end)
        if isinstance(expr, ast.Constant) and isinstance(value, str):
            return Leaf(start=start, end=end, value=value, raw=value, quoted=True)
        return leaf(self.text, start, end, value)

    def _named(self, expr: ast.Name, held: ast.expr | None, start: int, end: int) -> Node:
        if isinstance(held, ast.List | ast.Tuple):
            items = [self._fixed(item) for item in held.elts]
            if all(known for known, _ in items):
                return leaf(self.text, start, end, tuple(value for _, value in items))
        known, value = self._fixed(held) if held is not None else (False, None)
        return leaf(self.text, start, end, value) if known else unresolved(self.text, start, end)

    def _dict(self, expr: ast.Dict, depth: int) -> Entries:
        entries = Entries(start=self.start(expr), end=self.end(expr))
        for key, value in zip(expr.keys, expr.values, strict=True):
            if key is None:
                self._spread(value, entries)
            elif isinstance(key, ast.Constant):
                name = str(self._fixed(key)[1] if isinstance(key.value, int) else key.value)
                pair = Pair(key=name, start=self.start(key), end=self.end(key), value=self.node(value, depth + 1))
                entries.pairs.append(pair)
        return entries

    def _fixed(self, expr: ast.expr, depth: int = 0) -> tuple[bool, Value]:
        """(whether the text spells it out, the value): constants, signs, dotted names, plain arithmetic, names."""
        if depth > 16:
            return False, None
        if isinstance(expr, ast.Constant):
            held = expr.value
            if isinstance(held, int) and abs(held) >= _TOO_LARGE:
                return True, "".join(self.text[self.start(expr) : self.end(expr)].split())
            if held is None or isinstance(held, str | int | float):
                return True, held
            return False, None
        if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.USub | ast.UAdd):
            known, value = self._fixed(expr.operand, depth + 1)
            if known and isinstance(value, int | float) and not isinstance(value, bool):
                return True, -value if isinstance(expr.op, ast.USub) else value
        elif isinstance(expr, ast.BinOp):
            return self._arithmetic(expr, depth)
        elif isinstance(expr, ast.Attribute):
            return _constant(expr)
        elif isinstance(expr, ast.Name) and (assigned := self.names.get(expr.id)) is not None:
            return self._fixed(assigned, depth + 1)
        return False, None

    def _arithmetic(self, expr: ast.BinOp, depth: int) -> tuple[bool, Value]:
        (_, left), (_, right) = self._fixed(expr.left, depth + 1), self._fixed(expr.right, depth + 1)
        numbers = all(isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < 1e18 for x in (left, right))
        if not numbers or not isinstance(left, int | float) or not isinstance(right, int | float):
            return False, None
        result: Scalar = None
        match expr.op:
            case ast.Add():
                result = left + right
            case ast.Sub():
                result = left - right
            case ast.Mult():
                result = left * right
            case ast.Div() if right:
                result = left / right
            case ast.FloorDiv() if right:
                result = left // right
        return result is not None, result

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self.offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def offset(self, line: int, column: int) -> int:
        """`ast` counts UTF-8 bytes; the offset into the user's text counts code points."""
        text = self.lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return self.starts[line - 1] + column - self.shift


def _constant(expr: ast.Attribute) -> tuple[bool, Value]:
    name = dotted(expr)
    owner = name.partition(".")[0]
    if name.rpartition(".")[0].rpartition(".")[2] in _STRATEGIES:
        return True, expr.attr.lower()
    if owner in _MODULES or owner[:1].isupper():
        return True, name
    return False, None  # model_args.name: a value that only running the program would tell


def _dict_scope(name: str, node: Node | None) -> str:
    keys = {pair.key for pair in node.pairs} if isinstance(node, Entries) else set()
    return next((each for each, named in _VARIABLES.items() if named.search(name) or BESIDE[each].has(keys)), "")
