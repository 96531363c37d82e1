"""Descriptions of options from the catalogues: whether a release has one, its type and default, its history. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.catalogue import OptionInfo
from trainmedic.kb.frameworks.horizon import Kind, horizon
from trainmedic.kb.frameworks.profiles import profiles
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.run import VersionFact
from trainmedic.service.answer.horizon import sentence

messages = load_messages("trainmedic.service.diagnosis")

MAX_CHOICES = 20
MAX_OWNERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDescription:
    """One option in a release. ``text`` names framework, release and option in its first sentence."""

    version: str
    option: str
    exists: bool
    text: str


def catalogue_name(name: str) -> str | None:
    """The catalogue of this name, or None. Unsloth's options are TRL's."""
    name = name.strip().casefold()
    profile = next((profile for profile in profiles().values() if name == profile.name or name in profile.names), None)
    framework = (profile.options_of or profile.name) if profile is not None else None
    return framework if framework in catalogue.frameworks() else None


def describe_option(framework: str, option: str, version: str | None, language: str) -> OptionDescription:
    """Describe ``option`` in a release of ``framework``, by default the newest.

    Of a release beyond those that were read the last one is described, after a word that it is not the same.
    """
    key = option.strip().lstrip("-")
    fact = VersionFact(package=profiles()[framework].package, exact=version, reason="")
    beyond = horizon(fact, (Kind.OPTIONS,)) if framework in profiles() else None
    said = [sentence(beyond, language)] if beyond is not None else []
    version = beyond.bounds[0].release if beyond is not None else version
    info = catalogue.option(framework, key, version)
    # Without a version the newest release is described, which is what people install.
    release = version or catalogue.versions(framework)[-1]
    parts = _known(info, framework, release, language) if info else _unknown(framework, key, version, release, language)
    return OptionDescription(
        version=release,
        option=info.key if info else key,
        exists=info is not None,
        text=" ".join([*said, *parts, *_renames(framework, info.key if info else key, language)]),
    )


def _known(info: OptionInfo, framework: str, version: str, language: str) -> Iterator[str]:
    yield messages("option", language, framework=framework, version=version, option=info.key)
    if info.type:
        yield messages("type", language, type=info.type)
    if info.required:
        yield messages("needed", language)
    else:
        yield " ".join(_defaults(info, version, language))
    if info.choices:
        choices = ", ".join(str(choice) for choice in info.choices[:MAX_CHOICES])
        yield messages("choices", language, choices=choices)
    yield messages("since", language, first=info.first)
    if info.last:
        yield messages("until", language, last=info.last)
    if info.owners:
        yield messages("owners", language, owners=", ".join(info.owners[:MAX_OWNERS]))


def _defaults(info: OptionInfo, version: str, language: str) -> Iterator[str]:
    """The default at a version; in releases on either side of one that was not read, where they differ."""
    around = catalogue.around(info.framework, version) or (info.version,)
    found = {release: catalogue.option(info.framework, info.key, release) or info for release in around}
    values = {release: each.default for release, each in found.items() if each.default_known}
    if len(set(map(repr, values.values()))) > 1:
        for release, default in values.items():
            yield messages("default_at", language, default=default, version=release)
    elif values:
        yield messages("default", language, default=next(iter(values.values())))
    else:
        yield messages("computed", language)


def _unknown(framework: str, key: str, version: str | None, release: str, language: str) -> Iterator[str]:
    yield messages("no_option", language, framework=framework, version=release, option=key)
    suggestion = catalogue.suggest(framework, key, version)
    if suggestion is not None:
        names = {name: getattr(suggestion, name) for name in ("key", "framework", "first", "last")}
        yield messages(f"suggestion.{suggestion.why}", language, **names)


def _renames(framework: str, key: str, language: str) -> Iterator[str]:
    for step in dict.fromkeys((r.old, r.new, r.last_old, r.first_new) for r in catalogue.renamed(framework, key)):
        old, new, last_old, first_new = step
        yield messages("renamed", language, old=old, new=new, last_old=last_old, first_new=first_new)
