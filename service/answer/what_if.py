"""The effect of a supposed change in words: the beginning of an answer to "what about …?". Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from trainmedic.kb.engine.values import show
from trainmedic.kb.engine.version_ranges import within
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Finding, Status
from trainmedic.service.answer.citations import Citations, harmless
from trainmedic.service.answer.learning_rate import beside_usual
from trainmedic.service.answer.messages import messages
from trainmedic.service.answer.schema import Section
from trainmedic.service.answer.views import SEPARATOR
from trainmedic.service.dialogue.supposition import Wish
from trainmedic.service.dialogue.what_if import ALREADY, AppliedChange, Effect, WhatIf
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.direction import advice_on
from trainmedic.service.ranking.features import Context
from trainmedic.service.ranking.inference import Cause

MAX_TITLES = 5
"""Findings or effects named in one line; the others are counted."""
MAX_VALUE = 80
ABSENT = "—"
_PLAIN = str.maketrans("`\n", "' ")
Titled = TypeVar("Titled", Finding, Effect)


def supposition(what_if: WhatIf, diagnosis: Diagnosis, context: Context, citations: Citations) -> Section:
    """The section on a supposed change: what the rules say of it, and whether it goes the way of a fix."""
    language, lead = citations.language, next(iter(diagnosis.causes), None)
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
    head = messages("supposed", language, changes=changes_in_words(what_if.changed, language))
    markers: list[int] = []
    items: list[str] = []
    for name in ("clears", "appears", "stays", "logged"):
        if effects := getattr(what_if, name):
            titles, cited = cited_titles(effects, citations.effect, language)
            markers += cited
            items.append(messages(f"supposed_effects.{name}", language, titles=titles))
    if not what_if.clears and not what_if.appears:
        items.insert(0, messages("supposed_effects.nothing", language))
    directions, quoted = _directions(what_if, diagnosis, context, citations)
    markers += quoted
    status = stands(what_if, lead) if lead is not None else "open"
    if status == "falls" or (status == "stands" and not directions):
        directions.insert(0, messages(f"supposed_cause.{status}", language))
    elif not directions and not what_if.clears and not what_if.appears:
        directions.append(messages(f"supposed_cause.{'touched' if status == 'touched' else 'unknown'}", language))
    parts = (head, "\n".join(f"- {item}" for item in items), *directions, *not_tried)
    body = "\n\n".join(part for part in parts if part)
    return Section(kind="supposed", body=body, items=tuple(items), markers=tuple(dict.fromkeys(markers)))


def _directions(
    what_if: WhatIf, diagnosis: Diagnosis, context: Context, citations: Citations
) -> tuple[list[str], list[int]]:
    """Whether the changes go the way of the fixes, as sentences with their markers."""
    changes = [(change.name, change.before, change.after) for change in what_if.changed]
    return _directed(changes, diagnosis, context, citations)


def _directed(
    changes: Sequence[tuple[str, str | None, str]], diagnosis: Diagnosis, context: Context, citations: Citations
) -> tuple[list[str], list[int]]:
    said, markers = [], []
    for name, before, after in changes:
        advice = advice_on(name, before, after, diagnosis, context, citations.language)
        if advice is not None:
            source = advice.source
            markers.append(citations.case(source) if isinstance(source, Case) else citations.rule(source))
            way = f"direction.{'refuted' if advice.refuted else 'agrees' if advice.agrees else 'differs'}"
            quoted = harmless(advice.quoted)
            said.append(messages(way, citations.language, quoted=quoted, marker=f"[{markers[-1]}]"))
    return said, markers


def changes_in_words(changes: Sequence[AppliedChange], language: str, *, made: bool = False) -> str:
    """The changes with the values before; ``made``: they are not supposition."""
    return ("、" if language == "zh" else ", ").join(_change(change, language, made=made) for change in changes)


def wished(wish: Wish, diagnosis: Diagnosis, context: Context, citations: Citations) -> Section:
    """Whether to raise or to lower a setting, to no value that is said, goes the way of a fix."""
    language, after = citations.language, "raise" if wish.raises else "lower"
    setting = context.evidence.run.settings.get(wish.name)
    before = show(setting.value) if setting is not None else None
    said, markers = _directed([(wish.name, before, after)], diagnosis, context, citations)
    usual = beside_usual(context, language) if wish.name == "learning_rate" else ""
    body = said[0] if said else usual or messages("supposed_cause.unknown", language)
    return Section(
        kind="supposed", body=f"**{messages(after, language, name=wish.name)}** {body}", markers=tuple(markers)
    )


def stands(what_if: WhatIf, lead: Cause) -> str:
    """Whether the first cause remains after the change: stands | falls | touched | open.

    ``touched``: no rule decides it, but the change is about a setting or package of the cause.
    """
    rules = {finding.rule_id for finding in lead.findings if finding.status is Status.FIRED}
    if rules & {effect.rule_id for effect in (*what_if.stays, *what_if.appears)}:
        return "stands"
    if rules & {effect.rule_id for effect in what_if.clears}:
        return "falls"
    case = lead.case
    for change in what_if.changed:
        affected = case.affected.get(change.name)
        if affected is not None and change.version is not None and within(change.version, affected) is False:
            return "falls"
    return "touched" if {c.name for c in what_if.changed} & {*case.settings, *case.affected} else "open"


def settled(what_if: WhatIf, lead: Cause | None) -> tuple[str, ...]:
    """The same as lines for a model's prompt, with the rules' ids. Only the first line contains users' values."""
    changes = "; ".join(f"{change.name} {change.before or 'unknown'} -> {change.after}" for change in what_if.changed)
    lines = [f"the question supposes a change, which is not made: {changes or 'none that could be tried'}"]
    lines += [
        f"supposed change, {name}: {', '.join(effect.rule_id for effect in effects)}"
        for name in ("clears", "appears", "stays", "logged")
        if (effects := getattr(what_if, name))
    ]
    if what_if.changed and lead is not None:
        lines.append(f"supposed change, the first cause: {stands(what_if, lead)}")
    return tuple(lines)


def cited_titles(items: Sequence[Titled], cite: Callable[[Titled], int], language: str) -> tuple[str, tuple[int, ...]]:
    """The titles on one line, each with its marker, and the markers; of many the first, and how many more."""
    listed = items[:MAX_TITLES]
    markers = tuple(cite(item) for item in listed)
    titles = [f"{item.title.get(language)} [{marker}]" for item, marker in zip(listed, markers, strict=True)]
    more = f" (+{len(items) - MAX_TITLES})" if len(items) > MAX_TITLES else ""
    return SEPARATOR["zh" if language == "zh" else "en"].join(titles) + more, markers


def _change(change: AppliedChange, language: str, *, made: bool = False) -> str:
    name, after = _code(change.name), _code(change.after)
    if made and change.after == ABSENT and change.before is not None:
        return messages("made_unset", language, name=name, before=_code(change.before))
    if change.before is None:
        return messages("made_new" if made else "supposed_new", language, name=name, after=after)
    return messages(
        "made_one" if made else "supposed_one", language, name=name, after=after, before=_code(change.before)
    )


def _code(text: str) -> str:
    """``text`` made safe between backticks."""
    return text.translate(_PLAIN)[:MAX_VALUE].strip() or "…"
