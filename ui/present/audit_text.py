"""An audit for a terminal: the defects of each package, the worst first, and the versions without them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trainmedic.kb.model.environment import OptionChange
from trainmedic.service.answer.schema import AuditView, ComparisonView, DefectView
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.source_text import source_blocks
from trainmedic.ui.present.text import paint, problems

COLOURS = {
    **dict.fromkeys(("silent", "hang", "crash", "save"), "31"),
    **dict.fromkeys(("resume", "memory", "slow"), "33"),
    "log": "36",
}
MOST_PACKAGES = 40
"""Changed packages that are listed; two environments may differ in hundreds that training does not use."""
MOST_POSSIBLE = 3
"""Defects of a package that are named though it is open whether the run has them."""
MOST_IDS = 8
MOST_OPTIONS = 20


def report(
    view: AuditView,
    language: str = "en",
    *,
    colour: bool = False,
    patches: bool = False,
    with_possible: bool = False,
) -> str:
    blocks: list[str] = []
    if view.compare is not None:
        blocks += comparison(view.compare, view.defects, language, colour=colour)
    blocks += [
        package(name, [item for item in view.defects if item.package == name], language, with_possible, colour=colour)
        for name in dict.fromkeys(item.package for item in view.defects)
    ]
    blocks += [block for block in (upgrades(view, language), view.patch if patches else "") if block]
    blocks += [f"{messages('failed', language)}: {failure}" for failure in view.failures]
    blocks += list(problems(view.receipt, language))
    blocks += ["\n".join(item.message for item in view.horizon)] if view.horizon else []
    blocks.append(summary(view, language))
    return "\n\n".join(block.rstrip("\n") for block in blocks) + "\n"


def package(name: str, items: Sequence[DefectView], language: str, with_possible: bool, *, colour: bool) -> str:
    """One package's certain defects, and the worst of the others, of which all are listed if they are wanted."""
    certain = [item for item in items if item.certain]
    possible = sorted((item for item in items if not item.certain), key=lambda item: len(item.doubts))
    lines = [f"{name} {items[0].version}"]
    for item in (*certain, *(possible if with_possible else ())):
        lines += defect(item, language, colour=colour)
    if not with_possible:
        lines += [headline(item, language, colour=colour) for item in possible[:MOST_POSSIBLE]]
        if len(possible) > MOST_POSSIBLE:
            lines.append("  " + messages("audit.collapsed", language, count=len(possible) - MOST_POSSIBLE))
    return "\n".join(lines)


def headline(item: DefectView, language: str, *, colour: bool) -> str:
    effect = messages(f"audit.effect.{item.effect}", language)
    doubt = f" [{messages('audit.possible', language)}]" if not item.certain else ""
    return f"  {paint(effect, COLOURS[item.effect], colour)} {item.id}{doubt}: {item.title}"


def defect(item: DefectView, language: str, *, colour: bool) -> Iterator[str]:
    yield headline(item, language, colour=colour)
    parts = [item.affected, *(messages(f"audit.doubt.{doubt}", language) for doubt in item.doubts)]
    if item.introduced is None and item.fixed is not None:
        parts.append(messages("audit.since_unknown", language))
    yield "    " + messages("semicolon", language).join(dict.fromkeys(parts))
    if item.workaround:
        yield f"    {messages('audit.workaround', language)}: {item.workaround}"
    if item.source:
        yield f"    {item.source}"
    yield f"    {item.link}"


def upgrades(view: AuditView, language: str) -> str:
    lines = []
    for change in view.changes:
        line = f"  {change.package} {change.current} → {change.to}"
        if change.clears:
            line += f"  {messages('audit.clears', language, ids=_ids(change.clears))}"
        if change.enters:
            line += f"  {messages('audit.enters', language, ids=_ids(change.enters))}"
        if change.because:
            line += f"  ({change.because})"
        lines.append(line)
    if lines:
        lines.insert(0, messages("audit.change", language))
    if view.left:
        lines.append(messages("audit.left", language))
        by_reason: dict[str, list[str]] = {}
        for item in view.left:
            by_reason.setdefault(item.message, []).append(item.defect)
        lines += [f"  {_ids(ids)}: {message}" for message, ids in by_reason.items()]
    return "\n".join(lines)


def _ids(ids: Sequence[str]) -> str:
    more = f", … (+{len(ids) - MOST_IDS})" if len(ids) > MOST_IDS else ""
    return ", ".join(ids[:MOST_IDS]) + more


def comparison(view: ComparisonView, defects: Iterable[DefectView], language: str, *, colour: bool) -> Iterator[str]:
    """The differences from the environment that works: packages, defects that it does not have, options."""
    if not view.packages:
        yield messages("audit.same", language)
        return
    lines = [messages("audit.differs", language)]
    for change in view.packages[:MOST_PACKAGES]:
        lines.append(f"  {change.package} {change.good or '-'} → {change.bad or '-'}")
    if len(view.packages) > MOST_PACKAGES:
        lines.append(f"  … (+{len(view.packages) - MOST_PACKAGES})")
    yield "\n".join(lines)
    by_id = {item.id: item for item in defects}
    new = [by_id[name] for name in view.defects]
    if certain := [item for item in new if item.certain]:
        lines = [messages("audit.only_bad", language)]
        for item in certain[:MOST_IDS]:
            lines += defect(item, language, colour=colour)
        yield "\n".join(lines)
    if view.options:
        lines = [messages("audit.options", language), *(f"  {option(item)}" for item in view.options[:MOST_OPTIONS])]
        if len(view.options) > MOST_OPTIONS:
            lines.append(f"  … (+{len(view.options) - MOST_OPTIONS})")
        yield "\n".join(lines)
    yield from source_blocks(view.source, language)


def option(item: OptionChange) -> str:
    mark = "!" if item.concerns else " "
    change = {"removed": "✗", "renamed": f"→ {item.after}", "default": f"{item.before} → {item.after}"}[item.kind]
    return f"{mark} {item.framework} {item.option}: {change}"


def summary(view: AuditView, language: str) -> str:
    """How many defects, and of what: silence about a list that was not understood would read as a clean bill."""
    if not view.packages:
        return messages("audit.nothing", language)
    certain = sum(item.certain for item in view.defects)
    packages = messages("audit.packages", language, count=len(view.packages))
    parts = [
        *([messages("audit.beyond", language, count=len(view.horizon))] if view.horizon else []),
        messages("audit.certain", language, count=certain),
        messages("audit.maybe", language, count=len(view.defects) - certain),
    ]
    text = f"{packages}{messages('comma', language)}{messages('comma', language).join(parts)}"
    if certain:
        text += "\n" + messages("audit.read_from_fix", language)
    if any("condition" in item.doubts for item in view.defects):
        text += "\n" + messages("audit.add_configuration", language)
    return text
