"""Code that depends on the rank: collectives that only some ranks enter, gradients that are never exchanged."""

from __future__ import annotations

import ast
from collections.abc import Callable

from trainmedic.kb.lazy import regex
from trainmedic.kb.parse.code.program import Event, Flaws, Guard, Program, dotted, is_backward, last_part, words_in

_COLLECTIVES = regex(
    r"(?:monitored_)?barrier|all_reduce|reduce_scatter\w*|all_gather\w*|broadcast\w*|gather_object|all_to_all\w*\Z"
)
_OF_ALL_RANKS = frozenset(("wait_for_everyone", "gather_for_metrics", "gather", "pad_across_processes"))
_SAVES_SHARDS = frozenset(("save_state", "save_checkpoint", "get_state_dict", "save_16bit_model"))
_RANK_NAMES = frozenset(("rank", "local_rank", "global_rank", "get_rank", "RANK", "LOCAL_RANK", "process_index"))
_MAIN = frozenset(("is_main_process", "is_local_main_process", "is_world_process_zero", "is_master", "master_process"))
_ALONE = ("DistributedDataParallel", "DDP")


def _of_rank(test: ast.expr) -> bool:
    """Whether a test is about which rank this is, and about nothing that all ranks share."""
    words = words_in(test)
    if words & _MAIN:
        return True
    return isinstance(test, ast.Compare) and bool(words & _RANK_NAMES) and _first_only(test)


def _first_only(test: ast.Compare) -> bool:
    """``rank == 0``, ``rank != 0``, ``rank > 0``; ``rank == -1`` asks whether there are ranks at all."""
    sides = [test.left, *test.comparators]
    return any(isinstance(side, ast.Constant) and side.value == 0 for side in sides)


def _is_collective(event: Event) -> bool:
    if _COLLECTIVES.fullmatch(event.tail):
        return event.name.startswith(("dist.", "torch.distributed.", "distributed.")) or event.name == event.tail
    on = dotted(event.receiver).rpartition(".")[2].lower()
    return event.tail in _OF_ALL_RANKS and "accelerator" in on


def _saves_shards(event: Event) -> bool:
    on = dotted(event.receiver).rpartition(".")[2].lower()
    return event.tail in _SAVES_SHARDS and ("accelerator" in on or "engine" in on)


def collective_on_some_ranks(program: Program) -> Flaws:
    """A collective stands under a test of the rank, and the others never come to it."""
    return _on_some_ranks(program, _is_collective)


def shards_saved_on_some_ranks(program: Program) -> Flaws:
    """Shards are saved or gathered under a test of the rank; every rank holds some of them."""
    return _on_some_ranks(program, _saves_shards)


def _on_some_ranks(program: Program, needs_all: Callable[[Event], bool]) -> Flaws:
    for event in program.events:
        guard = next((guard for guard in event.guards if _of_rank(guard.test)), None)
        if guard is None or not needs_all(event) or any(word.arg == "group" for word in _keywords(event)):
            continue
        if not any(_counterpart(other, event, guard) for other in program.events):
            yield guard.test, event.node
            return


def _keywords(event: Event) -> list[ast.keyword]:
    return event.node.keywords if isinstance(event.node, ast.Call) else []


def _counterpart(other: Event, event: Event, guard: Guard) -> bool:
    """The same collective for the other ranks: in the other branch, or under the opposite test elsewhere."""
    if other is event or other.tail != event.tail or other.scope != event.scope:
        return False
    theirs = next((each for each in other.guards if _of_rank(each.test)), None)
    return theirs is not None and (theirs.test is not guard.test or theirs.holds != guard.holds)


def gradients_not_exchanged(program: Program) -> Flaws:
    """The forward pass goes around DistributedDataParallel, which exchanges gradients only of its own."""
    wrapped = {
        dotted(node.targets[0])
        for event in program.events
        if isinstance(node := event.node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and last_part(node.value.func) in _ALONE
    }
    for _, events in program.steps:
        for event in events:
            inner = event.receiver if event.tail == "module" else None
            if not event.name.endswith(".module") or dotted(inner) not in wrapped:
                continue
            if not any({"no_grad", "inference_mode", "no_sync"} & words_in(context) for context in event.contexts):
                yield (event.node,)
                return


def exchange_switched_off(program: Program) -> Flaws:
    """Every backward pass stands in ``no_sync``: the ranks never exchange gradients."""
    passes = [event for event in program.events if is_backward(event)]
    off = [
        next((c for c in event.contexts if isinstance(c, ast.Call) and last_part(c.func) == "no_sync"), None)
        for event in passes
    ]
    if (
        passes
        and all(context is not None for context in off)
        and not {"all_reduce", "average_gradients"} & program.tails
    ):
        context = off[0]
        if context is not None and "accelerator" not in dotted(getattr(context, "func", None)).lower():
            yield context, passes[0].node
