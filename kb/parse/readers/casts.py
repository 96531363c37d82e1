"""Where a script turns the trained model into another dtype: ``model.half()``, ``.to(torch.bfloat16)`` behind its load.

Only what is plausibly that model counts: what a load of it returns, a model class or ``from_config``, or a variable
called ``model``. Not inputs, not a reference model or a scorer, not what follows ``trainer.train()`` (a cast before
saving), not a function that evaluates or exports, not a script that saves or runs a model and trains none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.code.program import last_part
from trainmedic.kb.parse.readers.loads import ASIDE, TRAINED, DataFlow, is_model, load_class
from trainmedic.kb.parse.readers.nodes import Entries, Leaf, Node, Pair, leaf, unresolved

NAMED = {"half": "torch.float16", "bfloat16": "torch.bfloat16", "float": "torch.float32"}
"""Methods without an argument, and the dtype that they give."""
_DTYPES = frozenset({"float16", "half", "bfloat16", "float32", "float"})
KEY = "torch_dtype"
"""The key of a cast's option: the one of the load whose dtype it replaces."""
_SAME = frozenset(
    {"to", "cuda", "cpu", "npu", "xpu", "eval", "train", "requires_grad_", "merge_and_unload"} | set(NAMED)
)
_WRAPPERS = regex(r"get_peft_model|prepare_model_for_\w+|compile|(?:Distributed)?DataParallel|PeftModel\w*")
_NAMES = regex(
    r"(?:(?:base|peft|lora|train|trained|causal|student|policy|actor|hf|my)_?)?(?:model|net|lm|llm)|policy|actor",
    re.IGNORECASE,
)
_CLASS = regex(r"(?:[A-Z]\w*)?(?:For[A-Z]\w+|LMHeadModel\w*|Model)")
_LATER = regex(r"infer|eval|generat|predict|save|merge|export|test|sample|chat|demo", re.IGNORECASE)
_WRITES = frozenset({"push_to_hub", "save_pretrained", "generate", "pipeline"})
_TRAINS = regex(
    r"\w*Trainer|\w*TrainingArguments|(?:SFT|DPO|KTO|ORPO|CPO|GRPO|RLOO|PPO|Reward)Config|backward|initialize|prepare"
)
_DEEPEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """One cast of ``owner``. ``dtype`` is its argument, None for a method that names it."""

    call: ast.Call
    owner: ast.expr
    method: str
    dtype: ast.expr | None = None
    keyword: ast.keyword | None = None


class Script(Protocol):
    """A reader's view of its text: where an expression stands in it, and what it is worth."""

    text: str

    def offset(self, line: int, column: int) -> int:
        """The offset of a position of the syntax tree."""

    def end(self, node: ast.expr) -> int:
        """The offset behind an expression."""

    def node(self, expr: ast.expr) -> Node:
        """An expression as far as the text spells it out."""


def entries(nodes: Sequence[ast.AST], loads: Mapping[int, str], script: Script) -> Iterator[Entries]:
    """Each cast of the trained model as one entry `KEY`; its value is unresolved if the cast depends on a condition.

    ``loads`` comes from `kb.parse.readers.loads.scopes`.
    """
    found = [cast for node in nodes if isinstance(node, ast.Call) and (cast := _cast(node)) is not None]
    if not found or _only_writes(nodes):
        return
    flow = _Variables(nodes, loads)
    for cast in found:
        sure = flow.place(cast.call)
        if sure is None or not flow.is_model(cast.owner):
            continue
        if cast.dtype is None:
            end = script.end(cast.call)
            start = script.end(cast.call.func) - len(cast.method)
            value: Node = leaf(script.text, start, end, NAMED[cast.method])
        else:
            value = script.node(cast.dtype)
            start = value.start
        if not sure:
            value = unresolved(script.text, value.start, value.end)
        if cast.keyword is not None:
            start = script.offset(cast.keyword.lineno, cast.keyword.col_offset)
        if isinstance(value, Leaf):
            yield _entry(start, value)


