"""Where knowledge of a release ends, as one sentence a package. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trainmedic.kb.frameworks.horizon import Horizon, Kind, horizons, packages_of
from trainmedic.kb.frameworks.profiles import profiles, title
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.report_view import HorizonView
from trainmedic.kb.model.run import VersionFact

if TYPE_CHECKING:  # a check needs no search
    from trainmedic.service.pipeline import Draft

messages = load_messages(__package__)


def of_draft(draft: Draft) -> tuple[Horizon, ...]:
    """The packages that an answer speaks of, in releases beyond what is known."""
    named = packages_of(draft.context.evidence.runs) or frozenset()
    asked = draft.inquiry.packages if draft.inquiry is not None else ()
    return horizons(draft.context.evidence.versions, {*named, *asked, *(m.defect.package for m in draft.defects)})


def horizon_views(horizons: Iterable[Horizon], language: str) -> tuple[HorizonView, ...]:
    return tuple(_view(horizon, language) for horizon in horizons)


def _view(horizon: Horizon, language: str) -> HorizonView:
    ends = {bound.kind: bound.release for bound in horizon.bounds}
    return HorizonView(
        package=horizon.fact.package,
        asked=release_text(horizon.fact),
        read_up_to=horizon.bounds[0].release,
        message=sentence(horizon, language),
        options=ends.get(Kind.OPTIONS),
        defects=ends.get(Kind.DEFECTS),
        older=horizon.older,
    )


def sentence(horizon: Horizon, language: str) -> str:
    """A sentence on what is not known of the release, and up to where it is."""
    package = horizon.fact.package
    kinds = [bound.kind for bound in horizon.bounds]
    dated = [f"{bound.release} ({bound.date})" if bound.date else bound.release for bound in horizon.bounds]
    if len(set(dated)) > 1:
        dated = [messages(f"horizon.{kind}", language, release=text) for kind, text in zip(kinds, dated, strict=True)]
    name = "older" if horizon.older else "newer" if Kind.OPTIONS in kinds else "newer_defects"
    return messages(
        f"horizon.{name}",
        language,
        package=title(package) if package in profiles() else package,
        version=release_text(horizon.fact),
        bounds=messages("horizon.and", language).join(dict.fromkeys(dated)),
    )


def release_text(fact: VersionFact) -> str:
    """A version as a sentence names it: ``0.19.1``, ``0.19.x`` where only the series is known."""
    if fact.exact or not fact.low:
        return fact.exact or ""
    series = fact.high is not None and fact.high.endswith(".dev0")
    return f"{fact.low}.x" if series else f"{fact.low}–{fact.high}" if fact.high else f"≥ {fact.low}"
