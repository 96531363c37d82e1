"""The configuration in effect for a terminal: what was written, what follows, defaults, and what is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmedic.kb.effective.model import Effective, Lost, Row
from trainmedic.kb.effective.table import rows_of
from trainmedic.kb.effective.written import place
from trainmedic.kb.engine.values import show
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.text import paint

_WIDEST = 44


def report(found: Effective, language: str = "en", *, everything: bool = False, colour: bool = False) -> str:
    blocks = [_head(found, language)]
    rows = list(rows_of(found, everything=everything))
    written = [row for row in rows if row.span is not None]
    derived = [row for row in rows if row.span is None and row.kind == "derived"]
    others = [row for row in rows if row.span is None and row.kind != "derived"]
    for name, group in (("written", written), ("derived", derived), ("defaults", others)):
        if group:
            blocks.append("\n".join([messages(f"effective.{name}", language), *_lines(group)]))
    if found.lost:
        lines = [paint(line, "33", colour) for line in _lost(found.lost, language)]
        blocks.insert(1, "\n".join([messages("effective.lost", language), *lines]))
    hidden = len(found.rows) - len(rows)
    if hidden:
        blocks.append(messages("effective.hidden", language, count=hidden))
    return "\n\n".join(blocks) + "\n"


def _head(found: Effective, language: str) -> str:
    if not found.framework:
        return messages("effective.no_framework", language)
    releases = found.releases
    span = "" if not releases else releases[0] if len(releases) == 1 else f"{releases[0]} – {releases[-1]}"
    name = " ".join(filter(None, (found.framework, span, found.algorithm)))
    others = [f"transformers {found.transformers}"] if found.transformers else []
    head = ", ".join([name, *others, *([" + ".join(found.owners)] if found.owners else [])])
    if found.partial:
        return f"{head}\n{messages('effective.partial', language)}"
    if not any(row.kind == "default" and not row.part for row in found.rows):
        return f"{head}\n{messages('effective.unread', language)}"
    return head


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    names = [f"{row.part}: {row.name}" if row.part else row.name for row in rows]
    values = [show(row.value).replace("\n", "\\n") or "[]" for row in rows]
    left = min(max(map(len, names)), _WIDEST)
    middle = min(max(map(len, values)), _WIDEST)
    for name, value, row in zip(names, values, rows, strict=True):
        yield f"  {name:<{left}}  {value:<{middle}}  {row.origin}".rstrip()


def _lost(lost: Sequence[Lost], language: str) -> Iterator[str]:
    for each in lost:
        name = f"{each.part}: {each.name}" if each.part else each.name
        kind = messages(f"effective.{each.kind}", language)
        yield f"  {name} = {show(each.value)} ({place(each.span)}): {kind}: {each.reason}"