def _entry(start: int, value: Leaf) -> Entries:
    """``half()`` and ``torch.float16`` stand for key and value both; ``dtype=…`` has a key of its own."""
    end = value.end if start == value.start else start + len("dtype")
    return Entries(start=start, end=value.end, pairs=[Pair(key=KEY, start=start, end=end, value=value)])


def _cast(call: ast.Call) -> Cast | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    method, owner = call.func.attr, call.func.value
    if method in NAMED and not call.args and not call.keywords:
        return Cast(call=call, owner=owner, method=method)
    if method != "to":
        return None
    for keyword in call.keywords:
        if keyword.arg == "dtype":
            return Cast(call=call, owner=owner, method=method, dtype=keyword.value, keyword=keyword)
    for each in call.args:
        if _names_dtype(each) or "dtype" in last_part(each).lower():
            return Cast(call=call, owner=owner, method=method, dtype=each)
    return None


def _names_dtype(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Attribute) and isinstance(expr.value, ast.Name) and expr.attr in _DTYPES


def _only_writes(nodes: Sequence[ast.AST]) -> bool:
    """Whether a script makes, converts or runs a model and trains none."""
    names = {last_part(node.func) for node in nodes if isinstance(node, ast.Call)}
    return bool(names & _WRITES) and not any(_TRAINS.fullmatch(name) for name in names)


def _runs(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether ``trainer.train(…)`` is called here."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "train"):
        return False
    return "trainer" in last_part(node.func.value).lower()


class _Variables(DataFlow):
    """What each variable of a script holds, and what stands around each of its calls."""

    def __init__(self, nodes: Sequence[ast.AST], loads: Mapping[int, str]) -> None:
        super().__init__(nodes)
        self.loads = loads
        self.parents: dict[int, ast.AST] = {}
        self.judged: dict[str, bool | None] = {}
        self.trains_at = -1  # the first line on which a trainer runs
        for node in nodes:
            for child in ast.iter_child_nodes(node):
                self.parents[id(child)] = node
            if _runs(node) and not 0 <= self.trains_at < node.lineno:
                self.trains_at = node.lineno

    def place(self, call: ast.Call) -> bool | None:
        """True if a call always precedes training, False if that depends on a condition, None if it never does."""
        if 0 <= self.trains_at < call.lineno:
            return None
        sure, node = True, self.parents.get(id(call))
        child: ast.AST = call
        while node is not None:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _LATER.search(node.name):
                return None
            if isinstance(node, ast.If | ast.IfExp) and child is not node.test:
                sure = sure and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))
            elif isinstance(node, ast.ExceptHandler | ast.Lambda):
                sure = False
            child, node = node, self.parents.get(id(node))
        return sure

    def is_model(self, expr: ast.expr, depth: int = 0) -> bool | None:
        """Whether an expression is the trained model; None if undecided. Each variable is judged once."""
        if depth > _DEEPEST:
            return None
        if isinstance(expr, ast.Call):
            return self._made(expr, depth + 1)
        name = last_part(expr)
        if not name or ASIDE.search(name):
            return False
        if name not in self.judged:
            self.judged[name] = None  # what is assigned in a circle says nothing
            held = [self.is_model(value, depth + 1) for value in self.values.get(name, ())]
            called = False not in held and _NAMES.fullmatch(name) is not None
            self.judged[name] = True in held or called
        return self.judged[name]

    def _made(self, call: ast.Call, depth: int) -> bool | None:
        name = last_part(call.func)
        scope = self.loads.get(id(call))
        if scope is not None and not _WRAPPERS.fullmatch(load_class(scope)):
            return scope == TRAINED
        if isinstance(call.func, ast.Attribute) and name in _SAME:
            return self.is_model(call.func.value, depth)
        if _WRAPPERS.fullmatch(name) or scope is not None:
            held = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "model")]
            return self.is_model(held[0], depth) if held else None
        owner = last_part(call.func.value) if isinstance(call.func, ast.Attribute) and name == "from_config" else name
        if _CLASS.fullmatch(owner):
            return is_model(owner)
        return None
