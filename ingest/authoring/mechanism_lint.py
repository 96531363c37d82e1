"""Problems of mechanism pages: form, links, both languages, and every example executed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from trainmedic.ingest.authoring.case_lint import Complaint, bilingual
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.mechanism import Mechanism, MechanismSet, Weighed, weigh
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.glossary.negated import stated_concepts
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.body import Example
from trainmedic.kb.pages.case import CaseSet
from trainmedic.kb.pages.mechanism import EXAMPLES, HEADINGS, examples
from trainmedic.kb.pages.page import PageError, suggestion

MIN_SYMPTOMS = 5


def lint_mechanism(
    mechanism: Mechanism, mechanisms: MechanismSet, cases: CaseSet, rules: RuleSet, glossary: Glossary, read: Read
) -> Iterator[PageProblem]:
    page = mechanisms.pages.get(mechanism.id, Page(name=f"{mechanism.id}.md"))
    for part, message in (*_form(mechanism), *_links(mechanism, cases, rules), *_concepts(mechanism, glossary)):
        yield page.problem(f"{part}: {message}", part)
    try:
        listed = examples(page)
    except PageError as error:
        yield error.problem
        return
    for kind in EXAMPLES:
        if not any(example.kind == kind for example, _ in listed):
            yield PageProblem(page.name, page.body_line, f"{kind}: at least one example is needed")
    for example, origin in listed:
        for problem in run_example(mechanism, example, origin, glossary, read):
            yield PageProblem(page.name, example.line, f"{example.kind}, {example.sentence!r}: {problem}")


def run_example(mechanism: Mechanism, example: Example, origin: str, glossary: Glossary, read: Read) -> tuple[str, ...]:
    """What is wrong with one example; empty if it holds."""
    evidence = read(example.question, example.attachments)
    concepts = stated_concepts(evidence.question, glossary)
    weighed = [weigh(mechanism, Facts(evidence, run, concepts)) for run in evidence.runs or (evidence.run,)]
    if example.kind == "Excluded":
        holding = [one for one in weighed if not _speaks_against(one)]
        return (f"nothing excludes it, and {_shown(holding[0])}",) if holding else ()
    explained = [one for one in weighed if not one.excluded_by and one.support > one.contradiction]
    if not explained:
        return (f"it is not explained: {_shown(weighed[0])}",)
    if not origin:
        return ()
    states = [state for one in explained for state in one.origins if state.origin.id == origin]
    if not states:
        known = [item.id for item in mechanism.origins]
        return (f"there is no origin {origin!r}{suggestion(origin, known)}",)
    if any(state.value is True or (state.value is None and state.origin.when is None) for state in states):
        return ()
    unknown = any(state.value is None for state in states)
    return (f"the origin {origin!r} {'cannot be told' if unknown else 'does not hold'}",)


def _speaks_against(weighed: Weighed) -> bool:
    return bool(weighed.excluded_by) or weighed.contradiction > weighed.support


def _shown(weighed: Weighed) -> str:
    return (
        f"for it: {_listed(statement.says for statement in weighed.supports)}; "
        f"against: {_listed(statement.says for statement in (*weighed.contradicts, *weighed.excluded_by))}"
    )


def _listed(texts: Iterable[Text]) -> str:
    return ", ".join(repr(text.en) for text in texts) or "nothing"


def _form(mechanism: Mechanism) -> Iterator[Complaint]:
    for language in ("en", "zh"):
        symptoms = mechanism.symptoms.get(language, ())
        if len(symptoms) < MIN_SYMPTOMS:
            yield "symptoms", f"{language} has {len(symptoms)}, at least {MIN_SYMPTOMS} needed"
        if len({symptom.casefold() for symptom in symptoms}) != len(symptoms):
            yield "symptoms", f"{language} has the same wording twice"
        for heading, section in HEADINGS[language].items():
            if not mechanism.section(section, language):
                yield f"{language}/{heading}", "the section is missing or empty"
    if not mechanism.explains:
        yield "explains", "name at least one observation that speaks for it"
    if not (mechanism.against or mechanism.excludes):
        yield "against", "name at least one observation that speaks against it or excludes it"
    if not mechanism.sources:
        yield "sources", "name at least one"
    yield from bilingual(_texts(mechanism))


def _texts(mechanism: Mechanism) -> Iterator[tuple[str, Text]]:
    yield "title", mechanism.title
    for part in ("explains", "against", "excludes"):
        for observation in getattr(mechanism, part):
            yield part, observation.says
    for origin in mechanism.origins:
        yield "origins", origin.title
        yield "origins", origin.fix
    for heading, section in HEADINGS["en"].items():
        english, chinese = mechanism.section(section, "en"), mechanism.section(section, "zh")
        if english and chinese:
            yield f"en/{heading}", Text(en=english, zh=chinese)


def _links(mechanism: Mechanism, cases: CaseSet, rules: RuleSet) -> Iterator[Complaint]:
    known_cases = {case.id for case in cases.cases}
    known_rules = {rule.id for rule in rules.rules}
    if mechanism.id in known_cases:
        yield "id", "a case has this id"
    yield from _unknown("cases", mechanism.cases, known_cases, "case")
    for origin in mechanism.origins:
        yield from _unknown("origins", origin.cases, known_cases, "case")
        yield from _unknown("origins", origin.rules, known_rules, "rule")


def _unknown(part: str, names: Collection[str], known: Collection[str], noun: str) -> Iterator[Complaint]:
    for name in names:
        if name not in known:
            yield part, f"there is no {noun} {name!r}{suggestion(name, known)}"


def _concepts(mechanism: Mechanism, glossary: Glossary) -> Iterator[Complaint]:
    conditions = [
        (part, item.when) for part in ("explains", "against", "excludes") for item in getattr(mechanism, part)
    ]
    conditions += [("origins", origin.when) for origin in mechanism.origins if origin.when is not None]
    for part, condition in conditions:
        for key in condition.reads:
            if key[0] == "said":
                yield from _unknown(part, key[1:], glossary.concepts.keys(), "concept")
