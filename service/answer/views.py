"""Evidence and findings in one language, shaped for the wire. Pure; shared by every channel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TypeVar

from trainmedic.kb.frameworks.horizon import horizons, packages_of
from trainmedic.kb.model.evidence import Evidence, Receipt, Signal
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Fix, Report
from trainmedic.kb.model.report_view import (
    FindingView,
    MaskedView,
    ProblemView,
    ReceiptView,
    ReportView,
    RunView,
    SettingView,
    SignalView,
)
from trainmedic.kb.parse.logs.signal_kinds import KINDS
from trainmedic.kb.projection import project
from trainmedic.service.answer.horizon import horizon_views

MAX_SETTINGS = 200
"""Settings listed for one run; thousands of pasted flags must not fill the answer."""

OR = {"en": "or ", "zh": "或者"}
SEPARATOR = {"en": "; ", "zh": "；"}


def finding_view(finding: Finding, language: str) -> FindingView:
    """One finding in ``language``, with the patch of the first fix that has one; without a repair it clears nothing."""
    patched = next((fix for fix in finding.fixes if fix.patch), None)
    return project(
        FindingView,
        finding,
        language,
        fix=in_words(finding.fixes, language),
        patch=patched.patch if patched else None,
        clears=patched.clears if patched and patched.repairs else (),
        appears=patched.appears if patched else (),
    )


def in_words(fixes: Sequence[Fix], language: str) -> str:
    """Fixes as one sentence: "Remove X; install Y", or "Remove X; or install Y" where one is enough."""
    texts = [fix.text.get(language) for fix in fixes]
    later = [
        f"{OR[language] if fix.alternative else ''}{_continued(text)}"
        for fix, text in zip(fixes[1:], texts[1:], strict=True)
    ]
    return joined([*texts[:1], *later], language)


def _continued(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def joined(sentences: Sequence[str], language: str) -> str:
    """Sentences as one, without a full stop before the separator."""
    parts = [sentence.strip() for sentence in sentences if sentence.strip()]
    if not parts:
        return ""
    return SEPARATOR["zh" if language == "zh" else "en"].join([part.rstrip(".。") for part in parts[:-1]] + parts[-1:])


def signal_view(signal: Signal, language: str) -> SignalView:
    kind = KINDS.get(signal.kind)
    meaning = kind.get(language) if kind is not None else signal.kind
    return project(SignalView, signal, language, meaning=meaning, evidence=signal.span)


def run_view(evidence: Evidence, used: frozenset[str] = frozenset()) -> RunView:
    """The recognised run with its written settings, and the defaults named in ``used``."""
    run = evidence.run
    listed = [s for s in run.settings.values() if not s.is_default or s.name in used][:MAX_SETTINGS]
    facts = {name: getattr(run, name) for name in ("framework", "algorithm", "stage", "model", "model_family")}
    return project(
        RunView,
        run,
        reasons={name: fact.reason for name, fact in facts.items() if fact is not None},
        versions={name: _version(evidence, name) for name in sorted(evidence.versions)},
        settings={s.name: project(SettingView, s, default=s.is_default) for s in sorted(listed, key=lambda s: s.name)},
        runs=len(evidence.runs),
    )


def receipt_view(receipt: Receipt) -> ReceiptView:
    return ReceiptView(
        inputs=receipt.inputs,
        masked=tuple(MaskedView(kind=kind, count=count) for kind, count in receipt.masked),
        problems=tuple(project(ProblemView, problem, evidence=problem.span) for problem in receipt.problems),
    )


def report_view(evidence: Evidence, report: Report, language: str) -> ReportView:
    return ReportView(
        findings=tuple(finding_view(finding, language) for finding in report.findings),
        run=run_view(evidence, settings_used(report)),
        signals=tuple(signal_view(signal, language) for signal in evidence.signals),
        receipt=receipt_view(evidence.receipt),
        ruleset_version=report.ruleset_version,
        failures=tuple(f"{failure.rule_id}: {failure.message}" for failure in report.failures),
        patch=(report.repair.patch or "") if report.repair is not None else "",
        horizon=horizon_views(horizons(evidence.versions, packages_of(evidence.runs)), language),
    )


F = TypeVar("F", Finding, FindingView)


def grouped(findings: Iterable[F]) -> list[tuple[F, ...]]:
    """Findings that say the same of several runs or files, together, in the order of the first of each."""
    groups: dict[tuple[str, str, object], list[F]] = {}
    for finding in findings:
        groups.setdefault((finding.rule_id, finding.status, finding.message), []).append(finding)
    return [tuple(group) for group in groups.values()]


def merged_evidence(findings: Sequence[Finding] | Sequence[FindingView]) -> tuple[Span, ...]:
    """The places of several findings, one of each finding before the further ones."""
    ranks = zip_longest(*(finding.evidence for finding in findings))
    return tuple(dict.fromkeys(span for places in ranks for span in places if span is not None))


def settings_used(report: Report) -> frozenset[str]:
    """Names in the terms of fired findings: the defaults that they rest on must be shown."""
    words: set[str] = set()
    for finding in report.fired:
        for term in finding.terms:
            words.update(word for word in term.text.replace("(", " ").replace(")", " ").split() if word.isidentifier())
    return frozenset(words)


def _version(evidence: Evidence, package: str) -> str:
    fact = evidence.versions[package]
    if fact.exact is not None:
        return fact.exact
    bounds = [f">={fact.low}" if fact.low else "", f"<={fact.high}" if fact.high else ""]
    return ",".join(bound for bound in bounds if bound) or "?"
