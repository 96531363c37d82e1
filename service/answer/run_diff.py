"""A failing run against one that works, for the wire and as sections of an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trainmedic.kb.comparison.curve_comparison import CurveParting
from trainmedic.kb.comparison.run_diff import Difference, Side, diff_runs
from trainmedic.kb.engine.mechanism import Mechanism
from trainmedic.kb.frameworks.horizon import horizons, packages_of
from trainmedic.kb.model.environment import SourceComparison
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report_view import HorizonView
from trainmedic.kb.projection import project
from trainmedic.service.answer.audit import defect_view
from trainmedic.service.answer.citations import code, place
from trainmedic.service.answer.horizon import horizon_views
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import CurveView, DifferenceView, DiffView, Section, TwoRunsView
from trainmedic.service.answer.series import series_views
from trainmedic.service.answer.views import finding_view, receipt_view, run_view, signal_view

if TYPE_CHECKING:  # `trainmedic diff` needs no search
    from trainmedic.service.pipeline import Draft

Sections = tuple[Section, ...]
MOST_SHOWN = 5
"""Differences before the fold."""
MOST_LISTED = 30


def diff_view(
    good: Side,
    bad: Side,
    mechanisms: Iterable[Mechanism],
    language: str,
    source: tuple[SourceComparison, ...] = (),
) -> DiffView:
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
        horizon=_horizon(good.evidence, bad.evidence, language),
        source=source,
    )


def _horizon(good: Evidence, bad: Evidence, language: str) -> tuple[HorizonView, ...]:
    """One line a package: that of the failing run, if both releases are beyond what is known."""
    packages = packages_of((*good.runs, *bad.runs))
    found = {each.fact.package: each for side in (good, bad) for each in horizons(side.versions, packages)}
    return horizon_views((found[name] for name in sorted(found)), language)


def two_runs_view(draft: Draft) -> TwoRunsView | None:
    """The differences in what the first cause is about come first: they explain the failure."""
    if draft.runs is None:
        return None
    good, diff = draft.runs.works.evidence, draft.runs.diff
    cause = draft.diagnosis.lead or draft.diagnosis.likely
    ranks = {name: number for number, name in enumerate(cause.case.settings if cause is not None else ())}
    listed = (_difference(each, draft.language, concerned=each.name in ranks) for each in diff.differences)
    return TwoRunsView(
        works=tuple(source.name for source in good.sources if source.name is not None),
        fails=draft.runs.fails,
        differences=tuple(sorted(listed, key=lambda view: ranks.get(view.name, len(ranks)))),
        curves=tuple(map(_curve, diff.curves)),
        series=series_views(good),
        receipt=receipt_view(good.receipt),
    )


def _difference(difference: Difference, language: str, *, concerned: bool = False) -> DifferenceView:
    return project(DifferenceView, difference, language, concerned=concerned)


def differences(draft: Draft, language: str) -> tuple[Sections, Sections]:
    """The differences from the run that works, as sections before and behind the fold."""
    view = two_runs_view(draft)
    if view is None:
        return (), ()
    return _sections(view, language)


def _sections(view: TwoRunsView, language: str) -> tuple[Sections, Sections]:
    """The differences that explain the failure, or else the first ones with a known effect; and all others, folded."""
    listed = view.differences[:MOST_LISTED]
    named = {item.name for item in listed}
    curves = [curve for curve in view.curves if curve.metric not in named]
    explaining = [item for item in listed if item.explains]
    first = explaining[:MOST_SHOWN] or [item for item in listed if item.effects][:MOST_SHOWN] or listed[:MOST_SHOWN]
    others = [item for item in listed if item not in first]
    intro = [] if explaining or not first else [messages("diff.unexplained", language)]
    items = tuple(_item(item, language) for item in first)
    parts = tuple(_parting(curve, language) for curve in curves[:MOST_SHOWN])
    lines = [f"- {item}" for item in (*items, *parts[:1])] or [messages("diff.same", language)]
    heading = messages("headings.differences", language)
    section = Section(kind="differences", heading=heading, body="\n".join([*intro, *lines]), items=(*items, *parts[:1]))
    rest = (*(_item(item, language) for item in others), *parts[1:])
    if not rest:
        return (section,), ()
    body = "\n".join(f"- {item}" for item in rest)
    more = messages("headings.more_differences", language)
    return (section,), (Section(kind="differences", heading=more, body=body, items=rest, folded=True),)


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
    good, bad = parting.good, parting.bad
    places = {"good_place": good.span, "bad_place": bad.span}
    return project(CurveView, parting, good=good.value, bad=bad.value, **places)
