"""What a supposed change does, in words: the first thing that an answer to "what about …?" says. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainmedic.kb.model.report import Status
from trainmedic.service.answer import Section
from trainmedic.service.composition.messages import messages
from trainmedic.service.ranking.diagnose import Cause
from trainmedic.service.ranking.features import in_range
from trainmedic.service.what_if.apply import ALREADY, AppliedChange, Effect, WhatIf

MAX_TITLES = 5
"""Findings named for one effect; the rest is counted."""
MAX_VALUE = 80
_PLAIN = str.maketrans("`\n", "' ")


def supposition(what_if: WhatIf, lead: Cause | None, marker: Callable[[Effect], int], language: str) -> Section:
    """The section on a supposed change. ``marker`` assigns the citation of a rule."""
    not_tried = [
        messages("supposed_not", language, name=_code(change.name), why=change.why.get(language))
        for change in what_if.unknown
        if change.why != ALREADY
    ]
    joiner = "、" if language == "zh" else ", "
    if not what_if.changed:
        names = [f"`{_code(change.name)}`" for change in what_if.unknown if change.why == ALREADY]
        already = [messages("supposed_same", language, names=joiner.join(names))] if names else []
        return Section(kind="supposed", body="\n\n".join((*already, *not_tried)))
    head = messages("supposed", language, changes=joiner.join(_change(c, language) for c in what_if.changed))
    markers: list[int] = []
    items: list[str] = []
    for name in ("clears", "appears", "stays", "logged"):
        if effects := getattr(what_if, name):
            titles = _titles(effects, marker, markers, language)
            items.append(messages(f"supposed_effects.{name}", language, titles=titles))
    if not what_if.clears and not what_if.appears:
        items.insert(0, messages("supposed_effects.nothing", language))
    standing = messages(f"supposed_cause.{stands(what_if, lead)}", language) if lead is not None else ""
    parts = (head, "\n".join(f"- {item}" for item in items), standing, *not_tried)
    body = "\n\n".join(part for part in parts if part)
    return Section(kind="supposed", body=body, items=tuple(items), markers=tuple(dict.fromkeys(markers)))


def stands(found: WhatIf, lead: Cause) -> str:
    """Whether the first cause is still the cause then: stands | falls | touched | open.

    ``touched``: no rule can tell, but the change is about a setting or package that the cause is about.
    """
    rules = {finding.rule_id for finding in lead.findings if finding.status is Status.FIRED}
    if rules & {effect.rule_id for effect in (*found.stays, *found.appears)}:
        return "stands"
    if rules & {effect.rule_id for effect in found.clears}:
        return "falls"
    case = lead.case
    for change in found.changed:
        affected = case.affected.get(change.name)
        if affected is not None and change.version is not None and in_range(change.version, affected) is False:
            return "falls"
    return "touched" if {c.name for c in found.changed} & {*case.settings, *case.affected} else "open"


def settled(found: WhatIf, lead: Cause | None) -> tuple[str, ...]:
    """The same as lines for a model's prompt, with the rules' ids. Values that users wrote stand in the first line."""
    changes = "; ".join(f"{change.name} {change.before or 'unknown'} -> {change.after}" for change in found.changed)
    lines = [f"the question supposes a change, which is not made: {changes or 'none that could be tried'}"]
    lines += [
        f"supposed change, {name}: {', '.join(effect.rule_id for effect in each)}"
        for name in ("clears", "appears", "stays", "logged")
        if (each := getattr(found, name))
    ]
    if found.changed and lead is not None:
        lines.append(f"supposed change, the first cause: {stands(found, lead)}")
    return tuple(lines)


def _change(change: AppliedChange, language: str) -> str:
    name, after = _code(change.name), _code(change.after)
    if change.before is None:
        return messages("supposed_new", language, name=name, after=after)
    return messages("supposed_one", language, name=name, after=after, before=_code(change.before))


def _titles(effects: Sequence[Effect], marker: Callable[[Effect], int], markers: list[int], language: str) -> str:
    titles = []
    for effect in effects[:MAX_TITLES]:
        markers.append(marker(effect))
        titles.append(f"{effect.title.get(language)} [{markers[-1]}]")
    more = f" (+{len(effects) - MAX_TITLES})" if len(effects) > MAX_TITLES else ""
    return ("；" if language == "zh" else "; ").join(titles) + more


def _code(text: str) -> str:
    """Text that can stand between backticks."""
    return text.translate(_PLAIN)[:MAX_VALUE].strip() or "…"
