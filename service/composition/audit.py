"""The audit of an environment, shaped for the wire. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trainmedic.kb.audit.audit import DefectMatch, audit, closeness, wordings
from trainmedic.kb.audit.defect import Defect, DefectSet
from trainmedic.kb.audit.lock_comparison import LockComparison, compare
from trainmedic.kb.audit.requirement_edits import requirement_edits
from trainmedic.kb.audit.upgrades import Remainder, plan, releases_of
from trainmedic.kb.engine.asks import missing as missing_of
from trainmedic.kb.engine.facts import version_text
from trainmedic.kb.engine.patches import patched, unified_diff
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Edit
from trainmedic.kb.model.run import VersionFact
from trainmedic.service.answer import (
    AuditView,
    ComparisonView,
    DefectView,
    OptionChangeView,
    PackageChangeView,
    RemainderView,
    VersionChangeView,
)
from trainmedic.service.composition.views import missing_view, receipt_view

messages = load_messages(__package__)
MOST_BESIDE_ANSWER = 6
"""Defects that are listed beside the causes of an answer."""
SPEAKS_OF = 0.6
"""Closeness from which a pasted text speaks of a defect."""


def audited(
    evidence: Evidence,
    defects: DefectSet,
    language: str,
    *,
    with_possible: bool = False,
    good: Mapping[str, VersionFact] | None = None,
) -> tuple[AuditView, tuple[Edit, ...]]:
    """The defects of an environment and what to change, also as edits of the requirement files among the input.

    ``good``: the versions of an environment that works, to compare with.
    """
    matches = audit(defects.all, evidence, releases_of(defects.all))
    upgrades = plan(matches, defects.all, evidence.versions, with_possible=with_possible)
    comparison = compare(good, evidence, matches, wordings(evidence)) if good is not None else None
    edits = tuple(requirement_edits(upgrades.changes, evidence.versions, evidence.sources))
    view = AuditView(
        defects=tuple(defect_view(match, language) for match in matches),
        changes=tuple(
            VersionChangeView(
                package=change.package,
                current=change.current,
                to=change.to,
                clears=change.clears,
                enters=change.enters,
                because=change.because,
            )
            for change in upgrades.changes
        ),
        left=tuple(_remainder(item, language) for item in upgrades.left),
        packages={
            name: version_text(fact) for name, fact in sorted(evidence.versions.items()) if name in defects.by_package
        },
        receipt=receipt_view(evidence.receipt),
        patch=_patch(edits, evidence),
        failures=tuple(str(failure) for failure in defects.failures),
        compare=comparison_view(comparison) if comparison is not None else None,
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
    return DefectView(
        id=defect.id,
        package=defect.package,
        version=version_text(match.version),
        title=defect.title.get(language),
        effect=defect.effect.value,
        affected=defect.affected or messages("audit.all_releases", language),
        introduced=defect.introduced,
        fixed=defect.fixed,
        certain=match.certain,
        doubts=tuple(doubt.value for doubt in match.doubts),
        missing=tuple(missing_view(item, language) for item in asks),
        workaround=defect.workaround.get(language) if defect.workaround is not None else "",
        link=defect.link,
        mechanism=defect.mechanism,
        evidence=(*place, *match.spans),
    )


def _remainder(item: Remainder, language: str) -> RemainderView:
    name = "conflict" if item.reason == "constraint" and not item.detail else item.reason
    message = messages(f"audit.{name}", language, detail=item.detail)
    return RemainderView(defect=item.defect, reason=item.reason, message=message)


def comparison_view(comparison: LockComparison) -> ComparisonView:
    return ComparisonView(
        packages=tuple(
            PackageChangeView(
                package=change.package,
                good=version_text(change.good) if change.good is not None else None,
                bad=version_text(change.bad) if change.bad is not None else None,
                kind=change.kind,
            )
            for change in comparison.packages
        ),
        defects=tuple(match.defect.id for match in comparison.defects),
        options=tuple(
            OptionChangeView(
                framework=option.framework,
                option=option.option,
                kind=option.kind,
                before=option.before,
                after=option.after,
                concerns=option.concerns,
            )
            for option in comparison.options
        ),
    )


def defects_beside(
    evidence: Evidence, defects: Iterable[Defect], mechanisms: Iterable[str], language: str
) -> tuple[DefectView, ...]:
    """The few defects to show with an answer: certain ones, and those that the text or a likely mechanism speaks of.

    Only packages whose version was pasted count. The closest to the text come first.
    """
    pasted = {name for name, fact in evidence.versions.items() if fact.exact is not None and fact.span is not None}
    concerned = [defect for defect in defects if defect.package in pasted]
    if not concerned:
        return ()
    likely = frozenset(mechanisms)
    sentences = wordings(evidence)
    chosen = []
    for place, match in enumerate(audit(concerned, evidence, releases_of(concerned))):
        near = closeness(match.defect, evidence, sentences)
        speaks = near >= SPEAKS_OF or (match.defect.mechanism in likely)
        if match.certain or speaks:
            chosen.append((not speaks, -near, place, match))
    chosen.sort(key=lambda item: item[:3])
    return tuple(defect_view(match, language) for *_, match in chosen[:MOST_BESIDE_ANSWER])
