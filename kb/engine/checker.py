"""Evidence × rules → Report. Every rule on every run, three-valued, deterministic; a rule that raises is reported."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import filterfalse

from trainmedic.kb.engine.asks import missing
from trainmedic.kb.engine.assumed import assumed
from trainmedic.kb.engine.expressions import Expression
from trainmedic.kb.engine.facts import FactBook, Facts
from trainmedic.kb.engine.fixes import fixes
from trainmedic.kb.engine.outcome import CLEAR, NOT_SHOWN, Outcome
from trainmedic.kb.engine.rule import FixSpec, Rule, RuleSet
from trainmedic.kb.engine.values import UNKNOWN
from trainmedic.kb.frameworks.canonical import keys_of
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Missing, Report, RuleFailure, Status, Text
from trainmedic.kb.model.run import Origin

_CHOOSES = frozenset({"stage", "rlhf_type", "rl", "algorithm.adv_estimator", "advantage_estimator"})
"""Options by which the user himself chose the algorithm: they may well be what is wrong."""


def check(evidence: Evidence, ruleset: RuleSet, book: FactBook | None = None) -> Report:
    """Run every rule on every run. Findings are in their own order; ``clear`` lists the other rules by id.
    ``book``: the evidence's facts, if others read them too.

    A finding that two runs share (same rule, places and words) is given once, for the first run.
    """
    findings: dict[tuple[object, ...], Finding] = {}
    failures = {page.stem: RuleFailure(rule_id=page.stem, message=str(page)) for page in ruleset.failures}
    ruled_out: set[str] = set()
    for facts in (book or FactBook(evidence)).runs:
        for rule in ruleset.for_framework(_framework(facts)):
            try:
                if not _may_decide(rule, facts):
                    continue
                outcome = _judged(rule, facts)
                if outcome.value is False:
                    ruled_out.add(rule.id)
                finding = None
                if _reported(rule, outcome, facts):
                    outcome = outcome if outcome.value else _worth_asking(rule, outcome, facts)
                    finding = _finding(rule, outcome, facts) if outcome is not NOT_SHOWN else None
            except Exception as error:  # a rule's own fault must not take the others' findings with it
                failures[rule.id] = RuleFailure(rule_id=rule.id, message=f"{type(error).__name__}: {error}")
                continue
            if finding is not None:
                findings.setdefault((finding.rule_id, finding.status, finding.evidence, finding.message), finding)
    ordered = tuple(sorted(findings.values(), key=lambda finding: finding.order))
    reported = {finding.rule_id for finding in ordered}
    return Report(
        findings=ordered,
        clear=tuple(filterfalse((reported | failures.keys()).__contains__, ruleset.ids)),
        ruled_out=frozenset(ruled_out - reported),
        failures=tuple(failures[key] for key in sorted(failures)),
        ruleset_version=ruleset.version,
    )


def fired_rules(evidence: Evidence, ruleset: RuleSet, among: Collection[str] | None = None) -> frozenset[str]:
    """The ids of the rules (of those ``among``) that fire on any run: `check` without the findings.

    A rule that raises does not.
    """
    fired = set()
    for facts in FactBook(evidence).runs:
        for rule in ruleset.for_framework(_framework(facts)):
            if rule.id not in fired and (among is None or rule.id in among):
                with suppress(Exception):
                    if _fires(rule, facts):
                        fired.add(rule.id)
    return frozenset(fired)


def _framework(facts: Facts) -> str | None:
    return facts.run.framework.value if facts.run.framework is not None else None


def _fires(rule: Rule, facts: Facts) -> bool:
    """The bare value: without the reasons, which take most of the time."""
    if not _may_decide(rule, facts):
        return False
    return (rule.condition.holds(facts) if rule.condition is not None else _judged(rule, facts).value) is True


def _may_decide(rule: Rule, facts: Facts) -> bool:
    """Whether the rule applies, and its condition is not one that the evidence says nothing about."""
    silent = rule.condition.where_silent(facts) if rule.condition is not None else None
    return silent is not UNKNOWN and _applies(rule, facts)


def _judged(rule: Rule, facts: Facts) -> Outcome:
    if rule.condition is not None:
        return _condition(rule, rule.condition, facts)
    assert rule.check is not None, "a loaded rule has a condition or a check"
    return _with_versions(rule.check(facts), rule.versions, facts)


def _reported(rule: Rule, outcome: Outcome, facts: Facts) -> bool:
    """Whether there is something to say: the rule fires, or cannot tell about something that the user provided.

    A version raises no question about a log, and without any option questions about other versions only: it says
    what is installed, not what is done with it, and a list of packages would ask for every option and every message
    that any of these releases ever got wrong. Nor is every option that an excerpt lacks worth a question: only
    those of rules that would explain what was observed.
    """
    if outcome.value is not None:
        return outcome.value
    if _is_idle(rule, facts):
        return False
    if _only_versions(outcome, facts):
        asked = {fact for fact in outcome.missing if not fact.startswith("version:")}
        if asked and (not facts.run.options or asked == {"log"}):
            return False
    return outcome.user_provided


def _worth_asking(rule: Rule, outcome: Outcome, facts: Facts) -> Outcome:
    """An open outcome of a release whose defaults are not known: there is something to ask if the rule would fire with
    those of the last release that was read, or if more than defaults is missing."""
    instead = facts.once(__name__ + ".assumed", assumed)
    if instead is None:
        return outcome
    then = _judged(rule, instead.facts)
    if then.value is False or (then.value is None and not _reported(rule, then, instead.facts)):
        return NOT_SHOWN
    return outcome if then.value else replace(outcome, missing=then.missing)


def _only_versions(outcome: Outcome, facts: Facts) -> bool:
    """Whether all that was pasted of what holds are versions, beside what tells which program it is."""
    versions = {version.span for version in facts.evidence.versions.values()}
    pasted = {span for span in outcome.evidence if not span.default}
    return bool(pasted) and pasted <= versions | _naming(facts)


def _naming(facts: Facts) -> set[Span]:
    return {span for scope in ("framework", "algorithm", "stage") for span in facts.fact(("name", scope)).spans}


def _applies(rule: Rule, facts: Facts) -> bool:
    """Whether every listed scope is recognised with certainty and among the rule's words.

    A rule of a program that stops before it trains has nothing to say of a run whose log shows steps.
    """
    if rule.stops and facts.once(__name__, _trained):
        return False
    for scope, words in rule.applies.items():
        word = facts.fact(("name", scope)).value
        if word is UNKNOWN or word not in words:
            return False
    return True


def _trained(facts: Facts) -> bool:
    """Whether a log shows that this run trained, and no error."""
    evidence = facts.evidence
    if facts.run is not evidence.run or evidence.tracebacks:
        return False
    return any(row.style != "user" and not row.evaluation for row in evidence.rows)


def _condition(rule: Rule, condition: Expression, facts: Facts) -> Outcome:
    value = condition.holds(facts)
    if value is False:
        return CLEAR
    # The reasons take most of the time, and no one hears those of what is not reported.
    if value is UNKNOWN and (_is_idle(rule, facts) or not condition.reads_user_text(facts)):
        return NOT_SHOWN
    return condition.explain(facts)


def _is_idle(rule: Rule, facts: Facts) -> bool:
    """Whether the run is an excerpt without any sign of what the rule would explain."""
    return facts.run.excerpt and not any(facts.evidence.has(kind) for kind in rule.symptoms)


def _with_versions(outcome: Outcome, versions: Mapping[str, str], facts: Facts) -> Outcome:
    """A module's outcome joined with the page's ``applies.versions``."""
    needed: list[str] = []
    spans = list(outcome.evidence)
    for package, spec in versions.items():
        fact = facts.fact(("version", package, spec))
        if fact.value is False:
            return CLEAR
        spans.extend(fact.spans)
        needed.extend(fact.missing)
    if outcome.value is False or not versions:
        return outcome
    return replace(
        outcome,
        value=None if needed else outcome.value,
        evidence=tuple(dict.fromkeys(spans)),
        missing=tuple(dict.fromkeys((*outcome.missing, *needed))),
    )


def _finding(rule: Rule, outcome: Outcome, facts: Facts) -> Finding:
    fired = outcome.value is True
    needed = () if fired else _missing(rule, outcome, facts)
    changes = (
        FixSpec(safety=each.safety, set=each.set, rename=each.rename, alternative=each.alternative)
        for each in outcome.changes
    )
    return Finding(
        rule_id=rule.id,
        title=rule.title,
        severity=rule.severity,
        status=Status.FIRED if fired else Status.CANNOT_TELL,
        message=rule.message.render(facts, outcome.values) if fired else _cannot_tell(rule, needed),
        run_id=facts.run.id,
        concludes=rule.concludes,
        symptoms=rule.symptoms,
        fixes=fixes((*changes, *rule.fixes), facts, outcome.values) if fired else (),
        evidence=_evidence(rule, outcome, facts),
        missing=needed,
        cases=rule.cases,
        terms=outcome.terms,
    )


def _evidence(rule: Rule, outcome: Outcome, facts: Facts) -> tuple[Span, ...]:
    """What was pasted before what is a default; where the terms read nothing pasted, what ``applies`` matched.

    What told the framework or the algorithm is evidence only where nothing else is: it is not what is wrong.
    """
    # A call is recognised by its class, and placed at its first argument.
    own = {option.span for option in facts.run.options if option.key in _CHOOSES or option.origin is Origin.PYTHON}
    named = _naming(facts) - own
    spans = tuple(span for span in outcome.evidence if span not in named)
    if all(span.default for span in spans):
        spans = outcome.evidence
    if all(span.default for span in spans):
        scopes = [facts.fact(("name", scope)) for scope in rule.applies]
        spans = (*dict.fromkeys(span for fact in reversed(scopes) for span in fact.spans), *spans)
    return tuple(sorted(spans, key=lambda span: span.default))


def _missing(rule: Rule, outcome: Outcome, facts: Facts) -> tuple[Missing, ...]:
    run, unread = facts.run, facts.once(__name__ + ".assumed", assumed)
    questions = []
    for fact in outcome.missing:
        kind, _, name = fact.partition(":")
        spellings: tuple[str, ...] = ()
        if kind == "setting" and run.framework is not None:
            version = facts.evidence.versions.get(run.framework.value)
            spellings = keys_of(run.framework.value, name, version.exact if version is not None else None)
        note = unread.note(name) if unread is not None and kind == "setting" else None
        questions.append(missing(fact, rule.title, spellings, note))
    return tuple(questions)


def _cannot_tell(rule: Rule, needed: tuple[Missing, ...]) -> Text:
    return Text(
        en=f"Cannot tell whether this is so: {rule.title.en}. " + " ".join(item.ask.en for item in needed),
        zh=f"无法判断是否属于：{rule.title.zh}。" + "".join(item.ask.zh for item in needed),
    )
