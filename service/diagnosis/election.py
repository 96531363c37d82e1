"""A small model weighs the program's causes: of each it is asked whether it explains what is reported, and how probable
"Yes" is says how much it believes that.

Each cause is asked for alone, so its place in a list plays no part. An endpoint without probabilities chooses one of a
list instead, in two orders: what it chooses for its place then cancels. Either is blended with how likely the program
holds each cause; how much the model counts is measured (`confidence.Calibration`).
"""

from __future__ import annotations

import math
import time
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from string import ascii_uppercase
from typing import Any, Literal

from pydantic import create_model

from trainmedic.kb.identities import mask_identities
from trainmedic.service.answering import Executor
from trainmedic.service.diagnosis.brief import brief_of, short_of, what_was_read
from trainmedic.service.diagnosis.confidence import Calibration
from trainmedic.service.diagnosis.form import Strict
from trainmedic.service.diagnosis.prompt import data_mark, delimited, identities_in
from trainmedic.service.llm.abilities import Way, label_logprobs, predicates
from trainmedic.service.llm.chat import ChatModel, Message
from trainmedic.service.pipeline import ELECTIVE, Draft, Pipeline
from trainmedic.service.ranking.inference import Cause

CAUSES = 6
"""Causes put to the model: of those behind them nearly none is right."""
SURE = 0.9
"""The probability of a first cause from which nothing is asked."""
MAX_QUESTION, MAX_LINE, MAX_FACT, MAX_CLAUSE = 900, 160, 170, 130
"""Code points of the question, of a pasted line, of a fact, and of what is told of a cause beside its title."""
FIRST_LINES, LAST_LINES, FACTS = 2, 6, 7
LINE_TOKENS = 900
CLAUSE_WORDS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """The question that is put to the model: what happened, and the causes with what is told of each."""

    report: str
    causes: tuple[Cause, ...]
    told: tuple[str, ...]

    def of_cause(self, place: int) -> tuple[Message, ...]:
        """The question for one cause. All but its end is the same for the others, so that a server reads it once."""
        return (*_examples(), Message(role="user", content=_question(self.report, self.told[place])))

    def of_all(self, order: Sequence[int]) -> tuple[Message, ...]:
        """The question which of them it is, in this order."""
        told = [*(self.told[place] for place in order), _texts()["none"]]
        listed = "\n".join(f"{label}. {text}" for label, text in zip(ascii_uppercase, told, strict=False))
        text = f"{self.report}\n# Possible causes\n{listed}\n{_texts()['choice']}"
        return (Message(role="system", content=_texts()["instructions"]), Message(role="user", content=text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """A model's judgement of a ballot: for each cause a score on a logarithmic scale, of which differences count."""

    ballot: Ballot
    way: Way
    scores: tuple[float, ...]


@cache
def _texts() -> Mapping[str, Any]:
    return tomllib.loads(files("trainmedic.service.diagnosis").joinpath("election.toml").read_text(encoding="utf-8"))


@cache
def _examples() -> tuple[Message, ...]:
    """The instructions and the examples, as turns."""
    turns = [Message(role="system", content=_texts()["instructions"])]
    for example in _texts()["examples"]:
        for answer in (name for name in example if name != "report"):
            question = _question(example["report"], example[answer])
            turns.append(Message(role="user", content=question))
            turns.append(Message(role="assistant", content=answer.capitalize()))
    return tuple(turns)


def _question(report: str, cause: str) -> str:
    return f"{report}\n# Possible cause\n{cause}\n{_texts()['question']}"


def ballot_of(draft: Draft) -> Ballot | None:
    """None where nothing is to be elected: the first cause is sure, there is no second, or nothing is diagnosed."""
    causes = draft.diagnosis.differential.causes[:CAUSES]
    first = causes[0] if causes else None
    settled = first is None or first.probability >= SURE or first.confidence == "high"
    if settled or len(causes) < 2 or draft.diagnosis.verdict not in ELECTIVE or draft.helped or draft.inquiry:
        return None
    known = identities_in(draft)
    return Ballot(
        report=mask_identities(_report(draft), known),
        causes=causes,
        told=tuple(_told(cause, draft.language) for cause in causes),
    )


def _report(draft: Draft) -> str:
    lines = brief_of(draft, LINE_TOKENS).lines
    question = " ".join(line.text for line in lines if line.source is None)[:MAX_QUESTION]
    pasted = [line.text[:MAX_LINE] for line in lines if line.source is not None]
    if len(pasted) > FIRST_LINES + LAST_LINES:
        pasted = [*pasted[:FIRST_LINES], *pasted[-LAST_LINES:]]
    facts = [f"- {text[:MAX_FACT]}" for text, _ in what_was_read(draft)][:FACTS]
    parts = {"Report": [question], "Pasted": pasted, "Read from it": facts}
    text = "\n".join(f"# {name}\n" + "\n".join(told) for name, told in parts.items() if told)
    return delimited(data_mark([text]), text)


def _told(cause: Cause, language: str) -> str:
    title = cause.case.title.get(language)
    clause = short_of(cause.case.section("cause", language), CLAUSE_WORDS).removeprefix(title).lstrip(".:：。 ")
    short = clause[:MAX_CLAUSE]
    return f"{title}: {clause if len(clause) <= MAX_CLAUSE else short.rpartition(' ')[0] or short}"


async def election_of(draft: Draft, model: ChatModel, run: Executor, ways: Sequence[Way]) -> Election | None:
    """The model's election, in the first of these ways that its endpoint has; None without one, and where nothing is to
    be elected. Raises `ModelError`."""
    ballot = await run(lambda: ballot_of(draft))
    if ballot is None:
        return None
    able = await model.able()
    way = next((way for way in ways if way in able.ways), None)
    if way is None:
        return None
    until = time.perf_counter() + model.options.timeout_s
    if way == "decisions":
        asked = [f"{_texts()['instructions']}\n{told}\n{_texts()['question']}" for told in ballot.told]
        chances = await model.ask(partial(predicates, text=ballot.report, questions=asked))
        scores = [math.log(chance / (1 - chance)) for chance in chances]
    elif way == "logprobs":
        scores = [score async for score in _one_by_one(ballot, model, until)]
    else:
        scores = await _chosen(ballot, model, until)
    return Election(ballot=ballot, way=way, scores=tuple(scores))


async def _one_by_one(ballot: Ballot, model: ChatModel, until: float) -> AsyncIterator[float]:
    for place in range(len(ballot.causes)):
        ask = partial(label_logprobs, messages=ballot.of_cause(place), labels=("Yes", "No"))
        said = await model.ask(ask, until - time.perf_counter())
        yield said["Yes"] - said["No"]


async def _chosen(ballot: Ballot, model: ChatModel, until: float) -> list[float]:
    """1 for the cause that is chosen in both orders; 0 for all if the place decided."""
    forward = tuple(range(len(ballot.causes)))
    label: Any = Literal[tuple(ascii_uppercase[: len(forward) + 1])]
    form = create_model("Choice", __base__=Strict, label=(label, ...))
    chosen = []
    for order in (forward, forward[::-1]):
        left = until - time.perf_counter()
        said = await model.structured(ballot.of_all(order), form, max_tokens=24, within_s=left)
        chosen.append(dict(zip(ascii_uppercase, order, strict=False)).get(said.model_dump()["label"]))
    return [float(chosen == [place, place]) for place in forward]


def weighed(draft: Draft, election: Election, pipeline: Pipeline, calibration: Calibration) -> Draft:
    """The draft with its causes weighed by the model too, as much as was measured that it counts."""
    weight, most = calibration.weight(election.way), max(election.scores)
    odds = {
        cause.case.id: math.exp(weight * (score - most))
        for cause, score in zip(election.ballot.causes, election.scores, strict=True)
    }
    return pipeline.weighed_anew(draft, odds, calibration.model)
