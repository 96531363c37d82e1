"""Findings as GitHub Actions workflow commands: one annotation a finding, at its first place."""

from __future__ import annotations

from trainmedic.service.answer import FindingView, ReportView

LEVELS = {"error": "error", "warning": "warning", "info": "notice"}


def report(view: ReportView) -> str:
    """One line per fired finding; a finding that could not be checked is a notice without a place."""
    return "".join(annotation(item) + "\n" for item in view.findings)


def annotation(item: FindingView) -> str:
    level = LEVELS[item.severity] if item.status == "fired" else "notice"
    properties = {"title": f"{item.rule_id}: {item.title}"}
    if item.evidence and item.evidence[0].attachment is not None:
        span = item.evidence[0]
        place: dict[str, str] = {"file": span.attachment or "", "line": str(span.line), "endLine": str(span.end_line)}
        if span.line == span.end_line:
            # GitHub ignores columns of an annotation over several lines.
            place |= {"col": str(span.column), "endColumn": str(span.end_column)}
        properties = place | properties
    shown = ",".join(f"{name}={escape_property(value)}" for name, value in properties.items())
    message = item.message if not item.fix else f"{item.message}\n{item.fix}"
    return f"::{level} {shown}::{escape_data(message)}"


def escape_data(text: str) -> str:
    """Escape the text of a workflow command, so that a pasted text cannot start another command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
