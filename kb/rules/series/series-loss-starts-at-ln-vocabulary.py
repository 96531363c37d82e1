"""A fine-tuning loss that begins where a model without knowledge begins."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.engine.values import is_number
from trainmedic.kb.parse.metrics import is_rl
from trainmedic.kb.rules.shared.log_series import early, evaluations, logs, points, values

LOW, HIGH = 10.2, 12.7
"""ln of 27 000 to 330 000: the loss of guessing for every vocabulary in use."""
_FROM_SCRATCH = ("pretrain",)
_SUPERVISED = ("sft", "pt")


def check(facts: Facts) -> Outcome:
    """Fires where the first loss is at that level and accumulation cannot have multiplied it."""
    algorithm, stage = facts.name("algorithm").value, facts.name("stage").value
    if stage in _FROM_SCRATCH or (isinstance(algorithm, str) and algorithm not in _SUPERVISED):
        return NOT_SHOWN
    for rows in logs(facts):
        losses = points(rows, "loss")
        if not losses or not early(rows) or any(is_rl(row) or "rewards/margins" in row.metrics for row in rows):
            continue
        if LOW <= losses[0].value <= HIGH and _not_multiplied(facts):
            en, zh = losses[0].where
            return fires(losses[0].span, loss=losses[0].value, where_en=en, where_zh=zh)
    return NOT_SHOWN


def _not_multiplied(facts: Facts) -> bool:
    """Whether the loss is what it says: no accumulation, a release that divides, or an evaluation as high."""
    steps = facts.name("gradient_accumulation").value
    if is_number(steps) and steps <= 1:
        return True
    if facts.version("transformers", ">=4.48.1").value is True or facts.version("transformers", "<4.46").value is True:
        return True
    evaluated = values(evaluations(facts))
    return bool(evaluated) and evaluated[0] >= 0.7 * LOW
