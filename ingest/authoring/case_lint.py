"""Problems of case pages. One function per concern."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from typing import Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.fences import fence_after
from trainmedic.kb.frameworks.profiles import select
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import EVIDENCE_GRADES, Case
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.case import HEADINGS, CaseSet
from trainmedic.kb.pages.page import suggestion

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
MIN_SYMPTOMS = 4
GRADE_NEEDS = {"maintainer": "maintainer", "reporter": "reporter", "source-read": "source"}
"""Evidence grade → what at least one source must be."""

_VERSION = regex(r"(?<![\w.])\d+\.\d+(?:\.\d+)*(?:\.post\d+)?(?![\w.]*\d)")

_SPAN = regex(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
"""A code span (CommonMark 6.1)."""

Profile = Literal["built-in", "team"]
"""What a page is held against. A team's own page may cite any address, be written in one language, and have fewer
symptoms, no refutation and a family of its own."""
Complaint = tuple[str, str]
"""The field or section (`kb.model.page.Page.lines`) and the message."""


def lint_case(
    case: Case, caseset: CaseSet, words: Vocabulary, today: date | None = None, profile: Profile = "built-in"
) -> Iterator[PageProblem]:
    """The problems of one page. Without ``today`` a date in the future passes."""
    page = caseset.pages.get(case.id, Page(name=f"{case.id}.md"))
    specific = _team(case) if profile == "team" else _built_in(case)
    shared = (_known_words(case, words), _versions(case), _related(case, {other.id for other in caseset.cases}))
    dated = () if profile == "team" and case.status == "draft" else _dates(case, today)
    for complaints in (specific, *shared, dated):
        for part, message in complaints:
            yield page.problem(f"{part}: {message}", part)


def _built_in(case: Case) -> Iterator[Complaint]:
    yield from _grades(case)
    if bool(case.rules) == bool(case.no_rule):
        yield "no_rule", "give either rules, or no_rule with the reason"
    yield from _unknown("family", (case.family,), FAMILIES)
    if not case.frameworks:
        yield "frameworks", "name at least one framework"
    yield from _languages(case)
    yield from _sections(case)
    yield from _content(case)
    yield from _sources(case)


def _team(case: Case) -> Iterator[Complaint]:
    """What even a team's own page needs to be found and to be of use."""
    yield from _grades(case)
    if not any(case.symptoms.values()):
        yield "symptoms", "give at least one, in either language"
    for heading, section in HEADINGS["en"].items():
        if section in ("symptom", "cause") and not any(case.section(section, language) for language in HEADINGS):
            yield f"en/{heading}", "the section is missing or empty in both languages"
    if not case.sources:
        yield "sources", "name at least one"


def _grades(case: Case) -> Iterator[Complaint]:
    if case.evidence not in EVIDENCE_GRADES:
        yield "evidence", f"unknown grade {case.evidence!r}{suggestion(case.evidence, EVIDENCE_GRADES)}"
    needed = GRADE_NEEDS.get(case.evidence)
    if needed and needed not in {source.says for source in case.sources}:
        yield "evidence", f"is {case.evidence}, but no source says {needed!r}"


def _known_words(case: Case, words: Vocabulary) -> Iterator[Complaint]:
    allowed: tuple[tuple[str, Iterable[str], Collection[str]], ...] = (
        ("frameworks", case.frameworks, FRAMEWORKS),
        ("algorithms", case.algorithms, ALGORITHMS),
        ("stages", case.stages, STAGES),
        ("signals", case.signals, words.signals),
        ("settings", case.settings, words.settings),
    )
    for name, values, known in allowed:
        yield from _unknown(name, values, known)
    for name, listed in (("rules", case.rules), ("related", case.related), ("signals", case.signals)):
        if len(set(listed)) != len(listed):
            yield name, "a word occurs twice"


def _unknown(name: str, values: Iterable[str], known: Collection[str]) -> Iterator[Complaint]:
    for value in values:
        if value not in known:
            yield name, f"unknown word {value!r}{suggestion(value, known)}"


def _related(case: Case, known: Collection[str]) -> Iterator[Complaint]:
    for other in case.related:
        if other == case.id:
            yield "related", "a case cannot be related to itself"
        elif other not in known:
            yield "related", f"there is no case {other!r}{suggestion(other, known)}"


