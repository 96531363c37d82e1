"""Problems of the declared fields and sections of pages of causes and mechanisms. One function per concern."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import Literal, TypeAlias

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from trainmedic.kb.engine.mechanism import Mechanism
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.engine.vocabulary import Vocabulary
from trainmedic.kb.fences import fence_after
from trainmedic.kb.frameworks.profiles import select
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import EVIDENCE_GRADES, Case
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.case import HEADINGS, CaseSet
from trainmedic.kb.pages.mechanism import HEADINGS as MECHANISM_HEADINGS
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
OBSERVATIONS = ("explains", "against", "excludes")
STAGES = ("pretrain", "sft", "reward", "preference", "rl", "distill", "inference", "export")
MIN_SYMPTOMS, MIN_SYMPTOMS_OF_MECHANISM = 4, 5
GRADE_NEEDS = {"maintainer": "maintainer", "reporter": "reporter", "source-read": "source"}
"""Evidence grade → what at least one source must be."""

_VERSION = regex(r"(?<![\w.])\d+\.\d+(?:\.\d+)*(?:\.post\d+)?(?![\w.]*\d)")

_SPAN = regex(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
"""A code span (CommonMark 6.1)."""

Profile = Literal["built-in", "team"]
"""Whose page it is. A team's own may cite any address and have a family of its own."""
Headings: TypeAlias = Mapping[str, Mapping[str, str]]
Complaint = tuple[str, str]
"""The field or section (`kb.model.page.Page.lines`) and the message."""

NEEDED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cause": (("sources", "name at least one"),),
    "mechanism": (("explains", "name at least one observation that speaks for it"), ("sources", "name at least one")),
    "rule": (
        ("since", "give the first version with this rule"),
        ("sources", "name where the rule comes from"),
    ),
}
"""Kind of page → the fields that must not be empty, and what is said if one is."""


def needed(kind: str, page: object) -> Iterator[Complaint]:
    return ((part, message) for part, message in NEEDED[kind] if not getattr(page, part))


def lint_case(
    case: Case, caseset: CaseSet, words: Vocabulary, today: date | None = None, profile: Profile = "built-in"
) -> Iterator[PageProblem]:
    """The problems of one page. Without ``today`` a date in the future passes."""
    page = caseset.pages.get(case.id, Page(name=f"{case.id}.md"))
    shared = (needed("cause", case), _known_words(case, words), _versions(case), _related(case, caseset))
    for complaints in (_content(case, profile), *shared, _review(case, today, profile)):
        for part, message in complaints:
            yield page.problem(f"{part}: {message}", part)


def _content(case: Case, profile: Profile) -> Iterator[Complaint]:
    """What a page must say: the less, the less it claims to know of what users see."""
    if not case.symptoms:
        yield from _of_checks(case)
    elif profile == "team" or len(case.languages) == 1:
        yield from _in_short(case)
    else:
        yield from _in_full(case)
    if profile == "built-in":
        yield from _sources(case)
        if case.symptoms:
            yield from _unknown("family", (case.family,), FAMILIES)
            if not case.frameworks:
                yield "frameworks", "name at least one framework"


def _in_full(case: Case) -> Iterator[Complaint]:
    if bool(case.rules) == bool(case.no_rule):
        yield "no_rule", "give either checks, or no_rule with the reason"
    yield from _bilingual(_texts(case))
    yield from _symptoms(case.symptoms, MIN_SYMPTOMS)
    if case.rules:
        yield from _told(case)
    else:
        yield from _of_words_alone(case)
    if len({item.claim.en for item in case.refutations}) != len(case.refutations):
        yield "refutations", "the same claim occurs twice"


def _of_words_alone(case: Case) -> Iterator[Complaint]:
    """What a page needs that nothing but its words finds."""
    yield from _sections(case, HEADINGS)
    if case.status == "published" and not case.refutations:
        yield "refutations", "say what people try that does not help"
    if case.status == "published" and not case.ask:
        yield "ask", "name a fact that tells the case from its look-alikes"


def _in_short(case: Case) -> Iterator[Complaint]:
    """What a team's own page, or one in a single language, needs to be found and to be of use."""
    if not any(case.symptoms.values()):
        yield "symptoms", "give at least one, in either language"
    for heading, section in HEADINGS["en"].items():
        if section in ("symptom", "cause") and not any(case.section(section, language) for language in HEADINGS):
            yield f"en/{heading}", "the section is missing or empty in both languages"


def _of_checks(case: Case) -> Iterator[Complaint]:
    """What a page needs whose checks say what is seen, so that no one has to word it."""
    if not case.rules:
        yield "symptoms", "give the words of users, or a check"
    yield from _told(case)


def _told(case: Case) -> Iterator[Complaint]:
    """The sections of a page whose checks or symptoms say what is seen."""
    for language in case.languages:
        told = {heading: section for heading, section in HEADINGS[language].items() if section != "symptom"}
        yield from _sections(case, {language: told})


def _review(case: Case, today: date | None, profile: Profile) -> Iterator[Complaint]:
    """Whether it is said how well it is known what users see."""
    if case.symptoms:
        yield from _grades(case)
        if profile == "built-in" or case.status != "draft":
            yield from _dates(case, today)


