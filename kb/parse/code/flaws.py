"""All checks of training code by name, and what they find in one text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from trainmedic.kb.model.evidence import CodeFlaw
from trainmedic.kb.model.place import Span
from trainmedic.kb.parse.code import losses, ranks, setup, steps, trainers
from trainmedic.kb.parse.code.program import Check, Program

CHECKS: Mapping[str, Check] = {
    name: check
    for module in (setup, steps, losses, ranks, trainers)
    for name, check in vars(module).items()
    if not name.startswith("_") and getattr(check, "__annotations__", {}).get("return") == "Flaws"
}
"""The functions of these modules that find flaws."""
_ABOUT_TRAINING = (
    "backward",
    "optim",
    "label",
    "get_peft_model",
    "dist.",
    "DataLoader",
    ".map(",
    "accelerator",
    "engine",
    "compute_loss",
    "from_pretrained",
)
"""A text without any of these is not looked at."""


def read(
    tree: ast.Module, text: str, place: Callable[[ast.expr | ast.stmt], Span], *, whole: bool
) -> Iterator[CodeFlaw]:
    """The faults of a parsed text; ``place`` gives the user's span of a node."""
    if not any(word in text for word in _ABOUT_TRAINING):
        return
    try:
        program = Program(tree, whole=whole)
    except RecursionError:  # code as deep as that is not written by hand
        return
    for name, check in CHECKS.items():
        for nodes in check(program):
            spans = [place(node) for node in nodes if isinstance(node, ast.expr | ast.stmt)]
            yield CodeFlaw(name=name, spans=tuple(dict.fromkeys(spans)))
