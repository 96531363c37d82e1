"""Problems of checks: form, and every example executed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmedic.ingest.authoring.page_lint import needed
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.patches import with_patches
from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.page import PageProblem
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Safety
from trainmedic.kb.pages.examples import KINDS, Example, examples_of
from trainmedic.kb.pages.page import PageError

_CAN_BE_MISSING = ("name", "option", "has_option", "option_has_value", "version", "metric", "signal", "seen", "written")
_LEAST = {"Fires": 1, "Silent": 2}


def lint_rule(rule: Rule, read: Read) -> Iterator[PageProblem]:
    try:
        examples = examples_of(rule)
    except PageError as error:
        yield error.problem
        return
    yield from _form(rule, examples)
    for example in examples:
        for problem in run_example(rule, example, read):
            yield PageProblem(rule.page.name, example.line, f"{example.kind}, {example.sentence!r}: {problem}")


def run_example(rule: Rule, example: Example, read: Read) -> tuple[str, ...]:
    evidence = read(example.question, example.attachments)
    ruleset = RuleSet(rules=(rule,))
    report = check(evidence, ruleset)
    if report.failures:
        return (f"the rule raised {report.failures[0].message}",)
    fired, unknown = list(report.fired), list(report.cannot_tell)
    if example.kind == "Fires":
        if not fired:
            return (f"the rule does not fire ({_why(unknown)})",)
        return (*_marks(example, fired), *_patches(example, fired[0], evidence, ruleset, read))
    if example.kind == "Silent":
        if fired:
            return (f"the rule fires: {_terms(fired[0])}",)
        return (f"the rule cannot tell ({_why(unknown)})",) if unknown and not example.may_be_unknown else ()
    if fired or not unknown:
        return (f"the rule {'fires' if fired else 'is clear'}",)
    requested = {missing.fact for finding in unknown for missing in finding.missing}
    if requested != set(example.missing):
        return (f"it asks for {', '.join(sorted(requested))}, not for {', '.join(sorted(example.missing))}",)
    return ()


def _why(unknown: list[Finding]) -> str:
    if not unknown:
        return "it is clear"
    return "it cannot tell without " + ", ".join(missing.fact for missing in unknown[0].missing)


def _terms(finding: Finding) -> str:
    return "; ".join(f"{term.text} is {term.value} [{term.seen}]" for term in finding.terms)


def _place(span: Span) -> tuple[str | None, int, int, int, int]:
    return (span.attachment, span.line, span.column, span.end_line, span.end_column)


def _marks(example: Example, fired: list[Finding]) -> Iterator[str]:
    evidence = {_place(span): span for finding in fired for span in finding.evidence if not span.default}
    for mark in example.marks:
        if _place(mark) not in evidence:
            texts = ", ".join(repr(span.text) for span in evidence.values()) or "empty"
            yield f"{mark.text!r} on line {mark.line} is marked, but is not evidence; the evidence is {texts}"
    if not example.marks and evidence:
        yield f"nothing is marked, but the evidence is {', '.join(repr(span.text) for span in evidence.values())}"


def _patches(example: Example, finding: Finding, evidence: Evidence, ruleset: RuleSet, read: Read) -> Iterator[str]:
    """Every patch must clear the rule, and the first must be the diff on the page."""
    report = with_patches(check(evidence, ruleset), evidence, ruleset, read)
    patched = [fix for fired in report.fired if fired.run_id == finding.run_id for fix in fired.fixes if fix.patch]
    for fix in patched:
        if fix.safety is not Safety.DISPLAY and finding.rule_id not in fix.clears:
            yield f"the fix {fix.text.en!r} does not clear the rule:\n{fix.patch}"
    if example.diff is not None:
        actual = (patched[0].patch or "") if patched else ""
        expected = _hunks(example.diff)
        has_context = any(line.startswith(" ") for line in expected)
        if [line for line in _hunks(actual) if has_context or line[0] in "+-"] != expected:
            yield f"the patch differs from the diff on the page; it is:\n{actual or '(none)'}"


def _hunks(diff: str) -> list[str]:
    """A diff without its file and hunk headers and without trailing blanks; a page may leave the context out."""
    lines = [line.rstrip() for line in diff.strip("\n").split("\n")]
    return [line for line in lines if line and not line.startswith(("--- ", "+++ ", "@@", "\\"))]


def _form(rule: Rule, examples: Sequence[Example]) -> Iterator[PageProblem]:
    page = rule.page
    least = {**_LEAST, "Cannot tell": 1 if can_be_unknown(rule) else 0}
    for kind in KINDS:
        count = sum(1 for example in examples if example.kind == kind)
        if count < least[kind]:
            yield PageProblem(
                page.name, page.body_line, f"{rule.id}, {kind}: {count} example(s), at least {least[kind]} needed"
            )
    for example in examples:
        if example.kind == "Cannot tell" and not example.missing:
            yield PageProblem(page.name, example.line, "name the facts that the rule asks for: 'missing: ...'")
    for part, message in needed("rule", rule):
        yield page.problem(f"{rule.id}, {part}: {message}", part)


def can_be_unknown(rule: Rule) -> bool:
    """Whether the rule needs a "Cannot tell" example: one of its facts may hold while another is missing."""
    if rule.condition is None:
        return False
    facts = {key[1:2] for key in rule.condition.root.asks if key[0] in _CAN_BE_MISSING}
    return len(facts) > 1 and rule.condition.root.kind == "and"
