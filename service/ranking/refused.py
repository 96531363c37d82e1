"""An exception whose condition the user's own options fulfil: settings that the framework refuses together. Pure."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.error_messages.explain import MessageMatch
from trainmedic.kb.error_messages.tables import LOGGED
from trainmedic.kb.frameworks.values import truth
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.run import Option, RunConfig, Unresolved
from trainmedic.kb.sources.initialising import COMPARED
from trainmedic.service.dialogue.what_if import WhatIf, what_if

_HOLDERS = frozenset({"self", "args", "cfg", "config", "model_args", "data_args", "training_args", "finetuning_args"})
"""Objects that hold the options: not a part of their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """``options`` are those in the condition, in its order. ``effects``: what switching one of them off does, if one is
    a switch and the checks find nothing against it."""

    match: MessageMatch
    options: tuple[Option, ...]
    effects: WhatIf | None = None

    @property
    def name(self) -> str:
        """The option that is changed."""
        return self.options[0].key


class _UnknownError(Exception):
    """The run does not set a part of the condition."""


def refused(evidence: Evidence, printed: Sequence[MessageMatch], rules: RuleSet, read: Read) -> Refusal | None:
    """The exception that ended the run, if each name in its condition is an option that was sent and it holds."""
    roots = [trace.span for trace in evidence.tracebacks if trace.root]
    for match in printed:
        around = any(s.attachment == match.span.attachment and s.line <= match.span.line <= s.end_line for s in roots)
        if not around or match.entry.kind in LOGGED or not match.is_whole or match.in_version is False:
            continue
        used: dict[str, Option] = {}
        with suppress(_UnknownError, SyntaxError, TypeError):
            if _value(ast.parse(match.place.condition, mode="eval").body, evidence.run, used) and used:
                return Refusal(match=match, options=tuple(used.values()), effects=_off(used, evidence, rules, read))
    return None


def _off(used: Mapping[str, Option], evidence: Evidence, rules: RuleSet, read: Read) -> WhatIf | None:
    for option in used.values():
        if truth(option.value) is True:
            effects = what_if(evidence, {option.key: "false"}, rules, read)
            if effects.patch and not effects.appears:
                return effects
    return None


def _value(node: ast.expr, run: RunConfig, used: dict[str, Option]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple() | ast.Set():
            return [_value(each, run, used) for each in node.elts]
        case ast.Name() | ast.Attribute():
            name = ast.unparse(node)
            used[name] = used.get(name) or _option(name, run)
            return _plain(used[name].value)
        case ast.BoolOp(op=ast.And()):
            return all([_value(each, run, used) for each in node.values])
        case ast.UnaryOp(op=ast.Not()):
            return not _value(node.operand, run, used)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return COMPARED[type(op)](_value(left, run, used), _value(right, run, used))
    raise _UnknownError


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        lowered = value.lower()
        return None if lowered in ("none", "null") else truth(value) if lowered in ("true", "false") else value
    return value


def _option(name: str, run: RunConfig) -> Option:
    """The one value that the run gives to a name of the framework's code."""
    parts = name.split(".")
    wanted = ".".join(parts[1:] if parts[0] in _HOLDERS else parts)
    found = [each for each in run.options if f".{each.key}".endswith(f".{wanted}")]
    if not found or isinstance(found[0].value, Unresolved) or len({str(_plain(each.value)) for each in found}) > 1:
        raise _UnknownError
    return found[0]
