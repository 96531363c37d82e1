"""What a question is about and what it asks for, read from its words and the evidence. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.glossary.negated import negated_concepts
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import language_of, width
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.negation import RUN
from trainmedic.kb.parse.logs.signal_kinds import BENIGN
from trainmedic.service.dialogue.domain import BAD_OUTPUT, domain_score, is_out_of_scope
from trainmedic.service.dialogue.query import MAX_QUESTION, evidence_facts
from trainmedic.service.dialogue.query_text import query_text
from trainmedic.service.dialogue.vocabulary import phrases

SHORT = 60
"""Width of a question that leaves nearly everything open."""
FEW = 3
"""The most concepts that such a question names."""
NAMES = frozenset({"framework", "algorithm", "symptom", "metric", "model"})
"""Kinds of concepts that say what is run and what is seen, but do not tell one cause from another."""
_NONE: Mapping[str, str] = MappingProxyType({})


class Relation(StrEnum):
    """How a message relates to the conversation before it."""

    FOLLOW_UP = "follow-up"
    ACKNOWLEDGEMENT = "acknowledgement"  # thanks, a greeting: nothing is asked
    SOLVED = "solved"
    EXPLANATION = "explanation"  # of the previous answer
    STILL_FAILING = "still failing"  # although the fix was tried
    CHANGED_EVIDENCE = "changed evidence"  # new or corrected files
    PATCHED = "patched"  # the files with the fix, whose run is yet to come
    NEW_SYMPTOM = "new symptom"  # of the same run
    NEW_TOPIC = "new topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What a question is about and what it asks for.

    ``text`` is what is searched for, ``language`` the language to answer in (``en`` or ``zh``). ``concepts`` maps the
    concepts of the glossary that the text names to their kinds, ``negated`` are those that it says are absent.
    ``symptoms`` are the failure signals, seen or stated. ``changes`` are settings and versions that the message only
    supposes. ``width`` is the length of the text with a Chinese character as two.
    """

    text: str = ""
    language: Literal["en", "zh"] = "en"
    relation: Relation = Relation.FOLLOW_UP
    changes: Mapping[str, str] = field(default_factory=lambda: _NONE)
    concepts: Mapping[str, str] = field(default_factory=lambda: _NONE)
    negated: frozenset[str] = frozenset()
    symptoms: frozenset[str] = frozenset()
    domain_score: float = 0.0
    out_of_scope: bool = False
    bad_output: bool = False  # the answers of the model are complained about
    complains: bool = True
    asks_if_normal: bool = False
    says_failed: bool = False
    names_stage: bool = False  # says what kind of training it is, or what is done after it
    requests: bool = False  # asks for a feature, a plan or instructions
    general: bool = False  # asks what something is or does
    vague: bool = False  # says so little that nearly everything is open
    bare: bool = False  # names a framework, an algorithm and a symptom, and comes without any paste
    width: int = 0


def understand(
    question: str,
    evidence: Evidence,
    glossary: Glossary,
    *,
    language: Literal["en", "zh", ""] = "",
    relation: Relation = Relation.FOLLOW_UP,
    changes: Mapping[str, str] = _NONE,
) -> Intent:
    """The intent of a question, given the evidence that came with it and before it.

    ``language`` overrides the one that the question itself shows.
    """
    text = query_text(question, evidence, glossary)
    core = text.strip()[:MAX_QUESTION]
    concepts = {concept: glossary.concepts[concept].kind for concept in glossary.ids(core)}
    symptoms = frozenset(signal.kind for signal in evidence.signals) - BENIGN
    return Intent(
        text=text,
        language=language or _language(question, text, core, evidence),
        relation=relation,
        changes=changes,
        concepts=MappingProxyType(concepts),
        negated=negated_concepts(core, glossary),
        symptoms=symptoms,
        domain_score=domain_score(core, concepts, evidence),
        out_of_scope=is_out_of_scope(core, concepts, evidence),
        bad_output=bool(concepts.keys() & BAD_OUTPUT),
        complains=bool(symptoms or evidence.tracebacks or "symptom" in concepts.values()),
        asks_if_normal=asks_if_normal(core),
        says_failed=says_failed(core),
        names_stage=phrases("names_stage").search(core) is not None,
        requests=phrases("requests").search(core) is not None,
        general=phrases("general_question").search(core) is not None,
        vague=is_vague(core, len(concepts)),
        bare=is_bare(core, concepts.values(), evidence),
        width=width(core),
    )


def _language(question: str, text: str, core: str, evidence: Evidence) -> Literal["en", "zh"]:
    if text != question and question.strip():
        return language_of(question)  # the words that were added are English
    return language_of(core or evidence_facts(evidence))


def asks_if_normal(question: str) -> bool:
    """Whether the question is whether something is normal."""
    return phrases("asks_if_normal").search(question) is not None


def says_failed(question: str) -> bool:
    """Whether the question says that something failed, and not that nothing did."""
    return any(not RUN.precedes(question, match.start()) for match in phrases("says_failed").finditer(question))


def is_vague(question: str, concepts: int) -> bool:
    """Whether a question says so little that asking back is the only honest answer."""
    return width(question) <= SHORT and concepts <= FEW


def is_bare(question: str, kinds: Collection[str], evidence: Evidence) -> bool:
    """Whether a short question names only a framework, an algorithm and a symptom, and nothing was pasted.

    Such a question ("openrlhf kto loss is nan") fits every cause of that symptom there, known and unknown ones.
    """
    pasted = evidence.run.options or evidence.rows or evidence.tracebacks or evidence.versions
    only_names = "symptom" in kinds and NAMES.issuperset(kinds)
    return only_names and not pasted and is_vague(question, len(kinds))
