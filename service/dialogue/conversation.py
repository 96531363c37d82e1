"""One message read together with its conversation: what still counts, what is supposed, what was left out.

A conversation is cut at a new topic; the words of an earlier complaint no longer count once the same run shows another
one. What is only supposed is never evidence. Earlier turns are read within a budget, so that the fiftieth message costs
no more than the fifth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import language_of
from trainmedic.kb.lazy import regex
from trainmedic.kb.mask import mask
from trainmedic.kb.model.evidence import Evidence, Read
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.model.report import Finding
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.query import MAX_QUESTION
from trainmedic.service.dialogue.said import Attempt, Said, fixed_by
from trainmedic.service.dialogue.statements import Statement, corrects
from trainmedic.service.dialogue.supposition import (
    Supposition,
    Wish,
    changes_in,
    supposition_in,
    wish_in,
    with_counterparts,
)
from trainmedic.service.dialogue.topic import Topic, is_acknowledgement, relation_of, topic_of
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.dialogue.vocabulary import phrases

MAX_TURNS = 8
"""Earlier turns that are read: the first of the topic, those that pasted something, then the latest."""
MAX_CHARACTERS = 400_000
"""Code points of all earlier turns together."""
MAX_FILES = 32
PASTE = 300
"""Code points from which a message is taken for one that pastes something."""
MAX_TOPIC_TEXT = 4_000
"""Code points of a text that are read to tell its topic."""
MAX_LOOKBACK = 24
"""Latest turns that are searched for the beginning of the topic."""
CACHED_TEXTS = 256
LOGGED = frozenset({"log", "metrics", "traceback"})
"""Kinds of text that a run printed."""
TALK = (
    *(Relation.ACKNOWLEDGEMENT, Relation.SOLVED, Relation.EXPLANATION),
    *(Relation.ALTERNATIVE, Relation.PLACE, Relation.QUESTION),
)
"""Messages that add nothing to what is known of the run."""
FEW_WORDS = 4
"""English words that show the language of a message; a package with its version does not."""
_WORD = regex(r"(?<![\w./-])[A-Za-z']{2,20}(?![\w./-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message in its conversation.

    ``evidence`` is what the answer rests on, ``question`` the text of the topic so far. ``turns`` are the earlier
    turns that were read, ``spoken`` all of the topic, and ``unread`` counts those that were not read. ``changes``
    are only supposed, or for a problem that is solved those that solved it. ``made`` are the facts that messages
    after the first say, ``corrects`` whether this one contradicts what was read, ``wish`` a change without a value;
    ``fixed`` is the cause whose fix helped. ``language`` is that of the message itself, empty if it says too little
    to tell or if nothing precedes it.
    """

    evidence: Evidence
    question: str
    turns: tuple[Turn, ...] = ()
    spoken: tuple[Turn, ...] = ()
    relation: Relation = Relation.NEW_TOPIC
    changes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    made: Mapping[str, Statement] = field(default_factory=lambda: MappingProxyType({}))
    wish: Wish | None = None
    corrects: bool = False
    attempts: tuple[Attempt, ...] = ()
    fixed: str = ""
    unstarted: bool = False
    unread: int = 0
    language: Literal["en", "zh", ""] = ""

    own_files: frozenset[str | None] = frozenset((None,))

    def renewed(self, finding: Finding) -> bool:
        """Whether a finding rests on what this very message holds."""
        return any(span.attachment in self.own_files and not span.default for span in finding.evidence)

    @property
    def only_talks(self) -> bool:
        """Whether the message adds nothing to what is known of the run."""
        return self.relation in TALK

    @property
    def says(self) -> Mapping[str, Statement]:
        """The facts that this very message says."""
        return {name: said for name, said in self.made.items() if said.place.attachment is None}


