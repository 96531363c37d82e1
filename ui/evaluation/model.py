"""A served language model on incidents from outside: alone, and with trainmedic, question by question."""

from __future__ import annotations

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import run_inline
from trainmedic.service.diagnosis.confidence import Calibration, Role, bin_of
from trainmedic.service.diagnosis.diagnoser import judgement_of
from trainmedic.service.diagnosis.election import Election, election_of, weighed
from trainmedic.service.diagnosis.roles import Wanted, part_of
from trainmedic.service.llm.abilities import Abilities, Way
from trainmedic.service.llm.chat import ChatModel, Message, ModelError, ModelOptions
from trainmedic.service.pipeline import Draft
from trainmedic.ui.evaluation.causes import Share, share
from trainmedic.ui.evaluation.outside import Incident, Result, Scorer, mentions, outside_figures

ANSWER_TOKENS = 1_600
MAX_PASTED = 24_000
"""Code points of an incident's files that the model alone is shown."""
LANGUAGES = {"en": "English", "zh": "Simplified Chinese"}
ALONE = (
    "You diagnose failing training runs of large language models for experienced engineers. Read the question with its "
    "files. verdict: cause (the first hypothesis is likely enough to act on), unclear, healthy, explanation (a general "
    "question) or other_field. hypotheses: up to three causes, the likeliest first, each with title, why it happens "
    "here (naming function, option or version) and the fix. confidence: high only if you would bet twenty to one."
)


