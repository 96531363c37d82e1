"""Signals in DeepSpeed's lines about skipped fp16 steps: the scale is being searched, or it has run out.

A dynamic scale is halved at each overflow and doubled after a window of good steps, so that some steps are skipped in
every healthy run, at the start and after each doubling.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Row, Signal
from trainmedic.kb.parse.source import Piece

_OVERFLOW = regex(
    r"(?:OVERFLOW|overflow)!{0,1}+[^\n]{0,120}?(?:Attempted"
    r"|attempted) loss scale: (?P<old>[0-9.e+]{1,24}+)(?:, (?:but hysteresis[^\n]{0,80}"
    r"|reducing to (?P<new>[0-9.e+]{1,24}+)))?"
)
REPEATED = ("learning_rate_zero", "grad_norm_zero")
"""Signals that skipped steps give."""
_COLLAPSED = 1.0
_SETTLED = 64.0
_MANY = 10
"""DeepSpeed finds its scale by a few overflows; that many are not search any more, unless training went on."""
_ENOUGH, _RECENT, _FEW = 5, 20, 3
"""Rows behind the last overflow; or else rows that are looked back at, and overflows that there may be among them."""


def signals(piece: Piece, rows: Sequence[Row]) -> Iterator[Signal]:
    """The scale has run out (`loss_scale_collapse`), or steps were skipped and training goes on (`steps_skipped`)."""
    found = list(_OVERFLOW.finditer(piece.text)) if "loss scale: " in piece.text else []
    if not found:
        return
    scales = [_number(match["new"] or match["old"]) for match in found]
    lowest = min((scale for scale in scales if scale is not None), default=0.0)
    if lowest >= _SETTLED and _trains_on(piece, found, rows):
        detail = f"{len(found)} steps skipped, the lowest loss scale is {lowest:g}"
        yield _signal("steps_skipped", piece, found[-1], scales[-1], detail)
        return
    for count, (match, scale) in enumerate(zip(found, scales, strict=True), 1):
        if count >= _MANY or (scale is not None and scale <= _COLLAPSED):
            detail = f"overflow number {count}, loss scale {scale if scale is not None else 'unreadable'}"
            yield _signal("loss_scale_collapse", piece, match, scale, detail)
            return


def _signal(kind: str, piece: Piece, match: re.Match[str], scale: float | None, detail: str) -> Signal:
    return Signal(kind=kind, span=piece.span(match.start(), match.end()), value=scale, detail=detail)


def _trains_on(piece: Piece, found: Sequence[re.Match[str]], rows: Sequence[Row]) -> bool:
    """Whether updates are made between and behind the skipped steps, and no loss is infinite or NaN."""
    logged = [row for row in rows if row.span.attachment == piece.source and not row.evaluation]
    lines = [piece.position(match.start())[0] for match in found]
    behind = [row for row in logged if row.span.line > lines[-1]]
    if len(behind) >= _ENOUGH:
        recent = behind
    else:
        recent = logged[-_RECENT:]
        if len(recent) < _RECENT or sum(line > recent[0].span.line for line in lines) > _FEW:
            return False
    if any("loss" in row.metrics and not math.isfinite(row.metrics["loss"].value) for row in logged):
        return False
    return all(len(values) == 0 or (len(values) > 1 and max(values) > 0) for values in _moving(recent))


def _moving(rows: Sequence[Row]) -> Iterator[set[float]]:
    """The different values of what a skipped step leaves as it was. A schedule may be constant, at a rate above 0."""
    norms = {row.metrics["grad_norm"].value for row in rows if "grad_norm" in row.metrics}
    yield {norm if math.isfinite(norm) else 0.0 for norm in norms}
    rates = [row.metrics["learning_rate"].value for row in rows if "learning_rate" in row.metrics]
    yield {*rates, 0.0} if rates else set()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
