"""A failing run against one that works, as clients see it."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.model.report_view import FindingView, ReceiptView, RunView, SignalView
from trainmedic.kb.model.run_difference import CurveView, DifferenceView
from trainmedic.service.answer import DefectView


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffView:
    """The response of ``/v1/diff`` and ``trainmedic diff --format json``: a failing run against one that works.

    ``differences`` that explain the symptom come first. ``signals``, ``findings`` and ``defects`` are those of the
    failing run alone.
    """

    differences: tuple[DifferenceView, ...]
    curves: tuple[CurveView, ...]
    signals: tuple[SignalView, ...]
    findings: tuple[FindingView, ...]
    defects: tuple[DefectView, ...]
    good: RunView
    bad: RunView
    good_receipt: ReceiptView
    bad_receipt: ReceiptView
    failures: tuple[str, ...] = ()
