"""The report of an update as Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from trainmedic.ingest.update.update import Update
from trainmedic.kb.sources.changes import NewDefault, OptionChanges

MOST = 40
"""Lines of one list; the report as JSON has all."""


def markdown(updates: Sequence[Update]) -> str:
    """A table of the packages, then a section for each that has new releases."""
    lines = [
        "# New releases",
        "",
        "| package | read up to | newest | defaults changed | statements to repair | removed options named | drafts |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += map(_row, updates)
    for each in updates:
        if each.after:
            lines += _section(each)
    return "\n".join(lines) + "\n"


def _row(each: Update) -> str:
    if each.problem:
        return f"| {each.package} | {each.problem} | | | | | |"
    before = each.before.version if each.before else ""
    if not each.after:
        return f"| {each.package} | {before} | the same | | | | |"
    newest = each.after[-1]
    changed = sum(len(changes.defaults) for changes in (each.options or {}).values())
    day = f" ({newest.released})" if newest.released else ""
    counts = (changed, len(each.statements), len(each.mentions), len(each.drafts))
    return f"| {each.package} | {before} | {newest.version}{day} | {' | '.join(map(str, counts))} |"


def _section(each: Update) -> Iterator[str]:
    before = each.before.version if each.before else ""
    yield from ("", f"## {each.package} {before} → {each.after[-1].version}", "")
    yield f"Read: {', '.join(release.version for release in each.after)}."
    yield from _listed("Statements to repair", each.statements)
    yield from _listed("Anchors that do not hold", each.anchors)
    yield from _listed("Pages that name a removed option", each.mentions)
    for framework, changes in (each.options or {}).items():
        yield from _options(framework, changes)
    if each.messages is not None:
        yield from _listed(
            "New messages",
            (f"`{_line(new.message.template)}` ({new.path}:{new.message.line})" for new in each.messages.new),
        )
        yield from _listed(
            "Messages gone", (f"`{_line(gone.message.template)}` ({gone.path})" for gone in each.messages.gone)
        )
    files = Counter(function.path for function in each.functions)
    yield from _listed(
        "Functions changed", (f"{path}: {count}" for path, count in files.most_common()), len(each.functions)
    )
    yield from _listed(
        "Drafts of defects",
        (f"{draft.subject} ({draft.introduced or '?'} to {draft.fixed or 'unreleased'})" for draft in each.drafts),
    )


def _options(framework: str, changes: OptionChanges) -> Iterator[str]:
    yield from _listed(f"Defaults changed ({framework})", map(_changed, changes.defaults))
    yield from _listed(
        "Options renamed", (f"`{each.old}` → `{each.new}` ({each.evidence})" for each in changes.renamed)
    )
    yield from _listed("Options removed", (f"`{name}`" for name in changes.removed))
    yield from _listed("Options new", (f"`{name}`" for name in changes.added))


def _changed(change: NewDefault) -> str:
    owner = f" of {change.owner}" if change.owner else ""
    return f"`{change.option}`{owner}: {_value(change.before)} → {_value(change.after)}"


def _listed(title: str, items: Iterable[str], count: int | None = None) -> Iterator[str]:
    lines = list(items)
    if lines:
        yield from ("", f"### {title}: {len(lines) if count is None else count}", "")
        yield from (f"- {line}" for line in lines[:MOST])
        if len(lines) > MOST:
            yield f"- … {len(lines) - MOST} more"


def _value(value: object) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())