def _versions(case: Case) -> Iterator[Complaint]:
    ranges: dict[str, SpecifierSet] = {}
    for package, text in case.affected.items():
        try:
            ranges[package] = SpecifierSet(text)
        except InvalidSpecifier:
            yield "affected", f"{package}: {text!r} is not a version range"
    for package, text in case.fixed.items():
        try:
            fixed = Version(text)
        except InvalidVersion:
            yield "fixed", f"{package}: {text!r} is not a version"
            continue
        if package in ranges and ranges[package].contains(fixed, prereleases=True):
            yield "fixed", f"{package} {text} lies in the affected range {case.affected[package]}"


def _languages(case: Case) -> Iterator[Complaint]:
    yield from bilingual(_texts(case))
    for language in ("en", "zh"):
        symptoms = case.symptoms.get(language, ())
        if len(symptoms) < MIN_SYMPTOMS:
            yield "symptoms", f"{language} has {len(symptoms)}, at least {MIN_SYMPTOMS} needed"
        if len({symptom.casefold() for symptom in symptoms}) != len(symptoms):
            yield "symptoms", f"{language} has the same wording twice"


def bilingual(texts: Iterable[tuple[str, Text]]) -> Iterator[Complaint]:
    """Both languages hold the same version numbers, code spans and code blocks, each in its own script."""
    for part, text in texts:
        if not _has_chinese(text.zh):
            yield part, f"the Chinese text holds no Chinese: {text.zh[:40]!r}"
        if _has_chinese(text.en):
            yield part, f"the English text holds Chinese: {text.en[:40]!r}"
        for missing in _missing(text.en, text.zh):
            yield part, f"{missing!r} is in the English text, not in the Chinese one"
        for missing in _missing(text.zh, text.en):
            yield part, f"{missing!r} is in the Chinese text, not in the English one"


def _has_chinese(text: str) -> bool:
    return any("\u4e00" <= character <= "\u9fff" for character in text)


def _missing(here: str, there: str) -> list[str]:
    """Code spans, fenced blocks and version numbers of ``here`` that do not occur in ``there``."""
    return sorted({literal for literal in _literals(here) if literal not in there})


def _literals(text: str) -> Iterator[str]:
    prose, block, fence = "", "", ""
    for line in text.splitlines(keepends=True):
        before, fence = fence, fence_after(line, fence)
        if before and fence:
            block += line
        elif before:
            yield block
            block = ""
        elif not fence:
            prose += line
    yield from (block, *(span[2].strip() for span in _SPAN.finditer(prose)), *_VERSION.findall(_SPAN.sub("", prose)))


def _texts(case: Case) -> Iterator[tuple[str, Text]]:
    yield "title", case.title
    for refutation in case.refutations:
        yield "refutations", refutation.claim
        yield "refutations", refutation.why
    for question in case.ask:
        yield "ask", question.ask
        yield "ask", question.why
    for heading, section in HEADINGS["en"].items():
        english, chinese = case.section(section, "en"), case.section(section, "zh")
        if english and chinese:
            yield f"en/{heading}", Text(en=english, zh=chinese)


def _sections(case: Case) -> Iterator[Complaint]:
    for language, headings in HEADINGS.items():
        for heading, section in headings.items():
            if not case.section(section, language):
                yield f"{language}/{heading}", "the section is missing or empty"


def _content(case: Case) -> Iterator[Complaint]:
    if case.status == "published" and not case.refutations:
        yield "refutations", "say what people try that does not help"
    if len({item.claim.en for item in case.refutations}) != len(case.refutations):
        yield "refutations", "the same claim occurs twice"
    if case.status == "published" and not case.ask:
        yield "ask", "name a fact that tells the case from its look-alikes"


def _sources(case: Case) -> Iterator[Complaint]:
    if not case.sources:
        yield "sources", "name at least one"
    for source in case.sources:
        if not source.url.startswith("https://") or not source.url.removeprefix("https://").partition("/")[2]:
            yield "sources", f"{source.url!r} is not a full https address"


def _dates(case: Case, today: date | None) -> Iterator[Complaint]:
    try:
        reviewed = date.fromisoformat(case.reviewed)
    except ValueError:
        yield "reviewed", f"{case.reviewed!r} is not a date like 2026-11-21"
        return
    if today is not None and reviewed > today:
        yield "reviewed", f"{case.reviewed} lies in the future"
