"""Which way the causes' fixes go: whether they ask to raise or to lower a setting, or for a value. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmedic.kb.frameworks.settings import specs
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.report import Finding
from trainmedic.kb.sentences import sentences
from trainmedic.service.dialogue.change import setting_called
from trainmedic.service.dialogue.vocabulary import phrases, wordings
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.features import Context

_NAME = regex(r"(?<![\w.])-{0,2}(?P<name>[A-Za-z][\w.]*_\w+|bf16|fp16|packing|beta|temperature)(?!\w)")
_VALUE = regex(r"`?\s{0,2}[:=\s]\s{0,2}`?[\"']?(?P<value>[\w.+-]+)")
_BLOCK = regex(r"```.*?(?:```|$)", re.DOTALL)
MAX_CAUSES = 12
LONGEST = 240
"""Code points of a sentence that is quoted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The advice of a fix on a setting. ``agrees``: it goes the way of the change; ``refuted``: the change is known not
    to help if this is the cause."""

    agrees: bool
    quoted: str
    source: Case | Finding
    refuted: bool = False


def advice_on(
    name: str, before: str | None, after: str, diagnosis: Diagnosis, context: Context, language: str
) -> Advice | None:
    """The advice of findings and first causes on a change: the first that says anything; those that agree first.

    ``after`` is a value, or ``raise`` or ``lower``.
    """
    found = list(_advices(name, before, after, diagnosis, context, language))
    return next((advice for advice in found if advice.agrees), next(iter(found), None))


def _advices(
    name: str, before: str | None, after: str, diagnosis: Diagnosis, context: Context, language: str
) -> Iterator[Advice]:
    way = _way(before, after)
    for source, text, near in _texts(diagnosis, language):
        text = _BLOCK.sub("", text)
        for sentence in (part for line in text.split("\n") for part in sentences(line)):
            if len(sentence) > LONGEST or (at := _mention(name, sentence, context)) is None:
                continue
            value = _VALUE.match(sentence, at[1])
            asked = value["value"].strip(".").lower() if value is not None else ""
            agrees = _agrees(way, before, after, asked, _direction(sentence, at) if near else 0)
            if agrees or (near and agrees is not None):
                yield Advice(agrees=agrees, quoted=" ".join(sentence.split()).lstrip("-* "), source=source)
    for cause in diagnosis.causes:
        for refuted in cause.case.refutations:
            claim = refuted.claim.get(language)
            if (at := _mention(name, claim, context)) is not None and way and _direction(claim, at) == way:
                yield Advice(
                    agrees=False,
                    quoted=f"{claim} {refuted.why.get(language)}"[:LONGEST],
                    source=cause.case,
                    refuted=True,
                )


def _texts(diagnosis: Diagnosis, language: str) -> Iterator[tuple[Case | Finding, str, bool]]:
    """What the fired findings and the first causes ask for; then what is wrong according to them.

    The last value says whether a text is of a finding or of a shown cause, whose words count beside its values.
    """
    shown = {cause.case.id for cause in diagnosis.causes}
    causes = {cause.case.id: cause for cause in (*diagnosis.causes, *diagnosis.differential.causes[:MAX_CAUSES])}
    for finding in diagnosis.findings:
        for fix in finding.fixes:
            yield finding, fix.text.get(language), True
    for id, cause in causes.items():
        belief = diagnosis.differential.belief(cause)
        yield cause.case, cause.case.section("fix", language), id in shown
        for state in belief.origins() if belief is not None else ():
            yield cause.case, f"{state.origin.title.get(language)}: {state.origin.fix.get(language)}", id in shown
    for finding in diagnosis.findings:
        yield finding, finding.title.get(language), True
    for id, cause in causes.items():
        yield cause.case, cause.case.title.get(language), id in shown


def _mention(name: str, sentence: str, context: Context) -> tuple[int, int] | None:
    """Where a sentence names a setting."""
    for match in _NAME.finditer(sentence):
        if setting_called(match["name"], context.evidence.run) == name:
            return match.span()
    worded = wordings("numbers").get(name)
    for found in worded.finditer(sentence) if worded is not None else ():
        if "_" not in sentence[max(0, found.start() - 1) : found.end() + 1]:
            return found.span()
    title = name.replace("_", " ")
    at = sentence.lower().find(title) if name in specs() else -1
    return (at, at + len(title)) if at >= 0 else None


def _direction(sentence: str, at: tuple[int, int]) -> int:
    """1 if a setting is to be raised, -1 if it is to be lowered; 0 if the sentence does not say."""
    words = [
        (abs(m.start() - at[0]), sign)
        for e, sign in (("raises", 1), ("lowers", -1))
        for m in phrases(e).finditer(sentence)
    ]
    return min(words, default=(0, 0))[1]


def _way(before: str | None, after: str) -> int:
    if after in ("raise", "lower"):
        return 1 if after == "raise" else -1
    old, new = _number(before), _number(after)
    return 0 if old is None or new is None else (new > old) - (new < old)


def _agrees(way: int, before: str | None, after: str, asked: str, direction: int) -> bool | None:
    """Whether a change goes the way that is asked for; None if that cannot be told."""
    old, wanted = _number(before), _number(asked)
    if wanted is not None and wanted == old:
        return None
    if wanted is not None and old is not None and way:
        return ((wanted > old) - (wanted < old)) == way
    if asked and asked == after.lower():
        return True
    if asked in ("true", "false") and after.lower() in ("true", "false"):
        return False
    return direction == way if direction and way else None


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
