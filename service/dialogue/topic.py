"""Whether a message follows up on its conversation, names another symptom of the run, or begins again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import width
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.logs.signal_kinds import BENIGN
from trainmedic.service.dialogue.intent import Relation
from trainmedic.service.dialogue.vocabulary import phrases

SHORT_REPLY = 120
"""Greatest width of a message that only acknowledges, or asks about the answer above."""
FEW_WORDS = 2
"""Words of a clause that says nothing by itself."""
_CLAUSES = regex(r"[,;!?，。；！？\n]+|\.(?=\s|$)|\bbut\b|但是?|不过")
_NAME = regex(r"[A-Za-z][A-Za-z0-9]*_\w|--[A-Za-z]")
STANDALONE = 50
"""Width from which a message that names another framework or algorithm can be a question by itself."""
TROUBLE: dict[str, tuple[str, ...]] = {
    "memory": ("oom", "cpu_oom", "memory"),
    "communication": ("nccl", "hang", "connection", "throughput"),
    "output": ("never_stops", "repeats", "length_", "gibberish"),
    "start": ("unrecognized", "missing_module", "import", "value_error", "type_error", "key_error", "assertion"),
    "numbers": (
        *("loss", "grad_norm", "kl_", "logits", "logps", "reward", "entropy", "accuracy", "nll", "eval_loss"),
        *("learning_rate", "lr_", "margins", "clip", "advantage"),
    ),
}
"""Kinds of trouble and the prefixes of their signals. Numbers that go wrong go wrong together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """The topic of a message, or of a conversation so far.

    ``text`` is the message, empty for a conversation. ``facts``: it holds options, logged rows, a traceback or
    versions.
    """

    framework: str | None = None
    algorithm: str | None = None
    trouble: frozenset[str] = frozenset()
    text: str = ""
    facts: bool = False

    def joined(self, later: Topic, *, new_symptom: bool = False) -> Topic:
        """This and a later message of the same topic; with a new symptom only the later trouble counts."""
        return Topic(
            framework=later.framework or self.framework,
            algorithm=later.algorithm or self.algorithm,
            trouble=later.trouble if new_symptom else self.trouble | later.trouble,
        )


def topic_of(evidence: Evidence, glossary: Glossary) -> Topic:
    """The topic of a message and its attachments."""
    run = evidence.run
    kinds = {signal.kind for signal in evidence.signals} - BENIGN
    trouble = set()
    for concept_id in glossary.ids(evidence.question):
        concept = glossary.concepts[concept_id]
        if concept.kind in ("symptom", "error"):
            kinds.update(concept.signals)
            if not concept.signals:
                trouble.add(concept.id)
    trouble |= {name for name, prefixes in TROUBLE.items() if any(kind.startswith(prefixes) for kind in kinds)}
    trouble |= {trace.exception for trace in evidence.tracebacks if trace.root}
    return Topic(
        framework=run.framework.value if run.framework is not None else None,
        algorithm=run.algorithm.value if run.algorithm is not None else None,
        trouble=frozenset(trouble),
        text=evidence.question,
        facts=bool(run.options or evidence.rows or evidence.tracebacks or evidence.versions),
    )


def relation_of(message: Topic, before: Topic) -> Relation:
    """How a message relates to the conversation before it."""
    text = message.text
    if phrases("new_topic").search(text) and not phrases("rerun").search(text):
        return Relation.NEW_SYMPTOM if phrases("same_run").search(text) else Relation.NEW_TOPIC
    solved = says_solved(text)
    if solved is not None and message.trouble - before.trouble:
        return Relation.NEW_SYMPTOM
    framework = _differ(message.framework, before.framework)
    algorithm = _differ(message.algorithm, before.algorithm)
    compares = phrases("compares").search(text) is not None
    if framework and message.trouble and not compares:
        return Relation.NEW_TOPIC
    if solved and not phrases("still_failing").search(text):
        return Relation.SOLVED
    if phrases("continues").search(text):
        return _follow_up(message)
    if (framework or algorithm) and (message.trouble or (width(text) >= STANDALONE and not compares)):
        return Relation.NEW_TOPIC
    if message.trouble and before.trouble and not message.trouble & before.trouble:
        return Relation.NEW_SYMPTOM
    if solved is False and not message.trouble and not phrases("still_failing").search(text):
        return Relation.NEW_SYMPTOM
    return _follow_up(message)


def _follow_up(message: Topic) -> Relation:
    """What a message of the same topic and symptom is."""
    text = message.text
    if phrases("asks").search(text) and phrases("asks_where").search(text) and not message.facts:
        return Relation.PLACE
    if phrases("still_failing").search(text):
        return Relation.STILL_FAILING
    if width(text) > SHORT_REPLY or message.facts:
        return Relation.FOLLOW_UP
    if phrases("asks_alternative", "asks_others").search(text):
        return Relation.ALTERNATIVE
    asked = Relation.EXPLANATION if phrases("asks_why").search(text) else None
    if asked is Relation.EXPLANATION and _NAME.search(text) and phrases("general_question").search(text):
        return Relation.QUESTION  # about an option, not about the answer
    if asked is None and phrases("asks").search(text) and not message.trouble:
        return Relation.QUESTION
    return asked or Relation.FOLLOW_UP


def is_acknowledgement(text: str) -> bool:
    """Whether a message only thanks, greets or agrees."""
    if width(text) > SHORT_REPLY or phrases("thanks").search(text) is None:
        return False
    return not any(letter.isalnum() for letter in phrases("thanks", "polite").sub(" ", text))


def says_solved(text: str) -> bool | None:
    """Whether a message says that the problem is over and nothing else; None if it does not say so."""
    clauses = [clause.strip() for clause in _CLAUSES.split(text) if clause.strip()]
    over = [phrases("solved").search(clause) is not None for clause in clauses]
    if not any(over):
        return None
    return all(
        solved
        or phrases("recovering").search(clause)
        or is_acknowledgement(clause)
        or phrases("reported_change").search(clause)
        or _empty(clause)
        for clause, solved in zip(clauses, over, strict=True)
    )


def _empty(clause: str) -> bool:
    return len(clause.split()) <= FEW_WORDS and width(clause) <= FEW_WORDS * 8 and not any(c.isdigit() for c in clause)


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other
