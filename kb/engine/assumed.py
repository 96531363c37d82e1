"""A run with the defaults of the newest release read, where its own release is not known.

Nothing is ever stated by it: it tells which open questions are worth asking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.values import show
from trainmedic.kb.engine.version_ranges import version_text
from trainmedic.kb.frameworks.canonical import canonicalise
from trainmedic.kb.frameworks.horizon import Horizon
from trainmedic.kb.frameworks.profiles import profiles, title
from trainmedic.kb.model.report import Text


@dataclass(frozen=True, slots=True)
class Assumed:
    """The facts with these defaults, and the release whose own are not known."""

    facts: Facts
    horizon: Horizon

    def note(self, name: str) -> Text | None:
        """The default of a setting in the last release that was read; None if it had none."""
        setting = self.facts.run.settings.get(name)
        if setting is None or not setting.is_default:
            return None
        fact, bound = self.horizon.fact, self.horizon.bounds[0]
        package = title(fact.package) if fact.package in profiles() else fact.package
        value, version = show(setting.value), version_text(fact)
        return Text(
            en=f"Its default in {package} {version} is not known; in {bound.release} it was {value}.",
            zh=f"{package} {version} 中的默认值未知；{bound.release} 中是 {value}。",
        )


def assumed(facts: Facts) -> Assumed | None:
    """None where the defaults of the run's own releases are known, or nothing is known of their packages."""
    run, versions = facts.run, facts.evidence.versions
    unread = facts.unread
    if not unread:
        return None
    read = {each.fact.package: replace(each.fact, exact=each.bounds[0].release, low=None, high=None) for each in unread}
    framework = run.framework.value if run.framework is not None else ""
    settings = canonicalise(
        run.options,
        framework,
        run.algorithm.value if run.algorithm is not None else None,
        run.stage.value if run.stage is not None else None,
        {**versions, **read},
        run.partial,
        model_family=run.model_family.value if run.model_family is not None else None,
        programs=[region.entry.value for region in run.regions if region.entry is not None],
    )
    then = replace(run, settings={**settings, **run.settings})
    named = next((each for each in unread if each.fact.package == profiles()[framework].package), unread[0])
    return Assumed(Facts(facts.evidence, then, facts.concepts, facts.haystack, unread=()), named)
