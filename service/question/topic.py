"""Whether a message follows up on its conversation, names another symptom of the run, or begins anew. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import width
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.signal_kinds import BENIGN
from trainmedic.service.question.intent import Relation
from trainmedic.service.question.vocabulary import phrases

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
    """What a message, or a conversation so far, is about. ``text`` is the message, empty for a conversation."""

    framework: str | None = None
    algorithm: str | None = None
    trouble: frozenset[str] = frozenset()
    text: str = ""

    def joined(self, later: Topic, *, new_symptom: bool = False) -> Topic:
        """This and a later message of the same topic; with a new symptom only the later trouble counts."""
        return Topic(
            framework=later.framework or self.framework,
            algorithm=later.algorithm or self.algorithm,
            trouble=later.trouble if new_symptom else self.trouble | later.trouble,
        )


def topic_of(evidence: Evidence, glossary: Glossary) -> Topic:
    """What a message and its attachments are about."""
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
    )


def relation_of(message: Topic, before: Topic) -> Relation:
    """How a message relates to the conversation before it."""
    text = message.text
    if phrases("new_topic").search(text):
        return Relation.NEW_SYMPTOM if phrases("same_run").search(text) else Relation.NEW_TOPIC
    if message.trouble - before.trouble and phrases("solved").search(text):
        return Relation.NEW_SYMPTOM
    framework = _differ(message.framework, before.framework)
    algorithm = _differ(message.algorithm, before.algorithm)
    compares = phrases("compares").search(text) is not None
    if framework and message.trouble and not compares:
        return Relation.NEW_TOPIC
    if phrases("continues").search(text):
        return Relation.FOLLOW_UP
    if (framework or algorithm) and (message.trouble or (width(text) >= STANDALONE and not compares)):
        return Relation.NEW_TOPIC
    if message.trouble and before.trouble and not message.trouble & before.trouble:
        return Relation.NEW_SYMPTOM
    return Relation.FOLLOW_UP


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other
