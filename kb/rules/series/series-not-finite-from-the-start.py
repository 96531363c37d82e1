"""Not finite in the first logged row of a run, before training could have spoilt anything."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.rules.shared.log_series import break_of, early, logs


def check(facts: Facts) -> Outcome:
    """Fires where the first training row stands at the start of a run and never becomes finite."""
    for rows in logs(facts):
        broken = break_of(rows)
        if broken is not None and not broken.before and early(rows):
            en, zh = broken.point.where
            metric = broken.point.metric
            return fires(broken.point.span, metric=metric.name, value=metric.value, where_en=en, where_zh=zh)
    return NOT_SHOWN
