"""One message read together with the conversation before it: what still counts, what is supposed, what is left out.

A conversation is cut where another topic begins; words of an earlier complaint count no more once the same run shows
another one. What is only supposed is never evidence. Earlier turns are read within a budget, so that the fiftieth
message costs no more than the fifth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import language_of
from trainmedic.kb.mask import mask
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse import parse
from trainmedic.service.history import Turn
from trainmedic.service.question.intent import Gist, Relation, Supposed, completed, gist_of, relation_of, suppose
from trainmedic.service.question.query import MAX_QUESTION

MAX_TURNS = 8
"""Earlier turns that are read: the first of the topic, those that pasted something, then the latest."""
MAX_CHARACTERS = 400_000
"""Code points of all earlier turns together."""
MAX_FILES = 32
PASTED = 300
"""Code points from which a message is taken for one that pastes something."""
MAX_GIST = 4_000
"""Code points of a text that are read to tell what it is about."""
MAX_LOOKED = 24
"""Latest turns that are looked through for where the topic began."""
KEPT_GISTS = 256
FEW_WORDS = 4
"""English words that show the language of a message; a package with its version does not."""
_WORD = re.compile(r"(?<![\w./-])[A-Za-z']{2,20}(?![\w./-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """``evidence`` is what the answer rests on; ``question`` is what is searched for.

    ``turns`` are the earlier turns that were read, ``left_out`` how many of the topic were not; ``supposed`` holds the
    changes that the message supposes, none where there is no configuration to change. ``language`` is that of the
    message itself where it says enough to tell, and others come before it.
    """

    evidence: Evidence
    question: str
    turns: tuple[Turn, ...] = ()
    supposed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    left_out: int = 0
    language: str = ""


def read(
    question: str, attachments: Sequence[Attachment], turns: Sequence[Turn], glossary: Glossary
) -> Read:  # fmt: skip
    """The message with what came before it. ``turns`` are masked; ``question`` and ``attachments`` need not be."""
    if not turns:
        evidence = parse(question, attachments)
        supposed = suppose(evidence.question, glossary, follows=False) if evidence.run.options else None
        changes = completed(supposed.changes, evidence.run) if supposed else {}
        return Read(evidence=evidence, question=evidence.question, supposed=MappingProxyType(changes))
    said = mask(question).text
    supposed = suppose(said, glossary, follows=True)
    texts = [_facts(turn, number, glossary) for number, turn in enumerate(turns)]
    start, words, before = _topic(turns, texts, glossary)
    relation = Relation.SAME
    if supposed is None or not supposed.alone:
        own = gist(supposed.rest if supposed else said, tuple(attachments), glossary)
        relation = relation_of(own, before)
    if relation is Relation.NEW:
        return read(question, attachments, (), glossary)
    if relation is Relation.SYMPTOM:
        words = len(turns)
    numbers = _within(turns, texts, start)
    left_out = sum(_says(turns[number], texts[number]) for number in range(start, len(turns))) - len(numbers)
    given = (*attachments, *remembered(turns, texts, numbers, attachments))
    evidence, changes = _evidence(question, given, supposed)
    evidence = _without_words(evidence, {name_of(number) for number in numbers if number < words})
    asked = [texts[number] for number in numbers if number >= words]
    mine = supposed.rest if supposed is not None and changes else evidence.question
    return Read(
        evidence=evidence,
        question=_joined(asked, mine),
        turns=tuple(turns[number] for number in numbers),
        supposed=MappingProxyType(changes),
        left_out=left_out,
        language=_language(said),
    )


def _evidence(
    question: str, given: Sequence[Attachment], supposed: Supposed | None
) -> tuple[Evidence, dict[str, str]]:  # fmt: skip
    """What is known, and the changes supposed; what is supposed is not known."""
    if supposed is None:
        return parse(question, given), {}
    known = parse(supposed.rest, given)
    if not known.run.options:
        return parse(question, given), {}  # nothing that could be changed: an ordinary question
    asked = parse(question)
    receipt = replace(
        known.receipt,
        inputs=(*asked.receipt.inputs[:1], *known.receipt.inputs[1:]),
        masked=_added(known.receipt.masked, asked.receipt.masked),
    )
    evidence = replace(
        known, question=asked.question, sources=(*asked.sources[:1], *known.sources[1:]), receipt=receipt
    )  # fmt: skip
    return evidence, completed(supposed.changes, known.run)


def _added(one: Sequence[tuple[str, int]], two: Sequence[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    total = dict(one)
    for kind, count in two:
        total[kind] = total.get(kind, 0) + count
    return tuple(sorted(total.items()))


def _facts(turn: Turn, number: int, glossary: Glossary) -> str:
    """A turn's message without what it only supposed; blanks keep every place where it was."""
    if number == 0:
        return turn.question
    return _rest(turn.question, glossary)


