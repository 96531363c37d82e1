"""A failing run against one that works, for the wire and as sections of an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trainmedic.kb.audit.audit import audit
from trainmedic.kb.audit.defect import DefectSet
from trainmedic.kb.audit.upgrades import releases_of
from trainmedic.kb.comparison.curve_comparison import CurveParting
from trainmedic.kb.comparison.run_diff import Difference, Side, diff_runs
from trainmedic.kb.engine.mechanism import Mechanism
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Report
from trainmedic.kb.model.run_difference import CurveView, DifferenceView, EffectView
from trainmedic.service.answer import Answer, Section, TwoRunsView, markdown
from trainmedic.service.composition.audit import defect_view
from trainmedic.service.composition.citations import code, place
from trainmedic.service.composition.diff_views import DiffView
from trainmedic.service.composition.messages import messages
from trainmedic.service.composition.series import series_views
from trainmedic.service.composition.views import finding_view, receipt_view, run_view, signal_view

MOST_SHOWN = 5
"""Differences before the fold."""
MOST_LISTED = 30


def side_of(evidence: Evidence, report: Report, defects: DefectSet) -> Side:
    return Side(evidence=evidence, report=report, defects=audit(defects.all, evidence, releases_of(defects.all)))


def diff_view(good: Side, bad: Side, mechanisms: Iterable[Mechanism], language: str) -> DiffView:
    diff = diff_runs(good, bad, mechanisms)
    failures = dict.fromkeys((*good.report.failures, *bad.report.failures))
    return DiffView(
        differences=tuple(_difference(difference, language) for difference in diff.differences),
        curves=tuple(map(_curve, diff.curves)),
        signals=tuple(signal_view(signal, language) for signal in diff.signals),
        findings=tuple(finding_view(finding, language) for finding in diff.findings),
        defects=tuple(defect_view(match, language) for match in diff.defects),
        good=run_view(good.evidence),
        bad=run_view(bad.evidence),
        good_receipt=receipt_view(good.evidence.receipt),
        bad_receipt=receipt_view(bad.evidence.receipt),
        failures=tuple(f"{failure.rule_id}: {failure.message}" for failure in failures),
    )


def two_runs_view(good: Side, bad: Side, mechanisms: Iterable[Mechanism], language: str) -> TwoRunsView:
    diff = diff_runs(good, bad, mechanisms)
    works, fails = (
        tuple(source.name for source in side.evidence.sources if source.name is not None) for side in (good, bad)
    )
    return TwoRunsView(
        works=works,
        fails=fails,
        differences=tuple(_difference(difference, language) for difference in diff.differences),
        curves=tuple(map(_curve, diff.curves)),
        series=series_views(good.evidence),
        receipt=receipt_view(good.evidence.receipt),
    )


def with_comparison(answer: Answer, view: TwoRunsView | None) -> Answer:
    """The answer with what differs from the run that works behind its first words."""
    if view is None:
        return answer
    at = next((number for number, section in enumerate(answer.sections) if section.heading), len(answer.sections))
    shown, hidden = _sections(view, answer.language)
    first_folded = next((n for n, section in enumerate(answer.sections) if section.folded), len(answer.sections))
    first_folded = max(at, first_folded)
    sections = (
        *answer.sections[:at],
        shown,
        *answer.sections[at:first_folded],
        *hidden,
        *answer.sections[first_folded:],
    )
    return replace(answer, answer=markdown(sections), sections=sections, comparison=view)


def _sections(view: TwoRunsView, language: str) -> tuple[Section, Sequence[Section]]:
    """The differences that explain the failure, or else the first ones with a known effect; and all others, folded."""
    listed = view.differences[:MOST_LISTED]
    explaining = [item for item in listed if item.explains]
    first = explaining[:MOST_SHOWN] or [item for item in listed if item.effects][:MOST_SHOWN] or listed[:MOST_SHOWN]
    others = [item for item in listed if item not in first]
    intro = [] if explaining or not first else [messages("diff.unexplained", language)]
    items = tuple(_item(item, language) for item in first)
    parts = tuple(_parting(curve, language) for curve in view.curves[:MOST_SHOWN])
    lines = [f"- {item}" for item in (*items, *parts[:1])] or [messages("diff.same", language)]
    heading = messages("headings.differences", language)
    section = Section(kind="differences", heading=heading, body="\n".join([*intro, *lines]), items=(*items, *parts[:1]))
    rest = (*(_item(item, language) for item in others), *parts[1:])
    if not rest:
        return section, ()
    body = "\n".join(f"- {item}" for item in rest)
    more = messages("headings.more_differences", language)
    return section, (Section(kind="differences", heading=more, body=body, items=rest, folded=True),)


def _item(item: DifferenceView, language: str) -> str:
    good, bad = (messages("diff.absent", language) if value is None else code(value) for value in (item.good, item.bad))
    where = f" ({place(item.bad_place, language)})" if item.bad_place is not None else ""
    text = f"{code(item.name)}: {good} → {bad}{where}"
    effect = next((effect for effect in item.effects if effect.explains), next(iter(item.effects), None))
    return f"{text}. {effect.title}" if effect is not None else text


def _parting(curve: CurveView, language: str) -> str:
    name = "diff.curve_whole" if curve.whole else "diff.curve"
    numbers = {"good": f"{curve.good:.4g}", "bad": f"{curve.bad:.4g}", "place": place(curve.bad_place, language)}
    return messages(name, language, metric=code(curve.metric), step=curve.step, **numbers)


def _curve(parting: CurveParting) -> CurveView:
    return CurveView(
        metric=parting.metric,
        step=parting.step,
        good=parting.good.value,
        bad=parting.bad.value,
        whole=parting.whole,
        good_place=parting.good.span,
        bad_place=parting.bad.span,
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
