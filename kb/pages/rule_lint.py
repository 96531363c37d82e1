"""What is wrong with rule pages: examples are run, the set as a whole is checked. Used by the tests and `kb lint`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from trainmedic.ingest.authoring.originality import repeated
from trainmedic.kb.engine.checker import check
from trainmedic.kb.engine.patches import Parse, with_patches
from trainmedic.kb.engine.rule import Rule, RuleSet
from trainmedic.kb.errors import InvalidPage
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Safety, Status
from trainmedic.kb.pages.body import KINDS, SECTIONS, Body, Example, read_body

_CAN_BE_MISSING = ("name", "option", "has_option", "option_has_value", "version", "metric", "signal", "seen", "written")
_LEAST = {"Fires": 1, "Silent": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class LintProblem:
    """One thing that is wrong with a page, and where."""

    rule_id: str
    page: str
    line: int
    message: str


def lint_rules(
    ruleset: RuleSet, parse: Parse, cases: Mapping[str, tuple[str, ...]] | None = None, read: Collection[str] = ()
) -> tuple[LintProblem, ...]:
    """All problems of all pages, in order. ``cases`` maps case ids to the rules they name; None: links unchecked.

    ``read`` holds digests of the sources' sentences (`ingest.authoring.originality`): none of them may stand on a page.
    """
    problems = [
        LintProblem(rule_id=failure.rule_id, page=f"{failure.rule_id}.md", line=1, message=failure.message)
        for failure in ruleset.failures
    ]
    for rule in ruleset.rules:
        problems += lint_rule(rule, ruleset, parse)
        problems += [_problem(rule, 1, f"repeats a source: {said!r}") for said in repeated(rule.text, read)]
        if cases is not None:
            problems += _links(rule, cases)
    if cases is not None:
        problems += _dangling(ruleset, cases)
    return tuple(problems)


def lint_rule(rule: Rule, ruleset: RuleSet, parse: Parse) -> tuple[LintProblem, ...]:
    """The problems of one page, its examples included."""
    try:
        body = read_body(rule)
    except InvalidPage as error:
        return (_problem(rule, 1, error.message),)
    problems = list(_form(rule, body))
    for example in body.examples:
        problems += [
            _problem(rule, example.line, f"{example.kind}, {example.sentence!r}: {wrong}")
            for wrong in run_example(rule, example, ruleset, parse)
        ]
    return tuple(problems)


def run_example(rule: Rule, example: Example, ruleset: RuleSet, parse: Parse) -> tuple[str, ...]:
    """What is wrong with one example; empty where it holds."""
    evidence = parse(example.question, example.attachments)
    report = check(evidence, ruleset)
    failed = [failure.message for failure in report.failures if failure.rule_id == rule.id]
    if failed:
        return (f"the rule raised {failed[0]}",)
    mine = [finding for finding in report.findings if finding.rule_id == rule.id]
    fired = [finding for finding in mine if finding.status is Status.FIRED]
    unknown = [finding for finding in mine if finding.status is Status.CANNOT_TELL]
    if example.kind == "Fires":
        if not fired:
            return (f"the rule does not fire ({_why(unknown)})",)
        return (*_marks(example, fired), *_patches(rule, example, fired[0], evidence, ruleset, parse))
    if example.kind == "Silent":
        if fired:
            return (f"the rule fires: {_terms(fired[0])}",)
        return (f"the rule cannot tell ({_why(unknown)})",) if unknown and not example.may_be_unknown else ()
    if fired or not unknown:
        return (f"the rule {'fires' if fired else 'is clear'}",)
    asked = {missing.fact for finding in unknown for missing in finding.missing}
    if asked != set(example.missing):
        return (f"it asks for {', '.join(sorted(asked))}, not for {', '.join(sorted(example.missing))}",)
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
    found = {_place(span): span for finding in fired for span in finding.evidence if not span.default}
    for mark in example.marks:
        if _place(mark) not in found:
            shown = ", ".join(repr(span.text) for span in found.values()) or "nothing that was pasted"
            yield f"{mark.text!r} on line {mark.line} is marked, but is no evidence; evidence is {shown}"
    if not example.marks and found:
        yield f"nothing is marked, but the evidence is {', '.join(repr(span.text) for span in found.values())}"


def _patches(
    rule: Rule, example: Example, finding: Finding, evidence: Evidence, ruleset: RuleSet, parse: Parse
) -> Iterator[str]:
    """Every fix that edits must clear the rule, and the first of them must be the patch on the page."""
    report = with_patches(check(evidence, ruleset), evidence, ruleset, parse)
    mine = next(f for f in report.fired if f.rule_id == rule.id and f.run_id == finding.run_id)
    patched = [fix for fix in mine.fixes if fix.patch]
    for fix in patched:
        if fix.safety is not Safety.DISPLAY and rule.id not in fix.clears:
            yield f"the fix {fix.text.en!r} does not clear the rule:\n{fix.patch}"
    if example.diff is not None:
        actual = (patched[0].patch or "") if patched else ""
        wanted = _hunks(example.diff)
        whole = any(line.startswith(" ") for line in wanted)
        if [line for line in _hunks(actual) if whole or line[0] in "+-"] != wanted:
            yield f"the patch is not the one on the page, but:\n{actual or '(none)'}"


def _hunks(diff: str) -> list[str]:
    """A diff without its file and hunk headers and without trailing blanks; a page may leave the context out."""
    lines = [line.rstrip() for line in diff.strip("\n").split("\n")]
    return [line for line in lines if line and not line.startswith(("--- ", "+++ ", "@@", "\\"))]


def _form(rule: Rule, body: Body) -> Iterator[LintProblem]:
    """Sections in both languages, and enough examples of each kind."""
    for language, headings in SECTIONS.items():
        found = body.sections[language]
        if tuple(found) != headings:
            wanted = ", ".join(headings)
            yield _problem(rule, rule.body_line, f"chapter {language} must have the sections {wanted}, in this order")
        for heading, text in found.items():
            if not text:
                yield _problem(rule, rule.body_line, f"the section {heading!r} is empty")
    least = {**_LEAST, "Cannot tell": 1 if can_be_unknown(rule) else 0}
    for kind in KINDS:
        count = sum(1 for example in body.examples if example.kind == kind)
        if count < least[kind]:
            yield _problem(rule, rule.body_line, f"{kind}: {least[kind]} example(s) needed, there are {count}")
    for example in body.examples:
        if example.kind == "Cannot tell" and not example.missing:
            yield _problem(rule, example.line, "a line 'missing: ...' must name the facts that are asked for")
    if not rule.since:
        yield _problem(rule, 1, "since: the version that brought the rule is missing")
    if not rule.cases:
        yield _problem(rule, 1, "cases: a rule is justified by at least one case")
    if not rule.sources:
        yield _problem(rule, 1, "sources: where does the rule come from?")


def can_be_unknown(rule: Rule) -> bool:
    """Whether the rule may have to say that it cannot tell: of two facts one may hold while the other is missing."""
    if rule.condition is None:
        return False
    facts = {key[1:2] for key in rule.condition.root.asks if key[0] in _CAN_BE_MISSING}
    return len(facts) > 1 and rule.condition.root.kind == "and"


def _links(rule: Rule, cases: Mapping[str, tuple[str, ...]]) -> Iterator[LintProblem]:
    for case in rule.cases:
        if case not in cases:
            yield _problem(rule, 1, f"there is no case {case!r}")
        elif rule.id not in cases[case]:
            yield _problem(rule, 1, f"the case {case!r} does not name this rule")


def _dangling(ruleset: RuleSet, cases: Mapping[str, tuple[str, ...]]) -> Iterator[LintProblem]:
    known = {rule.id: rule for rule in ruleset.rules}
    for case in sorted(cases):
        for rule_id in cases[case]:
            if rule_id not in known:
                yield LintProblem(rule_id=rule_id, page=f"{case}.md", line=1, message=f"there is no rule {rule_id!r}")
            elif case not in known[rule_id].cases:
                yield LintProblem(
                    rule_id=rule_id, page=f"{case}.md", line=1, message=f"the rule {rule_id!r} does not name this case"
                )


def _problem(rule: Rule, line: int, message: str) -> LintProblem:
    return LintProblem(rule_id=rule.id, page=rule.path.name, line=line, message=message)
