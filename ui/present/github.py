"""Findings as GitHub Actions workflow commands: one annotation a finding, at its first place."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report_view import FindingView, HorizonView, ReportView
from trainmedic.service.answer.schema import AuditView, DefectView

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
DEFECT_LEVELS = {
    **dict.fromkeys(("silent", "hang", "crash", "save"), "error"),
    **dict.fromkeys(("resume", "memory", "slow"), "warning"),
    "log": "notice",
}


def render(view: ReportView | AuditView, *, with_possible: bool = False) -> str:
    return audit_report(view, with_possible=with_possible) if isinstance(view, AuditView) else report(view)


def report(view: ReportView) -> str:
    """One line per fired finding; a finding that could not be checked is a notice without a place."""
    lines = (*map(annotation, view.findings), *map(beyond, view.horizon))
    return "".join(f"{line}\n" for line in lines)


def audit_report(view: AuditView, *, with_possible: bool = False) -> str:
    """One line per certain defect, at the line with the package's version; possible ones are notices."""
    shown = [item for item in view.defects if item.certain or with_possible]
    lines = (*map(defect_annotation, shown), *map(beyond, view.horizon))
    return "".join(f"{line}\n" for line in lines)


def beyond(item: HorizonView) -> str:
    """A notice without a place: a release that is not known."""
    return _command("notice", f"{item.package} {item.asked}", item.message, ())


def annotation(item: FindingView) -> str:
    level = LEVELS[item.severity] if item.status == "fired" else "notice"
    message = item.message if not item.fix else f"{item.message}\n{item.fix}"
    return _command(level, f"{item.rule_id}: {item.title}", message, item.evidence)


def defect_annotation(item: DefectView) -> str:
    level = DEFECT_LEVELS[item.effect] if item.certain else "notice"
    lines = (f"{item.package} {item.version} ({item.affected}): {item.title}", item.workaround, item.link)
    return _command(level, item.id, "\n".join(filter(None, lines)), item.evidence)


def _command(level: str, title: str, message: str, evidence: Sequence[Span]) -> str:
    properties = {"title": title}
    if evidence and evidence[0].attachment is not None:
        span = evidence[0]
        place: dict[str, str] = {"file": span.attachment or "", "line": str(span.line), "endLine": str(span.end_line)}
        if span.line == span.end_line:
            # GitHub ignores columns of an annotation over several lines.
            place |= {"col": str(span.column), "endColumn": str(span.end_column)}
        properties = place | properties
    shown = ",".join(f"{name}={escape_property(value)}" for name, value in properties.items())
    return f"::{level} {shown}::{escape_data(message)}"


def escape_data(text: str) -> str:
    """Escape the text of a workflow command, so that a pasted text cannot start another command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
