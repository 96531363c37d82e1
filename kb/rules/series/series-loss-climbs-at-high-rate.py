"""A loss that turns and climbs while the learning rate lies far above what this kind of training bears."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import is_rl, median
from trainmedic.kb.rules.shared.log_series import Point, logs, peak_rate, points, values

LEAST = 12
CLIMB = 1.5
BOUNDS = {"full": 5e-5, "lora": 5e-4}
PREFERENCE = {"full": 5e-6, "lora": 1e-4}
"""Learning rates that practice keeps well below; ours, and only used where the loss has turned."""
_PAIRS = ("dpo", "orpo", "cpo", "simpo", "ipo", "reward")


def check(facts: Facts) -> Outcome:
    """Fires where the end lies half above the lowest level and above the start, at a rate beyond the bound."""
    tuner = facts.name("tuner").value
    bounds = PREFERENCE if facts.name("algorithm").value in _PAIRS else BOUNDS
    bound = bounds["full" if tuner == "full" else "lora"]
    for rows in logs(facts):
        losses = points(rows, "loss")
        rate = peak_rate(facts, rows)
        if len(losses) < LEAST or rate <= bound or any(is_rl(row) for row in rows):
            continue
        low, turn = _lowest(losses)
        end = median(values(losses)[-max(3, len(losses) // 4) :])
        if low > 0 and end > CLIMB * low and end > losses[0].value:
            en, zh = turn.where
            return fires(
                turn.span,
                losses[-1].span,
                low=low,
                end=end,
                rate=rate,
                bound=bound,
                kind_en=_kind(tuner)[0],
                kind_zh=_kind(tuner)[1],
                where_en=en,
                where_zh=zh,
            )
    return NOT_SHOWN


def _lowest(losses: list[Point]) -> tuple[float, Point]:
    """The lowest level of three rows running, and the row in its middle."""
    levels = [(median(values(losses[i : i + 3])), losses[i + 1]) for i in range(len(losses) - 2)]
    return min(levels, key=lambda level: level[0])


def _kind(tuner: object) -> tuple[str, str]:
    return ("full training", "全参训练") if tuner == "full" else ("adapters", "适配器")
