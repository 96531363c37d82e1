"""The examples of a mechanism page, executed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.mechanism import Mechanism, Weighed, weigh
from trainmedic.kb.glossary.negated import stated_concepts
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.model.page import Page, PageProblem
from trainmedic.kb.model.report import Text
from trainmedic.kb.pages.examples import Example
from trainmedic.kb.pages.mechanism import EXAMPLES, examples
from trainmedic.kb.pages.page import PageError, suggestion


def lint_examples(mechanism: Mechanism, page: Page, glossary: Glossary, read: Read) -> Iterator[PageProblem]:
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
    """The faults of one example; empty if it holds."""
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
