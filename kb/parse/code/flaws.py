"""All checks of training code by name, and what they find in one text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from trainmedic.kb.model.evidence import CodeFlaw
from trainmedic.kb.model.place import Span
from trainmedic.kb.parse.code import losses, ranks, setup, steps
from trainmedic.kb.parse.code.program import Check, Program

CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        setup.optimizer_before_adapter,
        setup.optimizer_before_new_parameters,
        setup.optimizer_without_unfrozen,
        setup.adapter_frozen_with_base,
        setup.checkpointing_after_adapter,
        setup.reference_is_the_policy,
        setup.sampler_without_epoch,
        setup.same_data_on_every_rank,
        setup.stale_map_cache,
        setup.half_precision_weights,
        steps.gradients_never_cleared,
        steps.gradients_cleared_before_step,
        steps.accumulation_cleared,
        steps.clipped_before_unscaling,
        steps.clipped_after_step,
        steps.evaluation_mode_stays,
        steps.never_in_training_mode,
        steps.backward_under_autocast,
        steps.graph_kept_for_logging,
        steps.cache_emptied_every_step,
        steps.many_waits_every_step,
        steps.schedule_of_steps_by_epoch,
        steps.accumulated_without_division,
        steps.divided_twice,
        losses.softmax_before_cross_entropy,
        losses.nll_of_probabilities,
        losses.shifted_twice,
        losses.never_shifted,
        losses.padding_is_learned,
        losses.end_is_masked,
        losses.evaluated_with_graph,
        ranks.collective_on_some_ranks,
        ranks.shards_saved_on_some_ranks,
        ranks.gradients_not_exchanged,
        ranks.exchange_switched_off,
    )
}
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
)
"""A text without any of these is not looked at."""


def read(
    tree: ast.Module, text: str, place: Callable[[ast.expr | ast.stmt], Span], *, whole: bool
) -> Iterator[CodeFlaw]:
    """What is wrong in a parsed text; ``place`` gives the user's span of a node."""
    if not any(word in text for word in _ABOUT_TRAINING):
        return
    program = Program(tree, whole=whole)
    for name, check in CHECKS.items():
        with suppress(RecursionError):  # code as deep as that is not written by hand
            for nodes in check(program):
                spans = [place(node) for node in nodes if isinstance(node, ast.expr | ast.stmt)]
                yield CodeFlaw(name=name, spans=tuple(dict.fromkeys(spans)))
