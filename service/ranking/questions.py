"""The next questions: which missing facts are expected to tell most about the cause. Pure.

Each candidate predicts an answer to a question; the gain is the mutual information, in bits, between the answer and the
differential. A fact that was given is never asked for, nor one under whose answers the same cause stays first by far.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from trainmedic.kb.engine.asks import missing as asked
from trainmedic.kb.engine.facts import Facts
from trainmedic.kb.engine.graphics_cards import cards
from trainmedic.kb.engine.mechanism import missing_facts
from trainmedic.kb.frameworks.profiles import profiles, select
from trainmedic.kb.lazy import regex
from trainmedic.kb.messages import load_messages
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence
from trainmedic.kb.model.report import Missing, Text
from trainmedic.service.dialogue.query import MAX_QUESTION
from trainmedic.service.ranking.features import LOGS, Context
from trainmedic.service.ranking.inference import Cause, Differential

messages = load_messages("trainmedic.service.ranking")
MAX_QUESTIONS = 4
CONSIDERED = 8
"""Causes that a question is to tell apart; the others count as something else."""
LEAST_GAIN = 0.05
"""Bits below which a fact is not worth a question."""
DECISIVE = 1.0
"""Bits of the stacks that are missing beside those that were sent: they tell the mechanisms of a hang apart."""
FIRST = 8.0
"""Bits of the stacks of a hang of which none was sent: without them each cause of a hang looks like the others."""
_WHO_WAITS = Text(en="Which rank the others wait for", zh="其他 rank 在等哪个 rank")
PREDICTED, BACKGROUND = 0.9, 0.3
"""How likely a fact is as a cause predicts it: under this cause, and under any other."""
NOTHING_LIKELY = 0.05
"""Probability of the first cause below which every general question is worth asking."""
WHOLE = 1.25
"""A whole configuration or log against the best single fact in it."""
WHOLE_FACTS = ("config", "log")
CONFIGS = frozenset({"command", "yaml", "json", "toml", "ini", "hydra"})
"""Kinds of text that configure a run, of whatever program."""
SHORT = 150
"""Width of a question below which the framework, the algorithm and the model are asked for by themselves."""
GENERIC = (*WHOLE_FACTS, "framework", "algorithm", "model")
SAID_BY = {"weights_dtype": ("fp16", "bf16"), "fsdp": ("zero_stage",)}
"""A setting → others that say as much of the run."""
_SIZE = regex(r"(?<![\w.])\d{1,3}(?:\.\d)?\s?[bB](?![\w])")
NAMED_BY = {
    "framework": frozenset({"framework"}),
    "algorithm": frozenset({"algorithm"}),
    "stage": frozenset({"algorithm"}),
    "model": frozenset({"model"}),
}
"""A fact → the kinds of concepts that say it when the question names one."""


def next_questions(differential: Differential, context: Context) -> tuple[Missing, ...]:
    """The facts to ask for, the most informative first, each once."""
    causes = differential.causes[:CONSIDERED]
    chances = [cause.probability for cause in causes]
    other = max(0.0, 1.0 - sum(chances))
    evidence = context.evidence
    gains: dict[str, tuple[float, Missing]] = {}
    for fact, (question, predicted_by) in _specific(differential, causes, context).items():
        if known(fact, context) or _pointless(fact, evidence):
            continue
        gain = _binary_gain(chances, other, predicted_by)
        if gain >= LEAST_GAIN:
            gains[fact] = (gain, question)
    asked_for = (item for finding in context.report.findings for item in finding.missing)
    gains.update((item.fact, (DECISIVE, item)) for item in asked_for if item.fact.startswith("stacks:"))
    whole = WHOLE * max((gain for gain, _ in gains.values()), default=0.0)
    likeliest = max(chances, default=0.0)
    told_little = context.intent.vague or context.intent.bare or context.intent.width < SHORT
    for fact in GENERIC if told_little else WHOLE_FACTS:
        if known(fact, context) or _pointless(fact, evidence):
            continue
        open_question = fact in WHOLE_FACTS or context.intent.vague or (likeliest < NOTHING_LIKELY and fact != "model")
        gain = max(_gain_of_words(fact, causes, other), whole if fact in WHOLE_FACTS else 0.0)
        if open_question:
            gain = max(gain, LEAST_GAIN)
        if gain >= LEAST_GAIN and gain > gains.get(fact, (0.0,))[0]:
            gains[fact] = (gain, _generic(fact))
    if context.symptoms & {"hang", "nccl_timeout"} and not context.facts.dumps.threads and not _ranks_told(context):
        of_ranks = {fact: item for fact, (_, item) in gains.items() if fact.startswith("stacks:")}
        of_ranks = of_ranks or {"stacks:*": asked("stacks:*", _WHO_WAITS)}
        gains.update((fact, (FIRST, item)) for fact, item in of_ranks.items())
    if not evidence.run.options:
        gains = {fact: item for fact, item in gains.items() if not fact.startswith(("setting:", "option:"))}
    if "model" in gains or known("model", context):
        gains.pop("setting:model", None)
    ordered = sorted(gains.items(), key=lambda item: (-round(item[1][0], 9), item[0]))
    return tuple(question for _, (_, question) in ordered[:MAX_QUESTIONS])


def _ranks_told(context: Context) -> bool:
    """Whether something else than stacks shows what holds the ranks apart."""
    verdict = context.facts.verdict
    return verdict is not None and verdict.sure and not verdict.wanted


def deciding_facts(cause: Cause, differential: Differential, context: Context) -> tuple[Missing, ...]:
    """The facts that this cause predicts and that are not known yet, each once."""
    facts = context.facts
    predicted = {missing.fact: missing for missing in _asked_by(cause, differential, facts)}
    return tuple(
        missing
        for fact, missing in predicted.items()
        if not known(fact, context) and not _pointless(fact, context.evidence)
    )


def _specific(
    differential: Differential, causes: Sequence[Cause], context: Context
) -> Mapping[str, tuple[Missing, set[int]]]:
    """What some causes predict: facts that rules lack, versions, conditions of origins, a case's own questions; each
    with the causes that predict it, by their place among those considered."""
    questions: dict[str, tuple[Missing, set[int]]] = {}
    for number, cause in enumerate(causes):
        for missing in _asked_by(cause, differential, context.facts):
            questions.setdefault(missing.fact, (missing, set()))[1].add(number)
    return questions


def _asked_by(cause: Cause, differential: Differential, facts: Facts) -> Iterator[Missing]:
    for finding in cause.findings:
        yield from finding.missing
    for question in cause.case.ask:
        yield Missing(fact=question.fact, why=question.why, ask=question.ask)
    for package in cause.case.affected:
        yield asked(f"version:{package}", cause.case.title)
    belief = differential.belief(cause)
    state = belief.state(cause) if belief is not None else None
    if state is not None and state.value is None:
        for fact in missing_facts(state.origin, facts):
            yield asked(fact, state.origin.title)


def _binary_gain(chances: Sequence[float], other: float, predicted_by: set[int]) -> float:
    likelihoods = [PREDICTED if number in predicted_by else BACKGROUND for number in range(len(chances))]
    weights, likelihoods = [*chances, other], [*likelihoods, BACKGROUND]
    total = sum(weights) or 1.0
    yes = sum(weight * likelihood for weight, likelihood in zip(weights, likelihoods, strict=True)) / total
    noise = sum(w * _bits(likelihood) for w, likelihood in zip(weights, likelihoods, strict=True)) / total
    return max(0.0, _bits(yes) - noise)


def _bits(p: float) -> float:
    return 0.0 if p <= 0.0 or p >= 1.0 else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def _gain_of_words(fact: str, causes: Sequence[Cause], other: float) -> float:
    """The gain of a fact with one of several words as its value; a cause that names none predicts all alike."""
    named = [_words(fact, cause.case) for cause in causes]
    words = sorted({word for listed in named for word in listed})
    if len(words) < 2:
        return 0.0
    mixture: dict[str, float] = defaultdict(float)
    noise = 0.0
    for cause, listed in (*zip(causes, named, strict=True), (None, ())):
        weight = other if cause is None else cause.probability
        support = listed or tuple(words)
        for word in support:
            mixture[word] += weight / len(support)
        noise += weight * math.log2(len(support))
    total = sum(mixture.values()) or 1.0
    return max(0.0, -sum(p / total * math.log2(p / total) for p in mixture.values() if p > 0) - noise / total)


def _words(fact: str, case: Case) -> tuple[str, ...]:
    return {"framework": case.frameworks, "algorithm": case.algorithms, "model": case.model_families}.get(fact, ())


@cache
def _libraries() -> frozenset[str]:
    listed = profiles().values()
    return frozenset(name for profile in listed for name in (profile.name, *profile.aliases))


def _names_library(question: str) -> bool:
    """Whether a question names a framework or library: the code that fails, whatever program it runs in."""
    words = question.lower().replace("/", " ").replace(",", " ").replace(".", " ").split()
    return not _libraries().isdisjoint(words)


@cache
def _standalone() -> frozenset[str]:
    """Frameworks that no other one runs on: the version of one says nothing about a run of another."""
    return frozenset(profile.name for profile in profiles().values() if profile.standalone)


def _pointless(fact: str, evidence: Evidence) -> bool:
    """The version of a framework that this run does not use, or of any package while the framework is open."""
    run = evidence.run
    kind, _, name = fact.partition(":")
    if kind != "version":
        return False
    engine = run.settings.get("rollout_engine")
    if name in select("server") and engine is not None and not engine.is_default and engine.value not in (name, True):
        return name not in evidence.versions
    if run.framework is None:
        return not evidence.versions and not run.options
    return name in _standalone() and name != run.framework.value and name not in evidence.versions


def known(fact: str, context: Context) -> bool:
    """Whether the question or the paste already holds this fact."""
    evidence = context.evidence
    run = evidence.run
    kind, _, name = fact.partition(":")
    if kind == "version":
        version = evidence.versions.get(name)
        return version is not None and (version.exact is not None or version.span is not None)
    if kind == "setting":
        return name in run.settings or any(other in run.settings for other in SAID_BY.get(name, ()))
    if kind == "option":
        return any(option.key == name for option in run.options)
    if kind == "metric":
        return any(name in row.metrics for row in evidence.rows)
    if kind == "card":
        return next(cards(evidence, run), None) is not None
    if kind in NAMED_BY and NAMED_BY[kind] & set(context.intent.concepts.values()):
        return True
    logged = any(region.kind in LOGS for region in evidence.regions)
    answers = {
        "framework": run.framework is not None or bool(evidence.versions) or _names_library(evidence.question),
        "algorithm": run.algorithm is not None or run.stage is not None or context.intent.names_stage,
        "stage": run.stage is not None or run.algorithm is not None or context.intent.names_stage,
        "model": bool(run.model or run.model_family or _names_size(evidence)),
        "model_family": run.model_family is not None or run.model is not None,
        "log": logged or bool(evidence.rows or evidence.tracebacks or context.observed) or _shows_output(evidence),
        "config": bool(run.options or evidence.calls) or any(region.kind in CONFIGS for region in evidence.regions),
        "command": any(region.kind == "command" for region in evidence.regions),
        "dataset": "dataset" in run.settings,
    }
    return answers.get(fact, False)


def _names_size(evidence: Evidence) -> bool:
    """Whether a message says how large the model is ("a 7B model")."""
    said = (source.text for source in evidence.sources if (source.name or "message-").startswith("message-"))
    return any(_SIZE.search(text[:MAX_QUESTION]) for text in said)


def _shows_output(evidence: Evidence) -> bool:
    """Whether a file is neither code, configuration nor a list of packages: a table, or one line of an error."""
    listings = {fact.span.attachment for fact in evidence.versions.values() if fact.span is not None}
    return any(item.name and item.kind == "prose" and item.name not in listings for item in evidence.receipt.inputs)


def _generic(fact: str) -> Missing:
    return Missing(fact=fact, why=messages.both(f"{fact}.why"), ask=messages.both(f"{fact}.ask"))
