"""Which of a script's ``from_pretrained`` calls loads the model that is trained.

A script may load a reference model, a scorer, a tokenizer beside it; their dtype says nothing about the training.
What is handed to a trainer decides; without one, what the variables and classes are called; else nothing does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.code.program import keyword, last_part

TRAINED = "from_pretrained"
"""The scope of a load of the trained model; every other load has its class before it."""

_NO_MODEL = regex(r"Tokenizer|Processor|Config$|FeatureExtractor|Scheduler|Pipeline|^PeftModel|^Lora|^Adapter")
_SCORER = regex(r"For(?:Sequence|Token)Classification|RewardModel|CrossEncoder|SentenceTransformer")
ASIDE = regex(
    r"(?:^|_)(?:ref|reference|reward|rewards|rm|critic|value|teacher|judge|scorer|score|toxic\w*|draft|embed\w*"
    r"|classifier|sentiment|eval|old|vae|unet)(?:_|\d|$)",
    re.IGNORECASE,
)
"""Names of variables that hold another model than the trained one."""
_REWARD = regex(r"Reward(?:Trainer|Config)|PRM(?:Trainer|Config)|SEQ_CLS|TOKEN_CLS|(?<![A-Za-z])Trainer")
_WRAPPERS = ("initialize", "prepare")
_DEEPEST = 60  # calls around a load; a variable counts as several
_VARIABLE = 4


def load_class(name: str) -> str:
    """The class before ``.from_pretrained``, or ""."""
    return name.removesuffix(f".{TRAINED}").rpartition(".")[2] if name.endswith(f".{TRAINED}") else ""


def is_model(owner: str) -> bool:
    """Whether ``owner.from_pretrained`` loads a model: not a tokenizer, a configuration, an adapter."""
    return not _NO_MODEL.search(owner)


def scopes(nodes: Sequence[ast.AST]) -> Mapping[int, str]:
    """``id`` of each ``from_pretrained`` call → its scope: `TRAINED`, or ``AutoTokenizer.from_pretrained``."""
    loads = [node for node in nodes if isinstance(node, ast.Call) and _is_load(node)]
    if not loads:
        return {}
    models = [load for load in loads if is_model(_owner(load))]
    trained = {id(load) for load in _chosen(models, DataFlow(nodes))}
    return {
        id(load): TRAINED if id(load) in trained or not _owner(load) else f"{_owner(load)}.{TRAINED}" for load in loads
    }


def _is_load(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == TRAINED


def _owner(call: ast.Call) -> str:
    return last_part(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def _chosen(models: Sequence[ast.Call], flow: DataFlow) -> Sequence[ast.Call]:
    if len(models) < 2:
        return models
    handed = flow.trained()
    traced = [load for load in models if id(load) in handed]
    if traced:
        return traced
    own = [load for load in models if not ASIDE.search(flow.target(load))] or list(models)
    if len(own) > 1 and not flow.rewards:
        own = [load for load in own if not _SCORER.search(_owner(load))] or own
    return own if len({flow.target(load) for load in own}) == 1 else ()


class DataFlow:
    """Where values of a script come from, as far as plain assignments tell."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.values: dict[str, list[ast.expr]] = {}
        self.targets: dict[int, str] = {}
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]
        for node in nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._assigned(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._assigned(node.target, node.value)
        names = {last_part(call.func) for call in self.calls}
        names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        self.rewards = any(_REWARD.fullmatch(name) for name in names)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and target.elts:
            target = target.elts[0]  # model, tokenizer = FastLanguageModel.from_pretrained(...)
        name = last_part(target)
        if name:
            self.values.setdefault(name, []).append(value)
            while isinstance(value, ast.Call):
                self.targets[id(value)] = name
                if _is_load(value) or not isinstance(value.func, ast.Attribute):
                    break
                value = value.func.value  # AutoModel.from_pretrained(...).half()

    def target(self, load: ast.Call) -> str:
        """The name or keyword that a load is assigned to, or ""."""
        return self.targets.get(id(load), "")

    def trained(self) -> set[int]:
        """``id`` of every call whose result reaches a trainer as its model."""
        found: set[int] = set()
        for call in self.calls:
            name = last_part(call.func)
            if name.endswith("Trainer") or name in _WRAPPERS:
                found |= self._handed(call)
        return found

    def _handed(self, call: ast.Call) -> set[int]:
        if (model := keyword(call, "model")) is not None:
            return self._reached(model, set())
        for each in call.args[:2]:  # the first TRL releases: PPOTrainer(config, model, …)
            found = self._reached(each, set())
            if found:
                return found
        return set()

    def _reached(self, expr: ast.expr, seen: set[str], depth: int = 0) -> set[int]:
        """The loads that an expression comes from. Each variable is looked at once: the work is linear."""
        if depth > _DEEPEST:
            return set()
        if isinstance(expr, ast.IfExp):
            return self._reached(expr.body, seen, depth + 1) | self._reached(expr.orelse, seen, depth + 1)
        if isinstance(expr, ast.Name | ast.Attribute) and last_part(expr):
            name = last_part(expr)
            if name in seen:
                return set()
            seen.add(name)
            return {
                each for value in self.values.get(name, ()) for each in self._reached(value, seen, depth + _VARIABLE)
            }
        if not isinstance(expr, ast.Call):
            return set()
        found = {id(expr)} if _is_load(expr) else set()
        inner = [*expr.args[:1], *(each.value for each in expr.keywords if each.arg in ("model", "pretrained_model"))]
        if isinstance(expr.func, ast.Attribute) and not _is_load(expr):
            inner.append(expr.func.value)  # model.to("cuda")
        return found.union(*(self._reached(each, seen, depth + 1) for each in inner))
