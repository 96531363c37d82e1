"""Not finite in the first logged row of a run, before training could have spoilt anything."""

from __future__ import annotations

from kb.rules.facts import Facts
from kb.rules.logic.series_of import CLEAR, break_of, early, fires, logs
from kb.rules.outcome import Outcome


def check(facts: Facts) -> Outcome:
    """Fires where the first training row stands at the start of a run and never becomes finite."""
    for rows in logs(facts):
        broken = break_of(rows)
        if broken is not None and not broken.before and early(rows):
            en, zh = broken.point.where
            metric = broken.point.metric
            return fires([broken.point.span], metric=metric.name, value=metric.value, where_en=en, where_zh=zh)
    return CLEAR
