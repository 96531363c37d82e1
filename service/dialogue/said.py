"""Facts about the run from follow-up messages, and the remedies tried with their outcomes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.evidence import Read
from trainmedic.kb.model.place import Attachment
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.statements import IT, MAX_REPORT, Statement, statements_in, stretch
from trainmedic.service.dialogue.supposition import changes_in, supposition_in
from trainmedic.service.dialogue.topic import says_solved
from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.dialogue.vocabulary import phrases


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Something that was tried without success: the fix of the first of ``causes``, or what concerns ``names``."""

    causes: tuple[str, ...]
    names: frozenset[str]


def fixed_by(turns: Sequence[Turn]) -> str:
    """The cause of the last message that said that the problem is solved; empty if it fails again."""
    fixed = ""
    for turn in turns[1:]:
        if phrases("still_failing").search(turn.question):
            fixed = ""
        elif says_solved(turn.question) and turn.causes:
            fixed = turn.causes[0]
    return fixed


class Later(NamedTuple):
    """A message after the first: what of it counts, all of it, its files, its name, and the facts that it says."""

    text: str
    question: str
    files: Sequence[Attachment]
    name: str | None
    facts: Mapping[str, Statement]


class Said(NamedTuple):
    """The statements about the run in the messages after the first."""

    glossary: Glossary
    read: Read
    framework: str | None

    def by(self, text: str, name: str | None = None) -> dict[str, Statement]:
        return statements_in(text, self.framework, self.glossary, self.read, name)

    def later(self, text: str, question: str, files: Sequence[Attachment], name: str | None) -> Later:
        return Later(text, question, files, name, self.by(text, name))

    def made(self, later: Sequence[Later], turns: Sequence[Turn]) -> dict[str, Statement]:
        """The facts that they say, without what was said before the latest configuration."""
        made: dict[str, Statement] = {}
        for turn, message in zip(turns, later, strict=True):
            if message.files and self.read("", message.files).run.options:
                made = {}
            else:
                said = dict(message.facts)
                if IT in said:
                    said[IT] = replace(said[IT], about=turn.causes[:1])
                made |= self._it(turn, message) | said
        return made

    def is_factual(self, message: Later) -> bool:
        """Whether a message is about facts of the run and no new symptom: then its words are not searched for."""
        if not message.facts or len(message.text) > MAX_REPORT:
            return False
        if phrases("still_failing").search(message.text):
            return True
        concepts = self.glossary.ids(message.text)
        return all(self.glossary.concepts[concept].kind != "symptom" for concept in concepts)

    def _it(self, turn: Turn, message: Later) -> dict[str, Statement]:
        """What "I tried that" is after a message that only supposed something."""
        if not phrases("still_failing").search(message.question):
            return {}
        place = stretch(message.question, 0, len(message.question), message.name)
        return {name: Statement(value=value, place=place) for name, value in self.supposed(turn).items()}

    def supposed(self, turn: Turn) -> Mapping[str, str]:
        supposition = supposition_in(turn.question, self.glossary, follows=True)
        return supposition.changes if supposition is not None and supposition.alone else {}

    def attempts(self, later: Sequence[Later], turns: Sequence[Turn], relation: Relation) -> tuple[Attempt, ...]:
        """The changes that messages said to be tried without success."""
        attempts = []
        for number, (turn, message) in enumerate(zip(turns, later, strict=True), start=1):
            last = number == len(later)
            failing = phrases("still_failing").search(message.question) is not None
            if relation is not Relation.STILL_FAILING if last else not failing:
                continue
            names = self._names(message.question) or frozenset(self.supposed(turn))
            followed = bool(names) or phrases("followed").search(message.question) is not None
            if turn.causes and (turn.verdict == "answered" or (turn.verdict == "need_input" and followed)):
                attempts.append(Attempt(causes=turn.causes, names=names))
        return tuple(attempts)

    def _names(self, text: str) -> frozenset[str]:
        """The settings and packages that a message names."""
        remedies = self.read(text, ()).remedies
        named = {name for remedy in remedies for name in remedy.settings}
        named |= changes_in(text[:MAX_REPORT], self.glossary).keys()
        if named:
            return frozenset(named)
        concepts = (self.glossary.concepts[concept] for concept in self.glossary.ids(text[:MAX_REPORT]))
        return frozenset(name for concept in concepts if concept.kind == "setting" for name in concept.settings[:1])
