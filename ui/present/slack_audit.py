"""The known defects of pasted versions as Slack messages: the worst few, and how many more there are. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trainmedic.kb.model.environment import VersionChange
from trainmedic.service.answer.schema import AuditView, DefectView
from trainmedic.ui.present.audit_text import summary
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.slack import Block, Reply, packed, section, small_print
from trainmedic.ui.present.slack_text import escape, fallback, link

MOST = 5
"""Defects that are listed."""
MOST_CHANGES = 5


def render_audit(view: AuditView, language: str) -> tuple[Reply, ...]:
    """The audit as an answer of its own; without defects only the summary."""
    text = "\n".join((*(item.message for item in view.horizon), summary(view, language)))
    lines = escape(text).split("\n")
    return packed([*known_defects(view.defects, view.changes, language), *small_print(lines)], fallback(text))


def known_defects(defects: Sequence[DefectView], upgrades: Sequence[VersionChange], language: str) -> list[Block]:
    """The worst defects and the change of versions that clears the certain ones; nothing if there are none."""
    if not defects:
        return []
    ranked = sorted(defects, key=_doubtful)
    lines = [messages("slack.defects.head", language), *(_line(item, language) for item in ranked[:MOST])]
    if len(ranked) > MOST:
        lines.append(messages("slack.defects.more", language, count=len(ranked) - MOST))
    changes = [f"{change.package} {change.current} → {change.to}" for change in upgrades[:MOST_CHANGES]]
    if changes:
        lines.append(f"{messages('audit.change', language)} {escape(messages('comma', language).join(changes))}")
    return [section("\n".join(lines))]


def _doubtful(item: DefectView) -> tuple[bool, bool]:
    """Certain defects first, then those of an exact version near the fix; the audit's order otherwise."""
    return not item.certain, bool({"version", "distant", "newer", "framework"} & set(item.doubts))


def _line(item: DefectView, language: str) -> str:
    effect = messages(f"audit.effect.{item.effect}", language)
    parts = [f"{item.package} {item.version}", link(item.link, item.title), escape(item.affected)]
    if not item.certain:
        why = messages("comma", language).join(messages(f"audit.doubt.{doubt}", language) for doubt in item.doubts)
        parts.append(escape(f"{messages('audit.possible', language)} ({why})"))
    return f"• *{effect}* " + " · ".join((escape(parts[0]), *parts[1:]))
