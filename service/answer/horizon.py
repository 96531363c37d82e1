"""Where knowledge of a release ends, as one sentence a package. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trainmedic.kb.engine.facts import version_text
from trainmedic.kb.frameworks.horizon import Horizon, Kind
from trainmedic.kb.frameworks.profiles import profiles, title
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.report_view import HorizonView

messages = load_messages(__package__)


def horizon_views(horizons: Iterable[Horizon], language: str) -> tuple[HorizonView, ...]:
    return tuple(_view(horizon, language) for horizon in horizons)


def _view(horizon: Horizon, language: str) -> HorizonView:
    ends = {bound.kind: bound.release for bound in horizon.bounds}
    return HorizonView(
        package=horizon.fact.package,
        asked=version_text(horizon.fact),
        read_up_to=horizon.bounds[0].release,
        message=sentence(horizon, language),
        options=ends.get(Kind.OPTIONS),
        defects=ends.get(Kind.DEFECTS),
        older=horizon.older,
    )


def sentence(horizon: Horizon, language: str) -> str:
    """What is not known of the release, and up to where it is."""
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
        version=version_text(horizon.fact),
        bounds=messages("horizon.and", language).join(dict.fromkeys(dated)),
    )
