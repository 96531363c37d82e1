"""A failing run against one that works, shaped for the wire. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trainmedic.kb.engine.audit import audit
from trainmedic.kb.engine.defect import DefectSet
from trainmedic.kb.engine.mechanism import Mechanism
from trainmedic.kb.engine.run_diff import Difference, Side, diff_runs
from trainmedic.kb.engine.upgrades import releases_of
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report
from trainmedic.service.composition.audit import defect_view
from trainmedic.service.composition.diff_views import CurveView, DifferenceView, DiffView, EffectView
from trainmedic.service.composition.views import finding_view, receipt_view, run_view, signal_view


def side_of(evidence: Evidence, report: Report, defects: DefectSet) -> Side:
    return Side(evidence=evidence, report=report, defects=audit(defects.all, evidence, releases_of(defects.all)))


def diff_view(good: Side, bad: Side, mechanisms: Iterable[Mechanism], language: str) -> DiffView:
    diff = diff_runs(good, bad, mechanisms)
    failures = dict.fromkeys((*good.report.failures, *bad.report.failures))
    return DiffView(
        differences=tuple(_difference(difference, language) for difference in diff.differences),
        curves=tuple(
            CurveView(
                metric=parting.metric,
                step=parting.step,
                good=parting.good.value,
                bad=parting.bad.value,
                whole=parting.whole,
                good_place=parting.good.span,
                bad_place=parting.bad.span,
            )
            for parting in diff.curves
        ),
        signals=tuple(signal_view(signal, language) for signal in diff.signals),
        findings=tuple(finding_view(finding, language) for finding in diff.findings),
        defects=tuple(defect_view(match, language) for match in diff.defects),
        good=run_view(good.evidence),
        bad=run_view(bad.evidence),
        good_receipt=receipt_view(good.evidence.receipt),
        bad_receipt=receipt_view(bad.evidence.receipt),
        failures=tuple(f"{failure.rule_id}: {failure.message}" for failure in failures),
    )


def _difference(difference: Difference, language: str) -> DifferenceView:
    return DifferenceView(
        kind=difference.kind,
        name=difference.name,
        good=difference.good,
        bad=difference.bad,
        good_source=difference.good_source,
        bad_source=difference.bad_source,
        good_place=difference.good_place,
        bad_place=difference.bad_place,
        effects=tuple(
            EffectView(
                kind=effect.kind,
                id=effect.id,
                title=effect.title.get(language),
                fix=effect.fix.get(language) if effect.fix is not None else "",
                explains=effect.explains,
            )
            for effect in difference.effects
        ),
    )