class Guess(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: Annotated[str, Field(max_length=200)]
    because: Annotated[str, Field(max_length=900)]
    fix: Annotated[str, Field(max_length=900)]


class AloneForm(BaseModel):
    """The answer of a model without trainmedic."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["cause", "unclear", "healthy", "explanation", "other_field"]
    hypotheses: Annotated[list[Guess], Field(max_length=3)]
    confidence: Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """``alone``: for how many incidents the model is asked without trainmedic too, 0 for all. ``calibrations``: where
    what was measured before is looked for, beside what is shipped."""

    timeout_s: float = 120.0
    parallel: int = 1
    alone: int = 0
    role: Wanted = "auto"
    calibrations: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    incident: Incident
    verdict: str
    rank: int | None
    confidence: str

    @property
    def first(self) -> bool:
        return self.rank == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """One draft with the model's part in it: a judgement if it decides, or an election."""

    draft: Draft
    election: Election | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The results question by question, in the order of the incidents; ``alone`` are those of the first of them.

    ``program`` is the answer without a model. ``asked`` are the drafts and elections behind ``together``.
    """

    model: str
    role: Role
    able: Abilities
    alone: tuple[Alone, ...]
    program: tuple[Result, ...]
    together: tuple[Result, ...]
    answers: tuple[Answer, ...]
    asked: tuple[Together, ...]
    weights: Mapping[Way, float]
    failures: Mapping[str, int] = field(default_factory=dict)

    def table(self) -> str:
        """Alone, without a model and together, and in how many questions each is ahead."""
        asked = [alone for alone in self.alone if alone.incident.expect == "cause"]
        must_not = [alone for alone in self.alone if alone.incident.expect != "cause"]
        figures, program = outside_figures(self.together), outside_figures(self.program)
        high = [alone for alone in asked if alone.verdict == "cause" and alone.confidence == "high"]
        alone_rows: Mapping[str, Share] = {
            "first": share(a.first for a in asked),
            "first_and_answered": share(a.first and a.verdict == "cause" for a in asked),
            "in_three": share(a.rank is not None for a in asked),
            "high": share(a.first for a in high),
            "at_high": Share(right=len(high), total=len(asked)),
            "must_not_answered": share(a.verdict == "cause" and a.confidence != "low" for a in must_not),
            "false_no_fault": share(a.verdict == "healthy" for a in asked),
        }
        lines = [
            f"{self.model} {self.role}, {len(self.together)} incidents; it {self.able.in_words}",
            f"{'':32}{'alone':>16}{'no model':>16}{'with trainmedic':>20}",
        ]
        lines += [
            f"{ROWS[name]:32}{value!s:>16}{getattr(program, name)!s:>16}{getattr(figures, name)!s:>20}"
            for name, value in alone_rows.items()
        ]
        lines.append(_compared("itself alone", [alone.first for alone in self.alone], self.together))
        lines.append(_compared("no model", [result.first for result in self.program], self.together))
        lines.append(self._how())
        lines += [f"failed ({kind}): {count}" for kind, count in sorted(self.failures.items())]
        return "\n".join(lines) + "\n"

    def _how(self) -> str:
        """How the first hypotheses are supported, and how many answers to a configuration end in a checked edit; of an
        elector how often it was asked and what it counts."""
        elections = [each.election for each in self.asked if each.election is not None]
        if elections:
            first = sum(max(e.scores) == e.scores[0] for e in elections)
            weights = ", ".join(f"{way} {weight}" for way, weight in self.weights.items())
            return f"asked in {len(elections)}, of one mind with the program in {first}; weight: {weights}"
        judgements = [each.draft.judgement for each in self.asked]
        firsts = [judgement.first for judgement in judgements if judgement is not None and judgement.first]
        support = {name: sum(first.support == name for first in firsts) for name in ("proven", "supported", "unproven")}
        configured = [
            judgement.first
            for judgement, answer in zip(judgements, self.answers, strict=True)
            if judgement is not None and judgement.first is not None and answer.run.settings
        ]
        edited = sum(first.trial is not None and bool(first.trial.patch) for first in configured)
        counts = ", ".join(f"{name} {count}" for name, count in support.items())
        return f"first hypothesis: {counts}; checked edits {edited} of {len(configured)} with a configuration"

    def calibration(self) -> str:
        """The entry of `service.diagnosis.confidence` for this model: how often it was right, and the better role."""
        bins: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for result, each in zip(self.together, self.asked, strict=True):
            judgement = each.draft.judgement
            if judgement is not None and judgement.first is not None and judgement.verdict == "answered":
                counts = bins[bin_of(judgement.first, judgement.said)]
                counts[0] += result.first
                counts[1] += 1
        lost = sum(result.first for result in self.together) < sum(result.first for result in self.program)
        role = "elects" if self.role == "decides" and lost else self.role
        return json.dumps(
            {
                "model": self.model,
                "incidents": len(self.together),
                "role": role,
                "weights": dict(self.weights),
                "bins": dict(sorted(bins.items())),
            }
        )


ROWS = {
    "first": "first",
    "first_and_answered": "first and answered",
    "in_three": "in three",
    "high": "`high`",
    "at_high": "questions at `high`",
    "must_not_answered": "must not be answered, but is",
    "false_no_fault": "false `no_fault`",
}


MOST_WEIGHT = 5


def _compared(name: str, before: Sequence[bool], together: Sequence[Result]) -> str:
    pairs = [(a, b.first) for a, b in zip(before, together, strict=False) if b.incident.expect == "cause"]
    return f"against {name}: ahead in {pairs.count((False, True))}, behind in {pairs.count((True, False))}"


def fitted_weights(elections: Sequence[tuple[Election, frozenset[str]]]) -> dict[Way, float]:
    """How much a model counts, for the way it was asked: what makes the right causes (ids) likeliest, and none if that
    puts fewer of them first than the program alone."""

    def likelihood(weight: float) -> tuple[int, float]:
        first, total = 0, 0.0
        for election, right in elections:
            priors = [cause.probability for cause in election.ballot.causes]
            odds = [prior * math.exp(weight * score) for prior, score in zip(priors, election.scores, strict=True)]
            hits = [cause.case.id in right for cause in election.ballot.causes]
            first += hits[odds.index(max(odds))]
            total += math.log(sum(compress(odds, hits)) / sum(odds))
        return first, total

    elections = [(e, right) for e, right in elections if any(c.case.id in right for c in e.ballot.causes)]
    if not elections:
        return {}
    alone = likelihood(0.0)
    best = max((step / 10 for step in range(MOST_WEIGHT * 10 + 1)), key=lambda weight: likelihood(weight)[1])
    return {elections[0][0].way: best} if likelihood(best)[0] >= alone[0] else {}


class _Measuring:
    """One model and one body of knowledge; counts what fails."""

    def __init__(self, advisor: Advisor, scorer: Scorer, model: ChatModel) -> None:
        self.advisor, self.scorer, self.model = advisor, scorer, model
        self.failures: dict[str, int] = defaultdict(int)

    async def alone(self, incident: Incident) -> Alone:
        try:
            form = await self.model.structured(_bare(incident), AloneForm, max_tokens=ANSWER_TOKENS)
        except ModelError as failure:
            self.failures[f"alone, {failure.kind}"] += 1
            return Alone(incident=incident, verdict="failed", rank=None, confidence="low")
        texts = [f"{guess.title}\n{guess.because}\n{guess.fix}" for guess in form.hypotheses]
        right = [bool(incident.required) and mentions(text, incident.required) for text in texts]
        rank = right.index(True) + 1 if True in right else None
        return Alone(incident=incident, verdict=form.verdict, rank=rank, confidence=form.confidence)

    async def together(self, draft: Draft, role: Role, calibration: Calibration, ways: Sequence[Way]) -> Together:
        try:
            if role == "elects":
                return Together(draft=draft, election=await election_of(draft, self.model, run_inline, ways))
            if role == "decides":
                judgement = await judgement_of(draft, self.advisor, self.model, run_inline, calibration)
                return Together(draft=replace(draft, judgement=judgement))
        except ModelError as failure:
            self.failures[f"together, {failure.kind}"] += 1
        return Together(draft=draft)

    def scored(self, incident: Incident, draft: Draft) -> tuple[Answer, Result]:
        answer = self.advisor.compose(draft)
        return answer, self.scorer.result(incident, incident.language, answer)


async def measure(
    incidents: Sequence[Incident], advisor: Advisor, scorer: Scorer, model: ChatModel, how: How
) -> Measured:
    """Each incident in its own language, ``parallel`` at once. An answer that fails counts as the program's own.

    An elector that was measured before counts as much as was found then; otherwise as these incidents say themselves.
    """
    measuring = _Measuring(advisor, scorer, model)
    slots = asyncio.Semaphore(how.parallel)
    able = await model.able()
    calibration, role = await part_of(model, how.calibrations, how.role)

    async def both(number: int, incident: Incident) -> tuple[Alone | None, Draft, Together]:
        async with slots:
            draft = advisor.prepare(incident.ask())
            together = await measuring.together(draft, role, calibration, calibration.ways or able.ways)
            bare = await measuring.alone(incident) if number < (how.alone or len(incidents)) else None
            return bare, draft, together

    done = await asyncio.gather(*(both(number, incident) for number, incident in enumerate(incidents)))
    if not calibration.ways:
        elections = [
            (each.election, scorer.right(incident.required))
            for incident, (_, _, each) in zip(incidents, done, strict=True)
            if each.election is not None
        ]
        calibration = replace(calibration, weights=fitted_weights(elections))
    drafts = [
        weighed(each.draft, each.election, advisor.pipeline, calibration)
        if each.election is not None and calibration.ways
        else each.draft
        for _, _, each in done
    ]
    scored = [measuring.scored(incident, draft) for incident, draft in zip(incidents, drafts, strict=True)]
    return Measured(
        model=calibration.model,
        role=role,
        able=able,
        alone=tuple(bare for bare, _, _ in done if bare is not None),
        program=tuple(measuring.scored(i, draft)[1] for i, (_, draft, _) in zip(incidents, done, strict=True)),
        together=tuple(result for _, result in scored),
        answers=tuple(answer for answer, _ in scored),
        asked=tuple(each for _, _, each in done),
        weights=calibration.weights,
        failures=measuring.failures,
    )


def model_at(url: str, how: How) -> ChatModel:
    """A client that waits as long as a measurement may take."""
    return ChatModel(
        ModelOptions(
            base_url=url,
            context_tokens=32_768,
            max_tokens=ANSWER_TOKENS,
            temperature=0.0,
            timeout_s=how.timeout_s,
            first_token_s=how.timeout_s,
            concurrency=2 * how.parallel,
        )
    )


def _bare(incident: Incident) -> tuple[Message, ...]:
    """The incident as someone would paste it into a chat."""
    parts = [incident.question[incident.language]]
    room = MAX_PASTED
    for attachment in incident.attachments:
        text = str(attachment.content)[:room]
        room -= len(text)
        parts.append(f"--- {attachment.name}\n{text}")
    parts.append(f"Write in {LANGUAGES[incident.language]}.")
    return (Message(role="system", content=ALONE), Message(role="user", content="\n\n".join(parts)))
