"""Out of memory in a layer of the model, or in the backward pass of adapters: activations."""

from __future__ import annotations

from dataclasses import replace

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import Outcome
from trainmedic.kb.rules.shared.memory_place import in_force, ran_out_at

_ADAPTERS = ("lora", "qlora", "dora", "adalora")


def check(facts: Facts) -> Outcome:
    """Fires on the forward pass of a layer; on the backward pass only where no full gradient is kept there."""
    adapters = facts.name("tuner").value in _ADAPTERS
    outcome = ran_out_at(facts, "layers", *(["backward"] if adapters else []))
    stated = {**in_force(facts, "gradient_checkpointing", "checkpointing"), **in_force(facts, "micro_batch", "batch")}
    return replace(outcome, values={**outcome.values, **stated})
