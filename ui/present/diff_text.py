"""A comparison of two runs for a terminal: what explains the failure, what else differs, where the curves part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmedic.kb.model.place import Span
from trainmedic.service.answer.schema import CurveView, DifferenceView, DiffView
from trainmedic.ui.present.messages import messages
from trainmedic.ui.present.source_text import source_blocks
from trainmedic.ui.present.text import paint, problems

MOST_EFFECTS = 3
MOST_OTHERS = 40
MOST_CURVES = 8
MOST_IDS = 12


def report(view: DiffView, language: str = "en", *, colour: bool = False) -> str:
    blocks = [block for block in _blocks(view, language, colour) if block]
    blocks += [f"{messages('failed', language)}: {failure}" for failure in view.failures]
    blocks += ["\n".join(item.message for item in view.horizon)] if view.horizon else []
    blocks += [*problems(view.good_receipt, language), *problems(view.bad_receipt, language)]
    return "\n\n".join(blocks) + "\n"


def _blocks(view: DiffView, language: str, colour: bool) -> Iterator[str]:
    explaining = [item for item in view.differences if item.explains]
    known = [item for item in view.differences if item.effects and not item.explains]
    others = [item for item in view.differences if not item.effects]
    if view.signals:
        meanings = dict.fromkeys(signal.meaning for signal in view.signals)
        yield _list(messages("diff.symptoms", language), list(meanings))
    if explaining:
        yield _list(messages("diff.explains", language), _lines(explaining, language, colour))
    elif view.signals and view.differences:
        yield messages("diff.unexplained", language)
    if known:
        yield _list(messages("diff.known", language), _lines(known, language, colour))
    if others:
        lines = [_change(item, language) for item in others[:MOST_OTHERS]]
        lines += [f"… (+{len(others) - MOST_OTHERS})"] if len(others) > MOST_OTHERS else []
        yield _list(messages("diff.others", language), lines)
    yield from source_blocks(view.source, language)
    if view.curves:
        yield _list(messages("diff.curves", language), [_curve(item, language) for item in view.curves[:MOST_CURVES]])
    attached = {effect.id for item in view.differences for effect in item.effects}
    if findings := [item for item in view.findings if item.rule_id not in attached]:
        yield _list(messages("diff.findings", language), [f"{item.rule_id}: {item.title}" for item in findings])
    certain = [item for item in view.defects if item.certain and item.id not in attached]
    if certain:
        lines = [f"{item.id}: {item.title}" for item in certain[:MOST_IDS]]
        lines += [f"… (+{len(certain) - MOST_IDS})"] if len(certain) > MOST_IDS else []
        yield _list(messages("diff.defects", language), lines)
    if not view.differences:
        yield messages("diff.same", language)


def _list(heading: str, lines: Sequence[str]) -> str:
    return "\n".join([heading, *(f"  {line}" for line in lines)])


def _lines(items: Sequence[DifferenceView], language: str, colour: bool) -> list[str]:
    lines = []
    for item in items:
        lines.append(paint(_change(item, language), "31" if item.explains else "33", colour))
        shown = [effect for effect in item.effects if effect.explains] or list(item.effects)
        for effect in shown[:MOST_EFFECTS]:
            lines.append(f"  {messages(f'diff.effect.{effect.kind}', language)} {effect.id}: {effect.title}")
            if effect.fix:
                lines.append(f"    {messages('fix', language)}: {effect.fix}")
        if len(shown) > MOST_EFFECTS:
            lines.append(f"  … (+{len(shown) - MOST_EFFECTS})")
    return lines


def _change(item: DifferenceView, language: str) -> str:
    sides = [
        _side(item.good, item.good_place, item.good_source, language),
        _side(item.bad, item.bad_place, item.bad_source, language),
    ]
    return f"{item.name}: {sides[0]} → {sides[1]}"


def _side(value: str | None, place: Span | None, source: str, language: str) -> str:
    if value is None:
        return messages("diff.absent", language)
    if place is not None and place.attachment:
        return f"{value} ({place.attachment}:{place.line})"
    return f"{value} ({messages('diff.default', language)})" if source.startswith("default") else value


def _curve(item: CurveView, language: str) -> str:
    name = "diff.curve_whole" if item.whole else "diff.curve"
    place = f"{item.bad_place.attachment or '-'}:{item.bad_place.line}"
    return messages(
        name, language, metric=item.metric, step=item.step, good=f"{item.good:.4g}", bad=f"{item.bad:.4g}", place=place
    )
