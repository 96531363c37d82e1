"""The smallest change with which a run fits its card: each is tried by the estimator, the cheapest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.frameworks.canonical import keys_of
from trainmedic.kb.lazy import regex
from trainmedic.kb.memory.estimate import NOTHING, Estimate, Plan, Range, estimate, exactly
from trainmedic.kb.memory.plan import SHARDING, habits, is_on, number_of, value_of
from trainmedic.kb.model.report import Safety
from trainmedic.kb.model.run import Scalar

MARGIN = 0.08
"""Of the card, what a change must leave free."""
_LITTLE = 0.97
"""A change that leaves more than this of what is needed is not worth making."""
_STAGE = regex(r"(z(?:ero)?[_-]?)([0-2])(?!\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Settings to write, and the plan with them. ``safety``: whether it trains the same."""

    set: Mapping[str, Scalar]
    plan: Plan
    safety: Safety = Safety.SAFE


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Changes that make a run fit, and what it then needs."""

    set: Mapping[str, Scalar]
    safety: Safety
    estimate: Estimate


def fits(found: Estimate, room: float) -> bool:
    """Whether a run fits with the margin, also where it needs more than is likely."""
    total = found.total
    return total.likely <= (1 - MARGIN) * room and (total.likely + total.high) / 2 <= room


def remedies(plan: Plan, facts: Facts, room: float) -> tuple[Remedy, ...]:
    """The two cheapest single changes with which the run fits; else the shortest row of changes, the cheapest first."""
    single = []
    for step in _steps(plan, facts):
        found = estimate(step.plan)
        if fits(found, room):
            single.append(Remedy(set=step.set, safety=step.safety, estimate=found))
    if single:
        return tuple(single[:2])
    return _together(plan, facts, room)


def _together(plan: Plan, facts: Facts, room: float) -> tuple[Remedy, ...]:
    """One change after the other, each on top of those before and no larger than needed, until the run fits."""
    written: dict[str, Scalar] = {}
    safety, last = Safety.SAFE, estimate(plan).total.likely
    tried: set[str] = set()
    while left := [step for step in _steps(plan, facts) if not tried & step.set.keys()]:
        alike = [step for step in left if step.set.keys() == left[0].set.keys()]
        step = next((step for step in alike if fits(estimate(step.plan), room)), alike[-1])
        found = estimate(step.plan)
        tried |= step.set.keys()
        if found.total.likely > _LITTLE * last:
            continue
        plan, last = step.plan, found.total.likely
        written |= step.set
        safety = Safety.UNSAFE if Safety.UNSAFE in (safety, step.safety) else Safety.SAFE
        if fits(found, room):
            return (Remedy(set=written, safety=safety, estimate=found),)
    return ()


def _steps(plan: Plan, facts: Facts) -> Iterator[Step]:
    """Changes in the order of what they cost; each is of the given plan alone."""
    if not plan.fused_loss and _known(facts, "liger") and facts.run.algorithm is not None and _supervised(facts):
        yield Step(set={"liger": True}, plan=replace(plan, fused_loss=True))
    if plan.eager:
        yield Step(set={"attention": "flash2"}, plan=replace(plan, eager=False))
    if not plan.checkpointing:
        yield Step(set={"gradient_checkpointing": True}, plan=replace(plan, checkpointing=True))
    yield from _smaller_batches(plan, facts)
    share = value_of(facts, "rollout_memory")
    if plan.engine.likely and isinstance(share, float):
        for lower in (0.7, 0.5, 0.4, 0.3, 0.2):
            if lower < share:
                yield Step(set={"rollout_memory": lower}, plan=replace(plan, engine=plan.engine.times(lower / share)))
    yield from _more_sharding(plan, facts)
    if plan.adapter is None and plan.optimizer_bytes.likely in (4, 8) and _known(facts, "optimizer"):
        smaller = replace(plan, optimizer_bytes=exactly(2), step_copy=NOTHING)
        yield Step(set={"optimizer": "adamw_8bit"}, plan=smaller, safety=Safety.UNSAFE)
    length = number_of(facts, "max_length")
    if length is not None and length == plan.length.high:
        for part in (2, 4, 8):
            if length % part == 0 and length // part >= 512:
                shorter = replace(plan, length=plan.length.times(1 / part))
                yield Step(set={"max_length": length // part}, plan=shorter, safety=Safety.UNSAFE)


def _smaller_batches(plan: Plan, facts: Facts) -> Iterator[Step]:
    """A smaller micro batch, with as many more of them, so that a step sees the same rows."""
    micro, accumulated = number_of(facts, "micro_batch"), number_of(facts, "gradient_accumulation")
    if micro is None or plan.rows % micro:
        return
    for part in (2, 4, 8, 16, 32, 64):
        if micro % part == 0:
            more = {"gradient_accumulation": accumulated * part} if accumulated is not None else {}
            yield Step(set={"micro_batch": micro // part, **more}, plan=replace(plan, rows=plan.rows // part))


def _more_sharding(plan: Plan, facts: Facts) -> Iterator[Step]:
    """A higher ZeRO stage, then its optimizer states in host memory, where the settings say it in one word."""
    share, ready = max(1, plan.ranks // plan.model_ranks), habits(facts).shards_with
    word, stage = value_of(facts, SHARDING), value_of(facts, "zero_stage")
    named = _STAGE.search(word) if isinstance(word, str) else None
    sharded = replace(plan, weights_ranks=share, gradient_ranks=share, optimizer_ranks=share)
    if share > 1 and named is not None and isinstance(word, str):
        yield Step(set={SHARDING: _STAGE.sub(r"\g<1>3", word, count=1)}, plan=sharded)
    elif share > 1 and stage in (1, 2) and facts.run.written("zero_stage"):
        yield Step(set={"zero_stage": 3}, plan=sharded)
    elif share > 1 and not is_on(facts, SHARDING) and not is_on(facts, "fsdp") and ready:
        if plan.adapter is None:
            half, states = exactly(2), Range(12, 12, 16)
            sharded = replace(sharded, linear_bytes=half, embedding_bytes=half, gradient_bytes=Range(2, 2, 4))
            sharded = replace(sharded, optimizer_bytes=states, step_copy=NOTHING)
        yield Step(set={SHARDING: ready}, plan=sharded)
    if value_of(facts, "optimizer_offload") is False and plan.optimizer_bytes.likely and stage:
        yield Step(set={"optimizer_offload": True}, plan=replace(plan, optimizer_bytes=NOTHING, step_copy=NOTHING))


def _known(facts: Facts, name: str) -> bool:
    """Whether the run's framework has the setting."""
    framework = facts.run.framework
    return framework is not None and bool(keys_of(framework.value, name))


def _supervised(facts: Facts) -> bool:
    return value_of(facts, "algorithm") in ("sft", "pretrain", "pt")