def message_of(
    question: str, attachments: Sequence[Attachment], turns: Sequence[Turn], glossary: Glossary, read: Read
) -> Message:
    """The message with what came before it. ``turns`` are masked; ``question`` and ``attachments`` need not be."""
    if not turns:
        return _first(question, attachments, glossary, read)
    text = mask(question).text
    supposition = supposition_in(text, glossary, follows=True)
    texts = [_facts(turn, number, glossary) for number, turn in enumerate(turns)]
    start, words, before, talk = _current_topic(turns, texts, glossary, read)
    earlier = {attachment for turn in turns for attachment in turn.attachments}
    new_files = [attachment for attachment in attachments if attachment not in earlier]
    relation = _relation(text, new_files, supposition, before, glossary, read)
    if relation is Relation.NEW_TOPIC:
        return _first(question, attachments, glossary, read)
    fresh = bool(new_files) and _is_rerun(text, new_files, read)
    if fresh or relation in (Relation.NEW_SYMPTOM, Relation.PATCHED):
        words = len(turns)
    if fresh:
        turns = [replace(turn, attachments=_without_logs(turn.attachments, read)) for turn in turns]
    numbers = _within_budget(turns, texts, start)
    unread = sum(_says_something(turns[n], texts[n]) for n in range(start, len(turns))) - len(numbers)
    texts = ["" if number in talk else text for number, text in enumerate(texts)]
    everything = (*attachments, *_earlier_attachments(turns, texts, numbers, attachments))
    wish = wish_in(text) if relation is Relation.QUESTION else None
    if relation in TALK:
        supposition = Supposition(changes=MappingProxyType({}), rest="")
    evidence, changes = _evidence(question, everything, supposition, read)
    evidence = _without_stated(evidence, {name_of(number) for number in numbers if number < words})
    own = supposition.rest if supposition is not None and (changes or not supposition.rest) else evidence.question
    said = Said(glossary, read, evidence.run.framework.value if evidence.run.framework is not None else None)
    follow = [(texts[n], turns[n], name_of(n)) for n in range(start + 1, len(turns))]
    later = [said.later(words_of, turn.question, turn.attachments, name) for words_of, turn, name in follow]
    later.append(said.later(own, text, attachments, None))
    made = said.made(later, turns[start:])
    if relation is Relation.SOLVED:
        done = {name: made.pop(name).value for name in list(made) if made[name].done}
        stated = {name: statement.value for name, statement in said.by(text).items()}
        changes = stated or changes_in(text, glossary) or dict(said.supposed(turns[-1])) or done
    factual = {message.name for message in later if said.is_factual(message)}
    searched = [texts[n] for n in numbers if n >= words and (n == words or name_of(n) not in factual)]
    return Message(
        evidence=evidence,
        question=_topic_text(searched, "" if None in factual and words < len(turns) else own),
        turns=tuple(turns[number] for number in numbers),
        spoken=tuple(turns[start:]),
        relation=relation,
        changes=MappingProxyType(changes),
        made=MappingProxyType(made),
        wish=wish,
        corrects=relation is Relation.FOLLOW_UP and corrects(text),
        attempts=said.attempts(later, turns[start:], relation),
        fixed=fixed_by(turns[start:]) if relation is not Relation.STILL_FAILING else "",
        unstarted=relation is Relation.PATCHED,
        own_files=frozenset((None, *(attachment.name for attachment in attachments))),
        unread=unread,
        language=_language(text),
    )


def _relation(
    text: str,
    attachments: Sequence[Attachment],
    supposition: Supposition | None,
    before: Topic,
    glossary: Glossary,
    read: Read,
) -> Relation:
    if not attachments and is_acknowledgement(text):
        return Relation.ACKNOWLEDGEMENT
    if supposition is not None and supposition.alone:
        asked = relation_of(_topic(text, attachments, glossary, read), before)
        return asked if asked in (Relation.ALTERNATIVE, Relation.PLACE) else Relation.FOLLOW_UP
    topic = _topic(supposition.rest if supposition else text, attachments, glossary, read)
    relation = relation_of(topic, before)
    if not attachments or relation in (Relation.NEW_TOPIC, Relation.NEW_SYMPTOM):
        return relation
    if phrases("patched").search(text) and not _logged(attachments, read):
        return Relation.PATCHED
    return relation if relation is Relation.STILL_FAILING else Relation.CHANGED_EVIDENCE


def _logged(attachments: Sequence[Attachment], read: Read) -> bool:
    """Whether the files hold what a run printed."""
    return any(region.kind in LOGGED for region in read("", attachments).regions)


def _is_rerun(text: str, files: Sequence[Attachment], read: Read) -> bool:
    """Whether a message hands over what a later run printed."""
    return phrases("rerun").search(text) is not None and _logged(files, read)


def _without_logs(files: Sequence[Attachment], read: Read) -> tuple[Attachment, ...]:
    return tuple(file for file in files if read("", [file]).run.options or not _logged([file], read))


def _first(question: str, attachments: Sequence[Attachment], glossary: Glossary, read: Read) -> Message:
    """A message that nothing precedes."""
    evidence = read(question, attachments)
    if not attachments and is_acknowledgement(evidence.question):
        return Message(evidence=evidence, question=evidence.question, relation=Relation.ACKNOWLEDGEMENT)
    supposition = supposition_in(evidence.question, glossary, follows=False) if evidence.run.options else None
    changes = with_counterparts(supposition.changes, evidence.run) if supposition else {}
    return Message(evidence=evidence, question=evidence.question, changes=MappingProxyType(changes))


def _evidence(
    question: str, attachments: Sequence[Attachment], supposition: Supposition | None, read: Read
) -> tuple[Evidence, dict[str, str]]:
    """The evidence without what is only supposed, and the changes supposed."""
    if supposition is None:
        return read(question, attachments), {}
    known = read(supposition.rest, attachments)
    whole = read(question, ())  # the receipt speaks of the message as it was sent
    receipt = replace(
        known.receipt,
        inputs=(*whole.receipt.inputs[:1], *known.receipt.inputs[1:]),
        masked=tuple(sorted((Counter(dict(known.receipt.masked)) + Counter(dict(whole.receipt.masked))).items())),
    )
    sources = (*whole.sources[:1], *known.sources[1:])
    evidence = replace(known, question=whole.question, sources=sources, receipt=receipt)
    return evidence, with_counterparts(supposition.changes, known.run)


