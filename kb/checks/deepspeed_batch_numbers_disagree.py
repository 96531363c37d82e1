"""The three batch numbers of a DeepSpeed file that do not multiply: train_batch_size, micro batch, accumulation."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.frameworks.profiles import BESIDE
from trainmedic.kb.model.place import Span

_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def check(facts: Facts) -> Outcome:
    """Fires where no number of ranks can make them agree, or the known number of ranks does not.

    Tensor, sequence and pipeline parallelism divide the ranks, so a known number of ranks is an upper limit only.
    Elastic training replaces the three numbers by its own.
    """
    return next((found for name in BESIDE if (found := _of_file(facts, name)).value is True), CLEAR)


def _of_file(facts: Facts, name: str) -> Outcome:
    if facts.option("elasticity.enabled", name).value is True:
        return CLEAR
    numbers: list[int] = []
    places: list[Span] = []
    for key in _KEYS:
        fact = facts.option(key, name)
        if isinstance(fact.value, bool) or not isinstance(fact.value, int) or fact.value < 1:
            return CLEAR
        numbers.append(fact.value)
        places += fact.spans
    total, micro, steps = numbers
    ranks = facts.name("world_size")
    shown = {"total": total, "micro": micro, "steps": steps, "product": micro * steps}
    if total % (micro * steps):
        return fires(*places, **shown, ranks="N")
    if isinstance(ranks.value, int) and total // (micro * steps) > ranks.value:
        return fires(*places, *ranks.spans, **shown, ranks=ranks.value)
    return CLEAR
