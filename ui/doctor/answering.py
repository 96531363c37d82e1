"""What the collected files mean: an answer, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from trainmedic.kb.error_messages.tables import LOGGED
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report_view import ReportView
from trainmedic.kb.pages.defect import load_defects
from trainmedic.service.answer.audit import audited
from trainmedic.service.answer.error_messages import explained
from trainmedic.service.answer.schema import Answer, MessageView, Verdict
from trainmedic.service.answer.views import report_view
from trainmedic.ui.checking import examine
from trainmedic.ui.doctor.collect import Collected, Found
from trainmedic.ui.present.page import Page, page_of

messages = load_messages(__package__)
_MOST_NAMED = 5
HEALTHY = "healthy_log"
"""The one signal that is none of a failure."""


def checked(
    symptom: str, files: Sequence[Attachment], language: Literal["en", "zh"], folders: Sequence[Path] = ()
) -> Answer:
    """The answer of rules, known defects and messages alone, where no search index is installed."""
    if symptom:
        files = (*files, Attachment(name="symptom.md", content=symptom))
    evidence, report = examine(files, folders)
    view = report_view(evidence, report, language)
    defects, _ = audited(evidence, load_defects(evidence.versions.keys(), folders), language)
    said = explained(evidence, language).messages
    return Answer(
        id="",
        conversation_id="",
        verdict=_verdict(evidence, view, said),
        language=language,
        mode="deterministic",
        model=None,
        answer="",
        causes=(),
        findings=view.findings,
        citations=(),
        missing=tuple(missing for finding in view.findings for missing in finding.missing),
        signals=view.signals,
        run=view.run,
        receipt=view.receipt,
        kb_version="",
        ruleset_version=view.ruleset_version,
        defects=defects.defects,
        messages=said,
        horizon=view.horizon,
    )


def _verdict(evidence: Evidence, view: ReportView, said: Sequence[MessageView]) -> Verdict:
    """`answered` by an error that a rule found; `no_fault` only where a log shows training without any sign of one."""
    if any(finding.severity == "error" and finding.concludes == "fault" for finding in view.fired):
        return "answered"
    failing = (
        evidence.tracebacks
        or any(signal.kind != HEALTHY for signal in evidence.signals)
        or any(message.kind not in LOGGED for message in said)
    )
    return "no_fault" if evidence.rows and not failing else "need_input"


def page(collected: Collected, answer: Answer, *, checks_only: bool) -> Page:
    """The page of an answer about what was collected, which says what was read and what was not found."""
    language = answer.language
    notices = [messages("checks_only", language)] if checks_only else []
    if collected.links:
        notices.append(messages("links", language, count=collected.links))
    if collected.cut_short:
        notices.append(messages("cut_short", language))
    return page_of(
        answer,
        read=tuple(_read(collected, language)),
        not_found=tuple(_not_found(collected, language)),
        notices=tuple(notices),
    )


def _read(collected: Collected, language: str) -> Iterator[str]:
    kind, name = collected.target.words
    yield messages(f"of.{kind}", language, name=name)
    if kind == "folder" and collected.target.process is not None:
        yield messages("also_process", language, pid=collected.target.process.pid)
    yield from (_named(found, language) for found in collected.found)


def _named(found: Found, language: str) -> str:
    name = found.attachment.name
    return messages(found.note, language, name=name, value=found.value) if found.note else name


def _not_found(collected: Collected, language: str) -> Iterator[str]:
    yield from (messages(f"missing.{kind}", language) for kind in collected.missing)
    if collected.unread:
        yield messages("unread", language, names=", ".join(collected.unread[:_MOST_NAMED]))
