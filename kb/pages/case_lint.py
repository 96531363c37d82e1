"""What every case page must satisfy. One function per concern; each problem names the page it is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date
from typing import Protocol

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from trainmedic.ingest.authoring.originality import repeated
from trainmedic.kb.frameworks.profiles import select
from trainmedic.kb.model.case import EVIDENCE_GRADES, Case
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.case import HEADINGS, CaseSet

FAMILIES = (
    *("nan-loss", "divergence", "half-precision", "attention-backend", "masking", "truncation", "batch-arithmetic"),
    *("parallelism", "preference-objective", "metric-artefact", "oom", "communication", "checkpoint", "tokenizer"),
    *("kl", "reward", "version", "data", "throughput", "generation", "configuration"),
)
FRAMEWORKS = select("trainer", "library", "server")
ALGORITHMS = (
    *("pt", "sft", "dpo", "kto", "orpo", "simpo", "cpo", "ipo", "reward", "prm"),
    *("ppo", "grpo", "rloo", "reinforce", "gkd", "kd"),
)
STAGES = ("pretrain", "sft", "reward", "preference", "rl", "distill", "inference", "export")
SAYS = ("maintainer", "reporter", "source", "reproduction", "docs")
MIN_SYMPTOMS = 4

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_CODE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_VERSION = re.compile(r"(?<![\w.])\d+\.\d+(?:\.\d+)*(?:\.post\d+)?(?![\w.]*\d)")
_HAN = re.compile(r"[\u4e00-\u9fff]")


class LinkedRule(Protocol):
    """What a rule must tell about itself for the links to be checked."""

    @property
    def id(self) -> str: ...
    @property
    def cases(self) -> Sequence[str]: ...


class LinkedRules(Protocol):
    """A rule set, as far as links are concerned."""

    @property
    def rules(self) -> Iterable[LinkedRule]: ...


def lint_cases(
    caseset: CaseSet,
    ruleset: LinkedRules | None = None,
    *,
    signals: Collection[str] = (),
    settings: Collection[str] = (),
    today: date | None = None,
    read: Collection[str] = (),
) -> tuple[str, ...]:
    """All problems, sorted; pages that did not load come first.

    Without ``ruleset`` the links between rules and cases are not checked, without ``signals`` (the signal kinds)
    and ``settings`` (the canonical names) those words are not, without ``today`` a date in the future is let through.
    ``read`` holds digests of the sources' sentences (`ingest.authoring.originality`): none of them may stand on a page.
    """
    problems = [str(failure) for failure in caseset.failures]
    checks: tuple[Callable[[Case], Iterator[str]], ...] = (
        _identity,
        _vocabulary,
        _languages,
        _sections,
        _refutations,
        _sources,
    )
    known = {case.id for case in caseset.cases}
    found: list[str] = []
    for case in caseset.cases:
        page = caseset.pages.get(case.id, case.id)
        for check in checks:
            found.extend(f"{page}: {problem}" for problem in check(case))
        found.extend(f"{page}: {problem}" for problem in _dates(case, today))
        for _, text in _texts(case):
            found.extend(f"{page}: repeats a source: {said!r}" for said in repeated(f"{text.en}\n\n{text.zh}", read))
        found.extend(f"{page}: related case {other!r} does not exist" for other in case.related if other not in known)
        if signals:
            found.extend(f"{page}: unknown signal {name!r}" for name in case.signals if name not in signals)
        if settings:
            found.extend(f"{page}: unknown setting {name!r}" for name in case.settings if name not in settings)
    if ruleset is not None:
        found.extend(_links(caseset, ruleset))
    return (*problems, *sorted(found))


def _identity(case: Case) -> Iterator[str]:
    if not _ID.fullmatch(case.id):
        yield "id must be lower-case words joined by hyphens"
    if case.status not in ("published", "draft"):
        yield f"status {case.status!r} is neither published nor draft"
    if case.kind not in ("fault", "artefact"):
        yield f"kind {case.kind!r} is neither fault nor artefact"
    if case.evidence not in EVIDENCE_GRADES:
        yield f"evidence {case.evidence!r} is not one of {', '.join(EVIDENCE_GRADES)}"
    if bool(case.rules) == bool(case.no_rule):
        yield "give either rules, or no_rule with the reason"
    for name, values in (("rules", case.rules), ("related", case.related), ("signals", case.signals)):
        if len(set(values)) != len(values):
            yield f"{name} names something twice"
    if case.id in case.related:
        yield "is related to itself"


def _vocabulary(case: Case) -> Iterator[str]:
    allowed: tuple[tuple[str, Iterable[str], Collection[str]], ...] = (
        ("family", (case.family,), FAMILIES),
        ("framework", case.frameworks, FRAMEWORKS),
        ("algorithm", case.algorithms, ALGORITHMS),
        ("stage", case.stages, STAGES),
    )
    for name, values, words in allowed:
        for value in values:
            if value not in words:
                yield f"unknown {name} {value!r}"
    if not case.frameworks:
        yield "names no framework"
    yield from _versions(case)


def _versions(case: Case) -> Iterator[str]:
    ranges: dict[str, SpecifierSet] = {}
    for package, text in case.affected.items():
        try:
            ranges[package] = SpecifierSet(text)
        except InvalidSpecifier:
            yield f"affected.{package}: {text!r} is not a version range"
    for package, text in case.fixed.items():
        try:
            fixed = Version(text)
        except InvalidVersion:
            yield f"fixed.{package}: {text!r} is not a version"
            continue
        if package in ranges and ranges[package].contains(fixed, prereleases=True):
            yield f"fixed.{package} {text} lies in the affected range {case.affected[package]}"


def _languages(case: Case) -> Iterator[str]:
    """Both languages say the same: every version, and every option or code in the prose of one stands in the other."""
    for name, text in _texts(case):
        if not _HAN.search(text.zh):
            yield f"{name}: the Chinese text holds no Chinese"
        if _HAN.search(text.en):
            yield f"{name}: the English text holds Chinese"
        for missing in _missing(text.en, text.zh):
            yield f"{name}: {missing!r} stands in en, not in zh"
        for missing in _missing(text.zh, text.en):
            yield f"{name}: {missing!r} stands in zh, not in en"
    for language in ("en", "zh"):
        symptoms = case.symptoms.get(language, ())
        if len(symptoms) < MIN_SYMPTOMS:
            yield f"symptoms.{language}: {len(symptoms)}, at least {MIN_SYMPTOMS} are needed"
        if len({symptom.casefold() for symptom in symptoms}) != len(symptoms):
            yield f"symptoms.{language}: the same wording twice"


def _missing(here: str, there: str) -> list[str]:
    """Code spans, fenced blocks and version numbers of ``here`` that do not occur in ``there``."""
    blocks = _FENCE.findall(here)
    prose = _FENCE.sub("", here)
    wanted = [*_CODE.findall(prose), *_VERSION.findall(_CODE.sub("", prose)), *blocks]
    return sorted({item for item in wanted if item not in there})


def _texts(case: Case) -> Iterator[tuple[str, Text]]:
    yield "title", case.title
    for number, refutation in enumerate(case.refutations, start=1):
        yield f"refutation {number}, claim", refutation.claim
        yield f"refutation {number}, why", refutation.why
    for number, question in enumerate(case.ask, start=1):
        yield f"question {number}", question.ask
        yield f"question {number}, why", question.why
    for section in HEADINGS["en"].values():
        english, chinese = case.section(section, "en"), case.section(section, "zh")
        if english and chinese:
            yield f"section {section}", Text(en=english, zh=chinese)


def _sections(case: Case) -> Iterator[str]:
    for language, headings in HEADINGS.items():
        for heading, section in headings.items():
            if not case.section(section, language):
                yield f"section '{heading}' of {language} is missing or empty"


def _refutations(case: Case) -> Iterator[str]:
    if case.status == "published" and not case.refutations:
        yield "has no refutation: say what people try that does not help"
    if len({item.claim.en for item in case.refutations}) != len(case.refutations):
        yield "refutes the same claim twice"
    if case.status == "published" and not case.ask:
        yield "asks for no fact: say what tells it from its look-alikes"


def _sources(case: Case) -> Iterator[str]:
    if not case.sources:
        yield "has no source"
    for source in case.sources:
        if not re.fullmatch(r"https://[\w.-]+/\S*", source.url):
            yield f"source {source.url!r} is not a full https address"
        if source.says not in SAYS:
            yield f"source {source.url}: says {source.says!r} is not one of {', '.join(SAYS)}"
    said = {source.says for source in case.sources}
    if case.evidence == "maintainer" and "maintainer" not in said:
        yield "is graded maintainer, but no source is one"
    if case.evidence == "reporter" and "reporter" not in said:
        yield "is graded reporter, but no source is one"
    if case.evidence == "source-read" and "source" not in said:
        yield "is graded source-read, but no source is source code"


def _dates(case: Case, today: date | None) -> Iterator[str]:
    try:
        reviewed = date.fromisoformat(case.reviewed)
    except ValueError:
        yield f"reviewed {case.reviewed!r} is not a date like 2026-11-21"
        return
    if today is not None and reviewed > today:
        yield f"reviewed {case.reviewed} lies in the future"


def _links(caseset: CaseSet, ruleset: LinkedRules) -> Iterator[str]:
    """Rule and case are two ends of one record: each names the other."""
    named = {rule.id: tuple(rule.cases) for rule in ruleset.rules}
    for case in caseset.cases:
        page = caseset.pages.get(case.id, case.id)
        for rule in case.rules:
            if rule not in named:
                yield f"{page}: rule {rule!r} does not exist"
            elif case.id not in named[rule]:
                yield f"{page}: rule {rule!r} does not name this case"
    rules_of = {case.id: case.rules for case in caseset.cases}
    for rule, cases in named.items():
        for case_id in cases:
            if case_id not in rules_of:
                yield f"rule {rule}: case {case_id!r} does not exist"
            elif rule not in rules_of[case_id]:
                yield f"rule {rule}: case {case_id!r} does not name this rule"
