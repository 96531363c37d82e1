"""One option in words, from the catalogues: whether a release has it, its type and default, and what became of it.

The facts were read from the frameworks' tagged sources (see `kb.frameworks.catalogue`). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.catalogue import OptionInfo, Suggestion
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.messages import load_messages

messages = load_messages("trainmedic.service.agent")

MAX_CHOICES = 20
MAX_OWNERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """What the catalogue says. ``text`` names framework, release and option in its first sentence."""

    framework: str
    version: str
    option: str
    exists: bool
    text: str


def catalogue_of(name: str) -> str | None:
    """The catalogue of this name, or None. Unsloth's options are TRL's."""
    name = name.strip().casefold()
    profile = next((each for each in profiles().values() if name == each.name or name in each.names), None)
    found = (profile.options_of or profile.name) if profile is not None else None
    return found if found in catalogue.frameworks() else None


def looked_up(framework: str, option: str, version: str | None, language: str) -> LookedUp:
    """What ``framework`` (one of the catalogues) knows of ``option`` at ``version`` (None: its newest release)."""
    key = option.strip().lstrip("-")
    info = catalogue.option(framework, key, version)
    shown = version or catalogue.nearest(framework, None) or ""
    parts = _known(info, framework, shown, language) if info else _unknown(framework, key, version, shown, language)
    return LookedUp(
        framework=framework,
        version=shown,
        option=info.key if info else key,
        exists=info is not None,
        text=" ".join([*parts, *_renames(framework, info.key if info else key, language)]),
    )


def _known(info: OptionInfo, framework: str, version: str, language: str) -> Iterator[str]:
    yield messages("option", language, framework=framework, version=version, option=info.key)
    if info.type:
        yield messages("type", language, type=info.type)
    if info.required:
        yield messages("needed", language)
    elif info.default_known:
        yield messages("default", language, default=info.default)
    else:
        yield messages("computed", language)
    if info.choices:
        choices = ", ".join(str(choice) for choice in info.choices[:MAX_CHOICES])
        yield messages("choices", language, choices=choices)
    yield messages("since", language, first=info.first)
    if info.last:
        yield messages("until", language, last=info.last)
    if info.owners:
        yield messages("owners", language, owners=", ".join(info.owners[:MAX_OWNERS]))


def _unknown(framework: str, key: str, version: str | None, shown: str, language: str) -> Iterator[str]:
    yield messages("no_option", language, framework=framework, version=shown, option=key)
    found: Suggestion | None = catalogue.suggest(framework, key, version)
    if found is not None:
        yield (
            messages(
                f"suggestion.{found.why}",
                language,
                key=found.key,
                framework=found.framework,
                first=found.first,
                last=found.last,
            )
        )


def _renames(framework: str, key: str, language: str) -> Iterator[str]:
    for step in dict.fromkeys((r.old, r.new, r.last_old, r.first_new) for r in catalogue.renamed(framework, key)):
        old, new, last_old, first_new = step
        yield messages("renamed", language, old=old, new=new, last_old=last_old, first_new=first_new)
