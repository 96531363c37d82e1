"""Known defects as causes beside the cases."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from trainmedic.kb.audit.defect import Defect, DefectSet, Effect
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Reference
from trainmedic.kb.pages.case import CaseSet

messages = load_messages("trainmedic.kb.pages")
LANGUAGES = ("en", "zh")
SIGNALS: Mapping[Effect, tuple[str, ...]] = MappingProxyType({Effect.HANG: ("hang",), Effect.MEMORY: ("oom",)})
"""The signals of an effect, where it has any of its own."""


def with_defects(cases: CaseSet, defects: DefectSet) -> CaseSet:
    """The cases, and the known defects as causes beside them."""
    causes = [cause_of(defect) for listed in defects.by_package.values() for defect in listed]
    return replace(
        cases,
        cases=tuple(sorted((*cases.cases, *causes), key=lambda cause: cause.id)),
        failures=(*cases.failures, *defects.failures),
        version=hashlib.sha256(f"{cases.version}\0{defects.version}".encode()).hexdigest()[:12],
    )


def cause_of(defect: Defect) -> Case:
    """A known defect as a cause: what is answered where a release itself is at fault."""
    return Case(
        id=defect.id,
        title=defect.title,
        kind="fault",
        family="version",
        frameworks=tuple(filter(None, (defect.framework,))),
        evidence="maintainer" if not defect.source else "source-read",
        reviewed="",
        sections=_Sections(defect),
        sources=(Reference(url=defect.link, says="source" if defect.source else "maintainer", note=defect.source),),
        affected=MappingProxyType({defect.package: defect.affected} if defect.affected else {}),
        fixed=MappingProxyType({defect.package: defect.fixed} if defect.fixed else {}),
        signals=SIGNALS.get(defect.effect, ()),
        settings=defect.touches,
        symptoms=defect.symptoms,
        level="defect",
    )


class _Sections(Mapping[str, Mapping[str, str]]):
    """The sections in each language, written when they are wanted: there are thousands, and an answer shows three."""

    def __init__(self, defect: Defect) -> None:
        self._defect = defect
        self._written: dict[str, Mapping[str, str]] = {}

    def __getitem__(self, language: str) -> Mapping[str, str]:
        if language not in LANGUAGES:
            raise KeyError(language)
        if language not in self._written:
            self._written[language] = _parts(self._defect, language)
        return self._written[language]

    def __iter__(self) -> Iterator[str]:
        return iter(LANGUAGES)

    def __len__(self) -> int:
        return len(LANGUAGES)

    def __repr__(self) -> str:
        return repr(dict(self))


def _fix_of(defect: Defect) -> str:
    return f"{defect.link} (`{defect.spot.symbol}`)" if defect.spot is not None else defect.link


def _parts(defect: Defect, language: str) -> Mapping[str, str]:
    """The sections of a known defect."""
    bounds = f"{'since' if defect.introduced else 'from_unknown'}_{'until' if defect.fixed else 'unreleased'}"
    values = {"package": defect.package, "introduced": defect.introduced or "", "fixed": defect.fixed or ""}
    cause = [messages("defect.cause", language, title=defect.title.get(language).rstrip(".。"))]
    cause.append(messages(f"defect.{bounds}", language, **values))
    if defect.when:
        cause.append(messages("defect.when", language, when=" ".join(defect.when.split())))
    fix = [messages("defect.upgrade" if defect.fixed else "defect.wait", language, **values)]
    if defect.workaround is not None:
        fix.append(messages("defect.workaround", language, text=defect.workaround.get(language)))
    gap = "" if language == "zh" else " "
    return MappingProxyType(
        {
            "symptom": "\n".join(f"- {symptom}" for symptom in defect.symptoms.get(language, ())),
            "cause": gap.join(cause),
            "fix": gap.join(fix),
            "confirm": messages("defect.confirm", language, link=_fix_of(defect), **values),
        }
    )