def _facts(turn: Turn, number: int, glossary: Glossary) -> str:
    """A turn's message without what it only supposed, every other character in its place; empty if it only thanks."""
    if is_acknowledgement(turn.question):
        return ""
    return turn.question if number == 0 else _rest(turn.question, glossary)


@lru_cache(maxsize=CACHED_TEXTS)
def _rest(text: str, glossary: Glossary) -> str:
    supposition = supposition_in(text, glossary, follows=True)
    return text if supposition is None else supposition.rest


def _topic(text: str, attachments: Sequence[Attachment], glossary: Glossary, read: Read) -> Topic:
    starts = [replace(attachment, content=attachment.content[:MAX_TOPIC_TEXT]) for attachment in attachments[:4]]
    return topic_of(read(text[:MAX_TOPIC_TEXT], starts), glossary)


def _current_topic(
    turns: Sequence[Turn], texts: Sequence[str], glossary: Glossary, read: Read
) -> tuple[int, int, Topic, frozenset[int]]:
    """The first turn of the current topic, the first whose words still count, the topic, and turns that only talk."""
    start = words = 0
    talk = set()
    current: Topic | None = None
    for number in range(max(0, len(turns) - MAX_LOOKBACK), len(turns)):
        topic = _topic(texts[number], turns[number].attachments, glossary, read)
        relation = Relation.FOLLOW_UP if current is None else relation_of(topic, current)
        if current is None or relation is Relation.NEW_TOPIC:
            current = topic
            start = words = number if relation is Relation.NEW_TOPIC else 0
            continue
        if relation is Relation.NEW_SYMPTOM:
            words = number
        if relation in TALK and relation is not Relation.SOLVED and not turns[number].attachments:
            talk.add(number)
        current = current.joined(topic, new_symptom=relation is Relation.NEW_SYMPTOM)
    return start, words, current or Topic(), frozenset(talk)


def _language(text: str) -> Literal["en", "zh", ""]:
    """The language of a message; empty for one of names and numbers alone."""
    if language_of(text) == "zh":
        return "zh"
    return "en" if len(_WORD.findall(text[:PASTE])) >= FEW_WORDS else ""


def _within_budget(turns: Sequence[Turn], texts: Sequence[str], start: int) -> list[int]:
    """The numbers of the turns that are read, in order."""
    numbers = [number for number in range(start, len(turns)) if _says_something(turns[number], texts[number])]
    pasting = [n for n in reversed(numbers) if turns[n].attachments or len(texts[n]) >= PASTE]
    by_importance = dict.fromkeys((*numbers[:1], *pasting[: MAX_TURNS // 2], *reversed(numbers)))
    chosen: list[int] = []
    budget = MAX_CHARACTERS
    for number in by_importance:
        files = [str(attachment.content) for attachment in turns[number].attachments]
        size = len(texts[number]) + sum(len(file) - file.count("\n") for file in files)
        if len(chosen) < MAX_TURNS and size <= budget:
            chosen.append(number)
            budget -= size
    return sorted(chosen)


def _says_something(turn: Turn, text: str) -> bool:
    """Whether a turn holds anything but suppositions."""
    return bool(turn.attachments or text.strip())


def name_of(number: int) -> str:
    """The source name of an earlier message (counted from 0)."""
    return f"message-{number + 1}"


def _earlier_attachments(
    turns: Sequence[Turn], texts: Sequence[str], numbers: Sequence[int], present: Sequence[Attachment]
) -> tuple[Attachment, ...]:
    """What earlier turns pasted, as attachments; their messages too, since they hold facts.

    A file of the same name that came later replaces the earlier one: it was corrected.
    """
    latest = {attachment.name: attachment for number in numbers for attachment in turns[number].attachments}
    replaced = {attachment.name for attachment in present}
    files = [attachment for name, attachment in latest.items() if name not in replaced]
    messages = [
        Attachment(name=name_of(number), content=texts[number])
        for number in numbers
        if texts[number].strip() and name_of(number) not in replaced
    ]
    return (*files[-MAX_FILES:], *messages)


def _without_stated(evidence: Evidence, names: set[str]) -> Evidence:
    """The evidence without symptoms that only these earlier messages stated."""
    if not names:
        return evidence
    signals = tuple(s for s in evidence.signals if not (s.stated and s.span.attachment in names))
    return replace(evidence, signals=signals)


def _topic_text(earlier: Sequence[str], message: str) -> str:
    """The earlier messages of the topic and the present one, which always fits; then the first, then the latest."""
    room = max(0, MAX_QUESTION - len(message) - 1)
    parts: list[str] = []
    for number, text in sorted(enumerate(earlier), key=lambda item: (item[0] != 0, -item[0])):
        part = "\n".join(line for line in text.split("\n") if line.strip())[:room]
        if part:
            parts.insert(0 if number == 0 else min(1, len(parts)), part)
            room -= len(part) + 1
    return "\n".join((*parts, message))
