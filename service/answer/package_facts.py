"""Facts about packages and their releases for an explanation: which fit together, and which are broken. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Protocol

from trainmedic.kb.audit.audit import DefectMatch, Doubt, audit
from trainmedic.kb.audit.upgrades import plan, releases_of
from trainmedic.kb.engine.version_ranges import in_range
from trainmedic.kb.frameworks import catalogue
from trainmedic.kb.frameworks.entries import owners
from trainmedic.kb.frameworks.profiles import ALGORITHMS, profiles, title
from trainmedic.kb.frameworks.tables import side
from trainmedic.kb.model.run import VersionFact
from trainmedic.kb.versions import parse_range, permits, version_key
from trainmedic.service.answer.citations import Citations, code
from trainmedic.service.answer.horizon import release_text
from trainmedic.service.answer.passages import Sections, listing
from trainmedic.service.dialogue.inquiry import Inquiry
from trainmedic.service.pipeline import Draft

MANY = 3
"""Packages above which a question is about an environment."""
MAX_REQUIREMENTS = 6
"""Lines of requirements, those of the newest releases."""
SEPARATOR = {"en": ", ", "zh": "、"}


class OnPage(Protocol):
    """The page of an answer, as the slots of an explanation see it."""

    draft: Draft
    citations: Citations
    language: str

    def says(self, name: str, /, **values: object) -> str:
        """A message in the language of the answer."""

    def headed(self, name: str, sections: Sections) -> Sections:
        """The sections under a heading."""


def named(package: str) -> str:
    return title(package) if package in profiles() else package


def joined_names(names: Sequence[str], page: OnPage) -> str:
    return SEPARATOR["zh" if page.language == "zh" else "en"].join(names)


# What fits together


def fits(inquiry: Inquiry, page: OnPage) -> list[str]:
    """The requirements that the packages' own releases have of each other, and since when a feature is there."""
    items: list[str] = []
    for name in inquiry.packages:
        for other in inquiry.packages:
            items += _required(name, other, inquiry, page) if name != other else ()
        items += _features(name, inquiry, page)
    return items


def _required(name: str, other: str, inquiry: Inquiry, page: OnPage) -> list[str]:
    """What the releases of one package require of another, and which of them allow its version."""
    known = {release: spec[other] for release, spec in side("pins").get(name, {}).items() if other in spec}
    if not known:
        return []
    items = []
    wanted, mine = inquiry.versions.get(other), _release(inquiry.versions.get(name))
    if wanted is not None and _release(wanted):
        allowing = [release for release, spec in known.items() if _allows(spec, wanted)]
        values = {"package": named(name), "other": named(other), "version": release_text(wanted)}
        if allowing:
            items.append(page.says("explained.allowing", releases=joined_names(allowing, page), **values))
        else:
            items.append(page.says("explained.none_allows", first=min(known, key=version_key), **values))
    spans = [(spec, [release for release, _ in group]) for spec, group in groupby(known.items(), lambda pin: pin[1])]
    if mine:
        spec = catalogue.pins(name, mine).get(other)
        spans = [(spec, [mine])] if spec else []
    for spec, releases in spans[: -MAX_REQUIREMENTS - 1 : -1]:
        span = releases[0] if len(releases) == 1 else f"{releases[0]}–{releases[-1]}"
        values = {"package": named(name), "version": span, "other": named(other)}
        items.append(page.says("explained.requires", spec=code(spec), **values))
    return items


def _allows(spec: str, fact: VersionFact) -> bool:
    """Whether a requirement allows a version, or some release of a series."""
    if fact.exact is not None:
        return permits(spec, fact.exact)
    try:
        return in_range(fact, parse_range(spec)) is not False
    except ValueError:
        return permits(spec, _release(fact))


def _release(fact: VersionFact | None) -> str:
    return (fact.exact or fact.low or "") if fact is not None else ""


def _features(name: str, inquiry: Inquiry, page: OnPage) -> Iterator[str]:
    """Since when a framework has the options and algorithms asked about."""
    for subject in inquiry.subjects:
        life = catalogue.history(name).get(subject.key) if subject.framework == name else None
        releases = _releases_with(name, subject.concept)
        first, last = (life.first, life.last) if life else (releases[0], releases[-1]) if releases else ("", None)
        if not first:
            continue
        read = catalogue.versions(name)[-1]
        key = "explained.feature" if last in (None, read) else "explained.feature_until"
        shown = code(subject.key) if subject.key else subject.name
        yield page.says(key, package=named(name), name=shown, first=first, last=last, read=read)


