"""The configuration in effect as clients see it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from trainmedic.kb.effective.model import Effective
from trainmedic.kb.frameworks.horizon import horizons, packages_of
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.projection import project
from trainmedic.service.answer.horizon import horizon_views
from trainmedic.service.answer.schema import EffectiveReport, EffectiveView
from trainmedic.service.answer.views import receipt_view

MOST_ROWS = 100
"""Of an answer, and as many that are lost."""


def effective_report(evidence: Evidence, found: Iterable[Effective], language: str) -> EffectiveReport:
    return EffectiveReport(
        runs=tuple(project(EffectiveView, one) for one in found),
        receipt=receipt_view(evidence.receipt),
        horizon=horizon_views(horizons(evidence.versions, packages_of(evidence.runs)), language),
    )


def decided(found: Effective) -> EffectiveView:
    """The written settings and what follows from them; first those whose value is not the written one."""
    rows = [row for row in found.rows if row.span is not None or row.kind == "derived"]
    rows.sort(key=lambda row: row.kind != "derived")
    return project(EffectiveView, replace(found, rows=tuple(rows[:MOST_ROWS]), lost=found.lost[:MOST_ROWS]))
