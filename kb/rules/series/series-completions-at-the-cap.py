"""Nearly every completion runs into the length limit, row after row."""

from __future__ import annotations

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.outcome import NOT_SHOWN, Outcome, fires
from trainmedic.kb.parse.metrics import median
from trainmedic.kb.rules.shared.log_series import configured, logs, points, values

LEAST = 3
SHARE, CUT, NEAR = 0.8, 0.9, 0.99


def check(facts: Facts) -> Outcome:
    """Fires where 90 % are cut, or the mean length is the configured limit, in four rows of five."""
    limit = configured(facts, "max_completion_length")
    for rows in logs(facts):
        cut = points(rows, "clipped_ratio")
        lengths = points(rows, "completion_length") or points(rows, "response_length/mean")
        found = cut or (lengths if limit is not None else [])
        bar = CUT if cut else NEAR * (limit or 0.0)
        if cut and facts.option("mask_truncated_completions").value is True:
            continue  # TRL's own rule names the option
        hit = [point for point in found if point.value >= bar]
        if len(found) < LEAST or len(hit) < SHARE * len(found):
            continue
        level = median(values(lengths)) if lengths else float("nan")
        shown = (f", configured {limit:g}", f"，设定 {limit:g}") if limit is not None else ("", "")
        return fires(
            hit[0].span,
            hit[-1].span,
            count=len(hit),
            all=len(found),
            level=level,
            limit_en=shown[0],
            limit_zh=shown[1],
        )
    return NOT_SHOWN
