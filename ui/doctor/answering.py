"""Diagnose the collected files: an answer, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from trainmedic.kb.error_messages.tables import LOGGED
from trainmedic.kb.mask import mask
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report_view import ReportView, SignalView
from trainmedic.kb.pages.fixed_causes import load_known
from trainmedic.kb.parse.logs.signal_kinds import BENIGN
from trainmedic.service.answer.audit import audited
from trainmedic.service.answer.error_messages import explained
from trainmedic.service.answer.schema import Answer, MessageView, Verdict
from trainmedic.service.answer.views import report_view
from trainmedic.ui.checking import examine
from trainmedic.ui.doctor.collect import Collected, Found
from trainmedic.ui.doctor.target import Target
from trainmedic.ui.present.page import Page, page_of

messages = load_messages(__package__)
_MOST_NAMED = 5


def checked(
    symptom: str, files: Sequence[Attachment], language: Literal["en", "zh"], folders: Sequence[Path] = ()
) -> Answer:
    """The answer of rules, known defects and messages alone, where no search index is installed."""
    if symptom:
        files = (*files, Attachment(name="symptom.md", content=symptom))
    evidence, report = examine(files, folders)
    view = report_view(evidence, report, language)
    defects, _ = audited(evidence, load_known(evidence.versions.keys(), folders), language)
    said = explained(evidence, language).messages
    verdict = _verdict(evidence, view, said)
    unsure = [each for each in view.findings if verdict == "need_input" and each.severity == "error"]
    return Answer(
        id="",
        conversation_id="",
        verdict=verdict,
        language=language,
        mode="deterministic",
        model=None,
        answer="",
        causes=(),
        findings=view.findings,
        citations=(),
        missing=tuple(item for finding in unsure for item in finding.missing),
        signals=view.signals,
        run=view.run,
        receipt=view.receipt,
        kb_version="",
        ruleset_version=view.ruleset_version,
        defects=defects.defects,
        messages=said,
        horizon=view.horizon,
    )


def is_failing(signals: Sequence[SignalView]) -> bool:
    return any(signal.kind not in BENIGN for signal in signals)


def _verdict(evidence: Evidence, view: ReportView, said: Sequence[MessageView]) -> Verdict:
    """`answered` by an error that a rule found; `no_fault` only where a log shows training without any sign of one."""
    if any(finding.severity == "error" and finding.concludes == "fault" for finding in view.fired):
        return "answered"
    failing = evidence.tracebacks or is_failing(view.signals) or any(each.kind not in LOGGED for each in said)
    return "no_fault" if evidence.rows and not failing else "need_input"


def page(collected: Collected, answer: Answer, *, checks_only: bool, asked: bool = False) -> Page:
    """The page of an answer about what was collected, which says what was read and what was not found. ``asked``: a
    symptom was told."""
    language, refused = answer.language, {item.name for item in answer.receipt.inputs if not item.read}
    read = [found for found in collected.found if found.attachment.name not in refused]
    unread = [*collected.unread, *(found.attachment.name for found in collected.found if found not in read)]
    notices = [messages("checks_only", language)] if checks_only else []
    if collected.links:
        notices.append(messages("links", language, count=collected.links))
    if collected.cut_short:
        notices.append(messages("cut_short", language))
    made = page_of(
        answer,
        read=(*_run(collected.target, language), *(_named(found, language) for found in read)),
        not_found=tuple(_not_found(collected.missing, unread, language)),
        notices=tuple(notices),
    )
    # Without a question there is no symptom that a proof could have nothing to do with.
    errors = {item.rule_id for item in answer.findings if item.status == "fired" and item.severity == "error"}
    shown = bool(made.causes) and made.causes[0].confidence == "rule"
    if asked or made.verdict != "need_input":
        return made
    if shown and made.causes[0].id in errors:
        return replace(made, verdict="answered")
    # Nor is there one that an unproven cause could explain where the log shows training and nothing wrong.
    failing = is_failing(answer.signals) or any(each.kind not in LOGGED for each in answer.messages)
    if shown or failing or not answer.series:
        return made
    return replace(made, verdict="no_fault", causes=(), avoid=(), missing=(), patch="")


def _run(target: Target, language: str) -> Iterator[str]:
    kind, name = target.words
    yield messages(f"of.{kind}", language, name=name)
    if kind == "folder" and target.process is not None:
        yield messages("also_process", language, pid=target.process.pid)


def _named(found: Found, language: str) -> str:
    name = mask(found.attachment.name).text
    return messages(found.note, language, name=name, value=found.value) if found.note else name


def _not_found(missing: Sequence[str], unread: Sequence[str], language: str) -> Iterator[str]:
    yield from (messages(f"missing.{kind}", language) for kind in missing)
    if unread:
        yield messages("unread", language, names=", ".join(unread[:_MOST_NAMED]))
