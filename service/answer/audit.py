"""The audit of an environment, shaped for the wire. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmedic.kb.audit.audit import DefectMatch, audit, wordings
from trainmedic.kb.audit.defect import DefectSet
from trainmedic.kb.audit.lock_comparison import LockComparison, compare
from trainmedic.kb.audit.requirement_edits import requirement_edits
from trainmedic.kb.audit.upgrades import Remainder, plan, releases_of
from trainmedic.kb.engine.asks import missing as missing_of
from trainmedic.kb.engine.patches import patched, unified_diff
from trainmedic.kb.engine.version_ranges import version_text
from trainmedic.kb.frameworks.horizon import horizons
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.environment import SourceComparison
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Edit
from trainmedic.kb.model.report_view import MissingView
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.projection import project
from trainmedic.service.answer.horizon import horizon_views
from trainmedic.service.answer.schema import (
    AuditView,
    ComparisonView,
    DefectView,
    PackageChangeView,
    RemainderView,
)
from trainmedic.service.answer.views import receipt_view

messages = load_messages(__package__)


def audited(
    evidence: Evidence,
    defects: DefectSet,
    language: str,
    *,
    with_possible: bool = False,
    good: Mapping[str, VersionFact] | None = None,
    source: tuple[SourceComparison, ...] = (),
) -> tuple[AuditView, tuple[Edit, ...]]:
    """The defects of an environment and what to change, also as edits of the requirement files among the input.

    ``good``: the versions of an environment that works, to compare with, ``source`` what changed in the code since.
    """
    matches = audit(defects.all, evidence, releases_of(defects.all))
    upgrades = plan(matches, defects.all, evidence.versions, with_possible=with_possible)
    comparison = compare(good, evidence, matches, wordings(evidence)) if good is not None else None
    edits = tuple(requirement_edits(upgrades.changes, evidence.versions, evidence.sources))
    view = AuditView(
        defects=tuple(defect_view(match, language) for match in matches),
        changes=upgrades.changes,
        left=tuple(_remainder(item, language) for item in upgrades.left),
        packages={
            name: version_text(fact) for name, fact in sorted(evidence.versions.items()) if name in defects.by_package
        },
        receipt=receipt_view(evidence.receipt),
        patch=_patch(edits, evidence),
        failures=tuple(str(failure) for failure in defects.failures),
        compare=comparison_view(comparison, source) if comparison is not None else None,
        horizon=horizon_views(horizons(evidence.versions), language),
    )
    return view, edits


def _patch(edits: Sequence[Edit], evidence: Evidence) -> str:
    after = patched(edits, evidence.sources)
    pairs = zip(evidence.sources, after, strict=True)
    return "".join(unified_diff(old.text, new.text, old.name) for old, new in pairs if old is not new)


def defect_view(match: DefectMatch, language: str) -> DefectView:
    defect = match.defect
    place = (match.version.span,) if match.version.span is not None else ()
    asks = (missing_of(fact, defect.title) for fact in match.missing)
    return project(
        DefectView,
        defect,
        language,
        version=version_text(match.version),
        affected=defect.affected or messages("audit.all_releases", language),
        certain=match.certain,
        doubts=tuple(doubt.value for doubt in match.doubts),
        missing=tuple(project(MissingView, item, language) for item in asks),
        evidence=(*place, *match.spans),
    )


def _remainder(item: Remainder, language: str) -> RemainderView:
    name = "conflict" if item.reason == "constraint" and not item.detail else item.reason
    message = messages(f"audit.{name}", language, detail=item.detail)
    return project(RemainderView, item, message=message)


def comparison_view(comparison: LockComparison, source: tuple[SourceComparison, ...]) -> ComparisonView:
    return ComparisonView(
        packages=tuple(
            project(
                PackageChangeView,
                change,
                good=version_text(change.good) if change.good is not None else None,
                bad=version_text(change.bad) if change.bad is not None else None,
            )
            for change in comparison.packages
        ),
        defects=tuple(match.defect.id for match in comparison.defects),
        options=comparison.options,
        source=source,
    )