def _grades(case: Case) -> Iterator[Complaint]:
    if case.evidence not in EVIDENCE_GRADES:
        yield "evidence", f"unknown grade {case.evidence!r}{suggestion(case.evidence, EVIDENCE_GRADES)}"
    needed = GRADE_NEEDS.get(case.evidence)
    if needed and needed not in {source.says for source in case.sources}:
        yield "evidence", f"is {case.evidence}, but no source says {needed!r}"


def _known_words(case: Case, words: Vocabulary) -> Iterator[Complaint]:
    allowed = {"frameworks": FRAMEWORKS, "algorithms": ALGORITHMS, "stages": STAGES}
    for part, known in {**allowed, "signals": words.signals, "settings": words.settings}.items():
        yield from _unknown(part, getattr(case, part), known)
    for part in ("rules", "related", "signals"):
        if len(set(getattr(case, part))) != len(getattr(case, part)):
            yield part, "a word occurs twice"


def _unknown(
    part: str, values: Iterable[str], known: Collection[str], what: str = "unknown word"
) -> Iterator[Complaint]:
    for value in values:
        if value not in known:
            yield part, f"{what} {value!r}{suggestion(value, known)}"


def _related(case: Case, caseset: CaseSet) -> Iterator[Complaint]:
    if case.id in case.related:
        yield "related", "a case cannot be related to itself"
    others = (other for other in case.related if other != case.id)
    yield from _unknown("related", others, {other.id for other in caseset.cases}, "there is no case")


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


def _symptoms(symptoms: Mapping[str, tuple[str, ...]], least: int) -> Iterator[Complaint]:
    for language in ("en", "zh"):
        listed = symptoms.get(language, ())
        if len(listed) < least:
            yield "symptoms", f"{language} has {len(listed)}, at least {least} needed"
        if len({symptom.casefold() for symptom in listed}) != len(listed):
            yield "symptoms", f"{language} has the same wording twice"


def _sections(page: Case | Mechanism, headings: Headings) -> Iterator[Complaint]:
    for language, named in headings.items():
        for heading, section in named.items():
            if not page.section(section, language):
                yield f"{language}/{heading}", "the section is missing or empty"


def _section_texts(page: Case | Mechanism, headings: Headings) -> Iterator[tuple[str, Text]]:
    for heading, section in headings["en"].items():
        text = Text(en=page.section(section, "en"), zh=page.section(section, "zh"))
        if text.en and text.zh:
            yield f"en/{heading}", text


def _bilingual(texts: Iterable[tuple[str, Text]]) -> Iterator[Complaint]:
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
    yield from _section_texts(case, HEADINGS)


def _sources(case: Case) -> Iterator[Complaint]:
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


def lint_mechanism(
    mechanism: Mechanism, page: Page, cases: CaseSet, rules: RuleSet, glossary: Glossary
) -> Iterator[PageProblem]:
    """The problems of one page except for its examples."""
    for part, message in (*_mechanism(mechanism), *_links(mechanism, cases, rules), *_concepts(mechanism, glossary)):
        yield page.problem(f"{part}: {message}", part)


def _mechanism(mechanism: Mechanism) -> Iterator[Complaint]:
    yield from _symptoms(mechanism.symptoms, MIN_SYMPTOMS_OF_MECHANISM)
    yield from _sections(mechanism, MECHANISM_HEADINGS)
    yield from needed("mechanism", mechanism)
    if not (mechanism.against or mechanism.excludes):
        yield "against", "name at least one observation that speaks against it or excludes it"
    yield from _bilingual(_mechanism_texts(mechanism))


def _mechanism_texts(mechanism: Mechanism) -> Iterator[tuple[str, Text]]:
    yield "title", mechanism.title
    yield from ((part, item.says) for part in OBSERVATIONS for item in getattr(mechanism, part))
    yield from (("origins", text) for origin in mechanism.origins for text in (origin.title, origin.fix))
    yield from _section_texts(mechanism, MECHANISM_HEADINGS)


def _links(mechanism: Mechanism, cases: CaseSet, rules: RuleSet) -> Iterator[Complaint]:
    known_cases, known_rules = {case.id for case in cases.cases}, {rule.id for rule in rules.rules}
    if mechanism.id in known_cases:
        yield "id", "a case has this id"
    yield from _unknown("cases", mechanism.cases, known_cases, "there is no case")
    for origin in mechanism.origins:
        yield from _unknown("origins", origin.cases, known_cases, "there is no case")
        yield from _unknown("origins", origin.rules, known_rules, "there is no rule")


def _concepts(mechanism: Mechanism, glossary: Glossary) -> Iterator[Complaint]:
    conditions = [(part, item.when) for part in OBSERVATIONS for item in getattr(mechanism, part)]
    conditions += [("origins", origin.when) for origin in mechanism.origins if origin.when is not None]
    for part, condition in conditions:
        said = (name for key in condition.reads if key[0] == "said" for name in key[1:])
        yield from _unknown(part, said, glossary.concepts, "there is no concept")
