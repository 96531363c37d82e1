"""Pages of causes that a release ended, as known defects beside those of the lists: what an audit looks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from trainmedic.kb.audit.defect import Defect, DefectSet, Effect
from trainmedic.kb.engine.rule import Rule
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Severity
from trainmedic.kb.pages.case import CAUSES, load_cases
from trainmedic.kb.pages.compiled import CompiledPages
from trainmedic.kb.pages.defect import defect_packages, framework_of, load_defects
from trainmedic.kb.pages.page import KNOWLEDGE, NO_READERS
from trainmedic.kb.pages.rule import load_rules
from trainmedic.kb.versions import parse_range


def load_known(packages: Collection[str] | None = None, folders: Iterable[Path] = ()) -> DefectSet:
    """The known defects of these packages (None: of all), of lists and of pages."""
    folders = tuple(folders)
    told = _read(folders) if folders else told_by_shipped_pages()
    return with_pages(load_defects(packages, folders), told, packages)


def told_by_shipped_pages() -> tuple[Defect, ...]:
    """The defects of the built-in pages."""
    compiled = CompiledPages(CAUSES, "fixed", KNOWLEDGE, NO_READERS)
    told: tuple[Defect, ...] | None = compiled.load()
    if told is None:
        told = _read()
        compiled.keep(told)
    return told


def with_pages(listed: DefectSet, told: Iterable[Defect], packages: Collection[str] | None = None) -> DefectSet:
    """The listed defects, and those of pages unless a list has the change that the page cites."""
    by_package = dict(listed.by_package)
    for defect in told:
        if packages is None or defect.package in packages:
            known = by_package.get(defect.package, ())
            if not any(each.link in defect.links for each in known):
                by_package[defect.package] = tuple(sorted((*known, defect), key=lambda each: each.id))
    return replace(listed, by_package=MappingProxyType(dict(sorted(by_package.items()))))


def defects_told(cases: Iterable[Case], rules: Mapping[str, Rule]) -> Iterator[Defect]:
    """A page's defect of each package of which it names the release without it."""
    for case in cases:
        for package, fixed in case.fixed.items():
            if case.status == "published" and case.effect and package in defect_packages():
                yield _defect(case, package, fixed, rules)


def _read(folders: Iterable[Path] = ()) -> tuple[Defect, ...]:
    folders = tuple(folders)
    rules = {rule.id: rule for rule in load_rules(folders).rules}
    return tuple(defects_told(load_cases(folders).cases, rules))


def _defect(case: Case, package: str, fixed: str, rules: Mapping[str, Rule]) -> Defect:
    bounds = parse_range(case.affected[package]) if package in case.affected else ()
    first = next((str(bound.bound) for bound in bounds if bound.operator in (">=", "==")), None)
    found = [rules[name] for name in case.rules if name in rules]
    links = tuple(source.url.partition("#")[0] for source in case.sources)
    return Defect(
        id=case.id,
        package=package,
        title=case.title,
        effect=Effect(case.effect),
        touches=case.settings,
        symptoms=case.symptoms,
        introduced=first,
        fixed=fixed,
        when=" or ".join(f"({_condition(rule)})" for rule in found if _decides(rule, package)),
        link=links[0],
        links=links,
        framework=framework_of(package),
    )


def _decides(rule: Rule, package: str) -> bool:
    """Whether a check tells of this package's defect, and not only asks or tells what is normal."""
    text = rule.condition.root.text if rule.condition is not None else ""
    return rule.severity is not Severity.INFO and f'"{package}"' in text


def _condition(rule: Rule) -> str:
    assert rule.condition is not None
    scopes = [f"{scope} in ({', '.join(map(repr, words))},)" for scope, words in rule.applies.items()]
    return " and ".join(scopes + [f"({part.text})" for part in rule.condition.parts])