def _releases_with(framework: str, concept: str) -> list[str]:
    """The catalogued releases with an algorithm's own command or class."""
    own = owners(framework, concept)[:1] if concept in ALGORITHMS["mentions"] else ()
    return [name for name in catalogue.versions(framework) if set(own) & catalogue.commands(framework, name)]


# What is broken


def matches(inquiry: Inquiry, page: OnPage) -> tuple[DefectMatch, ...]:
    """The defects of the packages asked about: at their versions, or of any release where no version is known."""
    defects = page.draft.knowledge.defects.of(inquiry.packages).all
    evidence = page.draft.context.evidence
    found = audit([d for d in defects if d.package in evidence.versions], evidence, releases_of(defects))
    anywhere = sorted(
        (d.fixed is not None, d.effect.rank, d.id, d) for d in defects if d.package not in evidence.versions
    )
    unknown = (VersionFact(package=d.package, exact=None, reason="") for *_, d in anywhere)
    return (
        *found,
        *(
            DefectMatch(defect=d, version=v, doubts=(Doubt.VERSION,))
            for (*_, d), v in zip(anywhere, unknown, strict=True)
        ),
    )


def between(inquiry: Inquiry, page: OnPage) -> list[DefectMatch]:
    """The defects of one of the packages that name another of them."""
    others = {name.replace("-", "").replace("_", "") for name in inquiry.packages}
    return [
        match
        for match in matches(inquiry, page)
        if any(
            other != match.defect.package and other in name.lower().replace("-", "").replace("_", "")
            for other in others
            for name in (*match.defect.touches, match.defect.title.en)
        )
    ]


def upgrades(inquiry: Inquiry, page: OnPage) -> list[str]:
    """The smallest upgrades that end the defects of the installed packages asked about, the most first."""
    evidence = page.draft.context.evidence
    defects = page.draft.knowledge.defects.of(evidence.versions).all
    found = audit(defects, evidence, releases_of(defects))
    changes = plan(found, defects, evidence.versions, with_possible=True).changes
    return [
        page.says(
            "explained.upgrade", package=named(each.package), now=each.current, to=each.to, count=len(each.clears)
        )
        for each in sorted(changes, key=lambda change: -len(change.clears))
        if each.package in inquiry.packages and each.clears
    ]


def defect_list(found: Sequence[DefectMatch], page: OnPage, name: str) -> Sections:
    items, markers = [], []
    for match in found:
        defect = match.defect
        markers.append(page.citations.case(page.draft.knowledge.published[defect.id]))
        fixed = "fixed" if defect.fixed else "unfixed"
        notes = [
            page.says(f"explained.effect.{defect.effect.value}"),
            page.says(f"explained.{fixed}", version=defect.fixed),
        ]
        notes += () if match.certain else (page.says("explained.maybe"),)
        items.append(f"{defect.title.get(page.language)} ({joined_names(notes, page)}) [{markers[-1]}]")
    return page.headed(name, listing("defects", items, markers))


def problems_text(inquiry: Inquiry, page: OnPage) -> str:
    """How many defects of the packages are known, by what they do, and how far the list goes."""
    found = matches(inquiry, page)
    versions = page.draft.context.evidence.versions
    if len(inquiry.packages) > MANY:
        counted = Counter(match.defect.package for match in found)
        listed = [f"{named(name)} {release_text(versions[name])} ({count})" for name, count in counted.most_common()]
        name = "explained.environment" if found else "explained.environment_clean"
        certain = sum(match.certain for match in found)
        return page.says(name, count=len(found), certain=certain, packages=joined_names(listed, page))
    names = [(name, release_text(versions[name]) if name in versions else "") for name in inquiry.packages]
    packages = joined_names([f"{named(name)} {version}".strip() for name, version in names], page)
    read = {name: newest for name, _ in names if (newest := _newest(name, page))}
    limits = joined_names([f"{named(name)} {newest}" for name, newest in read.items()], page)
    if not found:
        return page.says("explained.no_defects" if read else "explained.defects_unread", packages=packages, read=limits)
    counts = Counter(match.defect.effect for match in found)
    effects = [f"{page.says(f'explained.effect.{e.value}')} {counts[e]}" for e in sorted(counts, key=lambda e: e.rank)]
    certain = all(version for _, version in names)
    values = {"count": len(found), "packages": packages, "effects": joined_names(effects, page), "read": limits}
    return page.says("explained.defects" if certain else "explained.defects_any", **values)


def _newest(package: str, page: OnPage) -> str:
    """The newest release up to which the defects of a package were read."""
    releases = releases_of(page.draft.knowledge.defects.of((package,)).all).get(package, ())
    known = [*map(str, releases), *catalogue.versions(package)]
    return max(known, key=version_key, default="")