@lru_cache(maxsize=KEPT_GISTS)
def _rest(text: str, glossary: Glossary) -> str:
    supposed = suppose(text, glossary, follows=True)
    return text if supposed is None else supposed.rest


def gist(text: str, attachments: tuple[Attachment, ...], glossary: Glossary) -> Gist:
    """What a message is about; kept for the next time it is asked of the same text."""
    pasted = tuple((each.name, _start(each)) for each in attachments[:4])
    return _gist(text[:MAX_GIST], pasted, glossary)


def _start(attachment: Attachment) -> str | bytes:
    return attachment.content[:MAX_GIST]


@lru_cache(maxsize=KEPT_GISTS)
def _gist(text: str, pasted: tuple[tuple[str, str | bytes], ...], glossary: Glossary) -> Gist:
    evidence = parse(text, [Attachment(name=name, content=content) for name, content in pasted])
    return gist_of(evidence, glossary)


def _topic(turns: Sequence[Turn], texts: Sequence[str], glossary: Glossary) -> tuple[int, int, Gist]:
    """The first turn of the topic that the conversation is at, the first whose words still count, and its gist."""
    start = words = 0
    before: Gist | None = None
    for number in range(max(0, len(turns) - MAX_LOOKED), len(turns)):
        own = gist(texts[number], turns[number].attachments, glossary)
        relation = Relation.SAME if before is None else relation_of(own, before)
        if before is None or relation is Relation.NEW:
            before = own
            start = words = number if relation is Relation.NEW else 0
            continue
        if relation is Relation.SYMPTOM:
            words = number
        before = before.joined(own, replaces=relation is Relation.SYMPTOM)
    return start, words, before or Gist()


def _language(said: str) -> str:
    """The language of a message; of names and numbers alone, none."""
    if language_of(said) == "zh":
        return "zh"
    return "en" if len(_WORD.findall(said[:PASTED])) >= FEW_WORDS else ""


def _within(turns: Sequence[Turn], texts: Sequence[str], start: int) -> list[int]:
    """The turns that are read, in their order."""
    numbers = [number for number in range(start, len(turns)) if _says(turns[number], texts[number])]
    first = numbers[:1]
    pasting = [n for n in reversed(numbers) if turns[n].attachments or len(texts[n]) >= PASTED]
    latest = list(reversed(numbers))
    chosen: list[int] = []
    left = MAX_CHARACTERS
    half = MAX_TURNS // 2
    for number in dict.fromkeys((*first, *pasting[:half], *latest)):
        size = len(texts[number]) + sum(len(each.content) for each in turns[number].attachments)
        if len(chosen) < MAX_TURNS and size <= left:
            chosen.append(number)
            left -= size
    return sorted(chosen)


def _says(turn: Turn, text: str) -> bool:
    """Whether a turn holds anything but suppositions."""
    return bool(turn.attachments or text.strip())


def name_of(number: int) -> str:
    """The name under which an earlier message (from 0) stands among the sources."""
    return f"message-{number + 1}"


def remembered(
    turns: Sequence[Turn], texts: Sequence[str], numbers: Sequence[int], given: Sequence[Attachment] = ()
) -> tuple[Attachment, ...]:
    """What earlier turns pasted, as attachments; their messages too, since facts stand in them.

    A file that is ``given`` now, or was pasted again later, replaces the earlier one of its name: it was corrected.
    """
    latest = {attachment.name: attachment for number in numbers for attachment in turns[number].attachments}
    now = {each.name for each in given}
    pasted = [attachment for name, attachment in latest.items() if name not in now]
    said = [
        Attachment(name=name_of(number), content=texts[number])
        for number in numbers
        if texts[number].strip() and name_of(number) not in now
    ]
    return (*pasted[-MAX_FILES:], *said)


def _without_words(evidence: Evidence, names: set[str]) -> Evidence:
    """The evidence without what earlier messages said goes wrong, where that is asked about no more."""
    if not names:
        return evidence
    kept = tuple(s for s in evidence.signals if not (s.stated and s.span.attachment in names))
    return replace(evidence, signals=kept)


def _joined(asked: Sequence[str], now: str) -> str:
    """What is searched for: the earlier messages of the topic and the present one, which never falls out."""
    room = max(0, MAX_QUESTION - len(now) - 1)
    kept: list[str] = []
    for number, text in sorted(enumerate(asked), key=lambda each: (each[0] != 0, -each[0])):
        part = "\n".join(line for line in text.split("\n") if line.strip())[:room]
        if part:
            kept.insert(0 if number == 0 else min(1, len(kept)), part)
            room -= len(part) + 1
    return "\n".join((*kept, now))
