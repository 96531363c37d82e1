"""The usual learning rates for a kind of training, beside the run's own. Pure."""

from __future__ import annotations

from trainmedic.kb.engine.values import is_number, show
from trainmedic.kb.learning_rates import ADAPTERS, PRACTICE, PREFERENCE, SUPERVISED
from trainmedic.kb.model.run import RunConfig
from trainmedic.service.answer.messages import messages
from trainmedic.service.ranking.features import Context

OTHERS = ("grpo", "ppo", "pretraining")
"""Kinds of training for which no rate is usual."""
FAR = 3.0
"""How many times below the usual rates a run's own is worth a word."""


def usual_rates(context: Context, language: str) -> tuple[str, ...]:
    """The usual rates of the kinds of training that the run or the question may be about."""
    return tuple(
        messages("usual_rate.said", language, kind=messages(f"usual_rate.{kind}", language), **_shown(kind))
        for kind in kinds(context)
    )


def beside_usual(context: Context, language: str) -> str:
    """The run's own rate beside the usual one; empty if either is not known."""
    own, found = _own(context.evidence.run), kinds(context)
    if own is None or len(found) != 1:
        return ""
    practice = PRACTICE[found[0]]
    where = "below" if own < practice.low else "above" if own > practice.high else "inside"
    said = usual_rates(context, language)[0]
    return f"{said}{'' if language == 'zh' else ' '}{messages(f'usual_rate.{where}', language, own=show(own))}"


def far_below(context: Context, language: str) -> str:
    """The same where the run's own rate is far below the usual."""
    own, found = _own(context.evidence.run), kinds(context)
    low = own is not None and len(found) == 1 and FAR * own < PRACTICE[found[0]].low
    return beside_usual(context, language) if low else ""


def kinds(context: Context) -> tuple[str, ...]:
    """The kinds of training that neither the run nor the question excludes; none for another kind of training."""
    run, said = context.evidence.run, context.intent.concepts.keys()
    named = said & {*PREFERENCE, *SUPERVISED, *OTHERS}
    algorithms = {run.algorithm.value} if run.algorithm is not None else named
    tuner = run.settings.get("tuner")
    stages = {_stage(name) for name in algorithms} or {"sft", "preference"}
    guessed = {"lora"} if not said.isdisjoint(ADAPTERS) else {"full", "lora"}
    tuners = guessed if tuner is None else {"lora" if tuner.value in ADAPTERS else tuner.value}
    return tuple(kind for kind in PRACTICE if kind.split(".")[0] in stages and kind.split(".")[1] in tuners)


def _stage(algorithm: str) -> str:
    return "sft" if algorithm in SUPERVISED else "preference" if algorithm in PREFERENCE else ""


def _own(run: RunConfig) -> float | None:
    setting = run.settings.get("learning_rate")
    return float(setting.value) if setting is not None and is_number(setting.value) else None


def _shown(kind: str) -> dict[str, str]:
    return {"low": _plain(PRACTICE[kind].low), "high": _plain(PRACTICE[kind].high)}


def _plain(rate: float) -> str:
    """``1e-4``."""
    return f"{rate:.0e}".replace("e-0", "e-")
