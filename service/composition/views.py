"""Evidence and findings in one language, shaped for the wire. Pure; shared by every channel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TypeVar

from trainmedic.kb.model.evidence import Evidence, Receipt, Signal
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Finding, Fix, Missing, Report, Text
from trainmedic.kb.model.report_view import (
    FindingView,
    InputView,
    MaskedView,
    MissingView,
    ProblemView,
    ReceiptView,
    ReportView,
    RunView,
    SettingView,
    SignalView,
)
from trainmedic.kb.model.run import Recognised, Setting
from trainmedic.kb.parse.logs.signal_kinds import KINDS

MAX_SETTINGS = 200
"""Settings listed for one run; thousands of pasted flags must not fill the answer."""

OR = {"en": "or ", "zh": "或者"}
SEPARATOR = {"en": "; ", "zh": "；"}


def missing_view(missing: Missing, language: str) -> MissingView:
    return MissingView(fact=missing.fact, why=missing.why.get(language), ask=missing.ask.get(language))


def finding_view(finding: Finding, language: str) -> FindingView:
    """One finding in ``language``, with the patch of the first fix that has one."""
    patched = next((fix for fix in finding.fixes if fix.patch), None)
    return FindingView(
        rule_id=finding.rule_id,
        title=finding.title.get(language),
        severity=finding.severity.value,
        status=finding.status.value,
        message=finding.message.get(language),
        fix=in_words(finding.fixes, language),
        patch=patched.patch if patched else None,
        evidence=finding.evidence,
        missing=tuple(missing_view(item, language) for item in finding.missing),
        cases=finding.cases,
        concludes=finding.concludes,
        clears=patched.clears if patched else (),
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


def signal_views(evidence: Evidence, language: str) -> tuple[SignalView, ...]:
    return tuple(signal_view(signal, language) for signal in evidence.signals)


def signal_view(signal: Signal, language: str) -> SignalView:
    return SignalView(
        kind=signal.kind,
        meaning=KINDS.get(signal.kind, Text(en=signal.kind, zh=signal.kind)).get(language),
        value=signal.value,
        step=signal.step,
        stated=signal.stated,
        evidence=signal.span,
        observed=signal.observed.get(language) if signal.observed is not None else "",
    )


def run_view(evidence: Evidence, used: frozenset[str] = frozenset()) -> RunView:
    """The recognised run with its written settings, and the defaults named in ``used``."""
    run = evidence.run
    listed = [s for s in run.settings.values() if not s.is_default or s.name in used][:MAX_SETTINGS]
    facts = {"framework": run.framework, "algorithm": run.algorithm, "stage": run.stage}
    facts |= {"model": run.model, "model_family": run.model_family}
    return RunView(
        framework=_value(run.framework),
        algorithm=_value(run.algorithm),
        stage=_value(run.stage),
        model=_value(run.model),
        model_family=_value(run.model_family),
        reasons={name: fact.reason for name, fact in facts.items() if fact is not None},
        versions={name: _version(evidence, name) for name in sorted(evidence.versions)},
        settings={s.name: _setting(s) for s in sorted(listed, key=lambda s: s.name)},
        runs=len(evidence.runs),
    )


def receipt_view(receipt: Receipt) -> ReceiptView:
    return ReceiptView(
        inputs=tuple(
            InputView(
                name=i.name, kind=i.kind, bytes=i.bytes, lines=i.lines, read=i.read, truncated=i.truncated, note=i.note
            )
            for i in receipt.inputs
        ),
        masked=tuple(MaskedView(kind=kind, count=count) for kind, count in receipt.masked),
        problems=tuple(ProblemView(code=p.code, message=p.message, evidence=p.span) for p in receipt.problems),
    )


def report_view(evidence: Evidence, report: Report, language: str) -> ReportView:
    return ReportView(
        findings=tuple(finding_view(finding, language) for finding in report.findings),
        run=run_view(evidence, settings_used(report)),
        signals=signal_views(evidence, language),
        receipt=receipt_view(evidence.receipt),
        ruleset_version=report.ruleset_version,
        failures=tuple(f"{failure.rule_id}: {failure.message}" for failure in report.failures),
        patch=(report.repair.patch or "") if report.repair is not None else "",
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


def _value(fact: Recognised | None) -> str | None:
    return None if fact is None else fact.value


def _version(evidence: Evidence, package: str) -> str:
    fact = evidence.versions[package]
    if fact.exact is not None:
        return fact.exact
    bounds = [f">={fact.low}" if fact.low else "", f"<={fact.high}" if fact.high else ""]
    return ",".join(bound for bound in bounds if bound) or "?"


def _setting(setting: Setting) -> SettingView:
    return SettingView(value=setting.value, key=setting.key, default=setting.is_default, source=setting.source)
