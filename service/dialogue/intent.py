"""The subject and the intent of a question, read from its words and the evidence. Pure.

Whether it is about training language models at all: words alone mislead ("weight loss", a pod's "connection refused"),
so recognised facts count most, a symptom of training next, a single word of ours least; and a word of another field
cancels what mere words gave. Serving, converting and other kinds of learning share our words ("gguf", "vllm", "slow",
"out of memory") and are out of scope.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from trainmedic.kb.glossary.negated import negated_concepts
from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.language import language_of, width
from trainmedic.kb.lazy import regex
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.negation import RUN
from trainmedic.kb.parse.logs.signal_kinds import BENIGN, NON_FINITE
from trainmedic.kb.parse.source import Piece
from trainmedic.kb.parse.text.segment import segment
from trainmedic.service.dialogue.query import MAX_QUESTION, evidence_facts
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
    ALTERNATIVE = "alternative"  # asks whether another cause was considered
    PLACE = "place"  # asks where an edit belongs
    QUESTION = "question"  # any other, which adds no fact
    STILL_FAILING = "still failing"  # although the fix was tried
    CHANGED_EVIDENCE = "changed evidence"  # new or corrected files
    PATCHED = "patched"  # the files with the fix, whose run is yet to come
    NEW_SYMPTOM = "new symptom"  # of the same run
    NEW_TOPIC = "new topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """The subject of a question and the kind of answer it asks for.

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


# What is searched for

FIRST_SIGNALS = 2
"""Signals that are put into words: those after the first two mostly follow from them."""
MAX_MESSAGE = 200
"""Code points of an exception's message."""
LISTINGS = frozenset({"versions", "yaml", "json", "toml", "ini", "command", "dump", "python"})
"""Kinds of text that hold no words of the user's own."""
BLOCK = 4
"""Lines from which on a listing is a block of its own and not part of a sentence."""
# Ray lists these under every worker that died, whatever the cause: they say nothing about this run.
_RAY_GUESSES = regex(
    r"(?:Some common causes include|There are some potential root causes)[:.][^\n]{0,400}?unexpected errors?"
)


def query_text(question: str, evidence: Evidence, glossary: Glossary) -> str:
    """The question without pasted blocks and Ray's guesses; if it names no symptom, with the first signals of the log
    and the root exception added."""
    question = _RAY_GUESSES.sub(" ", _without_listings(question))
    if any(glossary.concepts[concept].kind == "symptom" for concept in glossary.ids(question)):
        return question
    signals = [signal for signal in evidence.signals if not signal.stated and signal.kind not in BENIGN]
    words = list(dict.fromkeys(signal.kind.replace("_", " ") for signal in signals))[:FIRST_SIGNALS]
    root = next((trace for trace in evidence.tracebacks if trace.root), None)
    if root is not None:
        words.append(f"{root.exception}: {root.message[:MAX_MESSAGE]}")
    return "\n".join(part for part in (question, *words) if part.strip())


def _without_listings(question: str) -> str:
    """The question without listings and configurations: rules read them, and no one asks about their words.

    A line or two of options may be what a sentence is about and stays; so does everything if nothing would be left.
    """
    lines = question.split("\n")
    if len(lines) == 1:
        return question  # most questions, and nothing would be left of them: segmenting is not worth its time
    for block in segment(Piece(source=None, text=question)):
        count = len(block.piece.text.rstrip().split("\n"))
        if block.kind in LISTINGS and (count >= BLOCK or block.kind == "versions"):
            first = block.piece.line - 1
            lines[first : first + count] = [""] * count
    rest = "\n".join(lines)
    return rest if rest.strip() else question


# Whether it is about training

RECOGNISED = 3.0
"""A framework, an algorithm, an option, a logged row."""
SYMPTOM = 1.5
"""A signal that only training shows, even if it was only stated."""
OWN_RUN = 1.0
"""Trouble with someone's own training, in words too general for a concept."""
MOST_STATED = 3.0
"""The most that words alone can add up to."""
BY_KIND = {
    "algorithm": 1.5,
    "framework": 1.5,
    "symptom": 1.5,
    "component": 0.8,
    "metric": 0.7,
    "setting": 0.7,
    "model": 0.7,
    "error": 0.5,
    "hardware": 0.5,
    "concept": 0.5,
    "data": 0.4,
}
"""Weight that one concept of the question adds, by its kind in the glossary."""
EVERYWHERE = frozenset(
    {"connection_error", "file_not_found", "missing_module", "import_error", "value_error", "type_error"}
    | {"key_error", "assertion", "not_implemented", "hang", "throughput_drop", "unrecognized_argument"}
)
"""Signals that any program shows."""
BAD_OUTPUT = frozenset({"garbage-output", "repetition", "never-stops", "token-not-output", "unchanged-model"})
"""Concepts of the glossary: the model's answers are bad, which may be the training's doing."""


def domain_score(question: str, concepts: Mapping[str, str], evidence: Evidence) -> float:
    """How much speaks for our domain: 0 if nothing does, `RECOGNISED` or more if it is certain.

    ``concepts`` maps the glossary concepts of the question to their kinds.
    """
    run = evidence.run
    signals = {signal.kind for signal in evidence.signals} - EVERYWHERE
    training_only = bool(signals & NON_FINITE) or any(kind.startswith(("grad_norm", "nccl", "kl_")) for kind in signals)
    recognised = sum(map(bool, (run.framework, run.algorithm, run.options, evidence.rows)))
    if recognised:
        return RECOGNISED * recognised
    if not training_only and phrases("other_field").search(question):
        return 0.0
    stated = sum(BY_KIND.get(kind, 0.0) for kind in concepts.values())
    stated += SYMPTOM * len(signals) + (0.5 if run.model_family else 0.0) + (0.5 if evidence.tracebacks else 0.0)
    if phrases("own_run").search(question) and phrases("troubled").search(question):
        stated += OWN_RUN
    return min(stated, MOST_STATED)


def is_out_of_scope(question: str, concepts: Mapping[str, str], evidence: Evidence) -> bool:
    """Whether the question is about another tool or task, and nothing recognised or stated is about training."""
    run = evidence.run
    if run.framework or run.algorithm or run.options or evidence.rows:
        return False
    if phrases("other_learning").search(question):
        return True
    if phrases("how_to").search(question) and not evidence.tracebacks and not evidence.signals:
        return True
    if not phrases("beside_training").search(question) or phrases("trains").search(question):
        return False
    return not (phrases("after_training").search(question) and concepts.keys() & BAD_OUTPUT)
