"""Numbers written both in a DeepSpeed file and for the Hugging Face trainer, and not the same: the trainer refuses."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import CLEAR, Outcome, fires
from trainmedic.kb.frameworks.profiles import HF_TRAINERS
from trainmedic.kb.model.run import Option, Value

_PAIRS = (
    ("train_micro_batch_size_per_gpu", ("per_device_train_batch_size", "micro_batch_size")),
    ("gradient_accumulation_steps", ("gradient_accumulation_steps",)),
    ("gradient_clipping", ("max_grad_norm",)),
    ("optimizer.params.lr", ("learning_rate",)),
    ("optimizer.params.weight_decay", ("weight_decay",)),
    ("optimizer.params.eps", ("adam_epsilon",)),
    ("scheduler.params.warmup_max_lr", ("learning_rate",)),
    ("bf16.enabled", ("bf16",)),
    ("fp16.enabled", ("fp16",)),
)
"""DeepSpeed's key, and what the trainers call it."""


def check(facts: Facts) -> Outcome:
    """Fires on the first pair that differs; the values count as they were read, so "8" and 8 differ."""
    framework = facts.run.framework
    if framework is None or framework.value not in HF_TRAINERS:
        return CLEAR
    for key, names in _PAIRS:
        theirs = _last(facts, key, deepspeed=True)
        ours = next((option for name in names if (option := _last(facts, name, deepspeed=False)) is not None), None)
        if theirs is None or ours is None or not _differ(theirs.value, ours.value):
            continue
        shown = {"key": key, "theirs": repr(theirs.value), "name": ours.key, "ours": repr(ours.value)}
        return fires(theirs.span, ours.span, **shown)
    return CLEAR


def _last(facts: Facts, key: str, *, deepspeed: bool) -> Option | None:
    """The option as the DeepSpeed file (or the dictionary given to the trainer) has it, or as the trainer has it."""
    options = [
        option
        for option in facts.options(key)
        if (option.scope == "deepspeed") == deepspeed and option.scope not in ("env", "launcher", "accelerate")
    ]
    if deepspeed:
        options += facts.options(f"deepspeed.{key}")
    return options[-1] if options else None


def _differ(theirs: Value, ours: Value) -> bool:
    """Whether two values are certainly not the same for the trainer. Its own options are read as numbers."""
    if theirs == "auto" or theirs is None:
        return False
    if isinstance(ours, str):
        try:
            ours = float(ours)
        except ValueError:
            return False
    if not isinstance(ours, (bool, int, float)):
        return False
    if isinstance(theirs, str):
        return theirs.replace(".", "", 1).isdigit()
    if isinstance(theirs, bool) != isinstance(ours, bool):
        return False
    return isinstance(theirs, (bool, int, float)) and theirs != ours
