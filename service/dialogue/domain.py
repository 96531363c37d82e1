"""Whether a question is about training language models at all. Pure.

Words alone mislead ("weight loss", a pod's "connection refused"), so recognised facts count most, a symptom of training
next, a single word of ours least; and a word of another field cancels what mere words gave. Serving, converting and
other kinds of learning share our words ("gguf", "vllm", "slow", "out of memory") and are out of scope.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.parse.logs.signal_kinds import NON_FINITE
from trainmedic.service.dialogue.vocabulary import phrases

RECOGNISED = 3.0
"""A framework, an algorithm, an option, a logged row."""
SYMPTOM = 1.5
"""A signal that only training shows, even if it was only stated."""
OWN_RUN = 1.0
"""Trouble with somebody's own training, in words too general for a concept."""
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
"""What one concept of the question adds, by its kind in the glossary."""
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
