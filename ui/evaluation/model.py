"""A served language model on incidents from outside: alone, and with trainmedic, question by question."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.answering import run_inline
from trainmedic.service.diagnosis.confidence import bin_of
from trainmedic.service.diagnosis.diagnoser import judgement_of
from trainmedic.service.llm.chat import ChatModel, Message, ModelError, ModelOptions
from trainmedic.service.ranking.judgement import Judgement
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
    """What a model answers without trainmedic."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["cause", "unclear", "healthy", "explanation", "other_field"]
    hypotheses: Annotated[list[Guess], Field(max_length=3)]
    confidence: Literal["high", "medium", "low"]


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
class Measured:
    """The results question by question, in the order of the incidents. ``judgements`` are those behind ``together``."""

    model: str
    alone: tuple[Alone, ...]
    together: tuple[Result, ...]
    answers: tuple[Answer, ...]
    judgements: tuple[Judgement | None, ...]
    failures: Mapping[str, int] = field(default_factory=dict)

    def table(self) -> str:
        """Alone and together, and in how many questions either is ahead."""
        asked = [alone for alone in self.alone if alone.incident.expect == "cause"]
        must_not = [alone for alone in self.alone if alone.incident.expect != "cause"]
        figures = outside_figures(self.together)
        high = [alone for alone in asked if alone.verdict == "cause" and alone.confidence == "high"]
        pairs = [(a.first, b.first) for a, b in zip(self.alone, self.together, strict=True) if a in asked]
        rows: list[tuple[str, object, object]] = [
            ("first", share(a.first for a in asked), figures.first),
            ("first and answered", share(a.first and a.verdict == "cause" for a in asked), figures.first_and_answered),
            ("in three", share(a.rank is not None for a in asked), figures.in_three),
            ("`high`", share(a.first for a in high), figures.high),
            ("questions at `high`", Share(right=len(high), total=len(asked)), figures.at_high),
            (
                "must not be answered, but is",
                share(a.verdict == "cause" and a.confidence != "low" for a in must_not),
                figures.must_not_answered,
            ),
            ("false `no_fault`", share(a.verdict == "healthy" for a in asked), figures.false_no_fault),
        ]
        lines = [f"{self.model}, {len(self.alone)} incidents", f"{'':32}{'alone':>16}{'with trainmedic':>20}"]
        lines += [f"{name:32}{alone!s:>16}{together!s:>20}" for name, alone, together in rows]
        lines.append(f"ahead with trainmedic {pairs.count((False, True))}, behind {pairs.count((True, False))}")
        lines.append(self._proofs())
        lines += [f"failed ({kind}): {count}" for kind, count in sorted(self.failures.items())]
        return "\n".join(lines) + "\n"

    def _proofs(self) -> str:
        """How the first hypotheses are supported, and how many answers to a configuration end in a checked edit."""
        firsts = [judgement.first for judgement in self.judgements if judgement is not None and judgement.first]
        support = {name: sum(first.support == name for first in firsts) for name in ("proven", "supported", "unproven")}
        configured = [
            judgement.first
            for judgement, answer in zip(self.judgements, self.answers, strict=True)
            if judgement is not None and judgement.first is not None and answer.run.settings
        ]
        edited = sum(first.trial is not None and bool(first.trial.patch) for first in configured)
        counts = ", ".join(f"{name} {count}" for name, count in support.items())
        return f"first hypothesis: {counts}; checked edits {edited} of {len(configured)} with a configuration"

    def calibration(self) -> str:
        """The counts by which `service.diagnosis.confidence` grades this model."""
        bins: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for result, judgement in zip(self.together, self.judgements, strict=True):
            if judgement is not None and judgement.first is not None and judgement.verdict == "answered":
                counts = bins[bin_of(judgement.first, judgement.said)]
                counts[0] += result.first
                counts[1] += 1
        return json.dumps({"model": self.model, "incidents": len(self.together), "bins": dict(sorted(bins.items()))})


async def measure(
    incidents: Sequence[Incident], advisor: Advisor, scorer: Scorer, url: str, timeout_s: float, parallel: int
) -> Measured:
    """Each incident in its own language, ``parallel`` at once. An answer that fails counts as the program's own."""
    options = ModelOptions(
        base_url=url,
        context_tokens=32_768,
        max_tokens=ANSWER_TOKENS,
        temperature=0.0,
        timeout_s=timeout_s,
        first_token_s=timeout_s,
        concurrency=2 * parallel,
    )
    model = ChatModel(options)
    failures: dict[str, int] = defaultdict(int)
    slots = asyncio.Semaphore(parallel)

    async def alone(incident: Incident) -> Alone:
        try:
            form = await model.structured(_bare(incident), AloneForm, max_tokens=ANSWER_TOKENS)
        except ModelError as failure:
            failures[f"alone, {failure.kind}"] += 1
            return Alone(incident=incident, verdict="failed", rank=None, confidence="low")
        texts = [f"{guess.title}\n{guess.because}\n{guess.fix}" for guess in form.hypotheses]
        right = [bool(incident.required) and mentions(text, incident.required) for text in texts]
        rank = right.index(True) + 1 if True in right else None
        return Alone(incident=incident, verdict=form.verdict, rank=rank, confidence=form.confidence)

    async def together(incident: Incident) -> tuple[Judgement | None, Answer]:
        draft = advisor.prepare(incident.ask())
        judgement = None
        try:
            judgement = await judgement_of(draft, advisor, model, run_inline)
        except ModelError as failure:
            failures[f"together, {failure.kind}"] += 1
        return judgement, advisor.compose(replace(draft, judgement=judgement))

    async def both(incident: Incident) -> tuple[Alone, Judgement | None, Answer]:
        async with slots:
            bare, (judgement, answer) = await asyncio.gather(alone(incident), together(incident))
            return bare, judgement, answer

    try:
        name = await model.name()
        done = await asyncio.gather(*map(both, incidents))
    finally:
        await model.aclose()
    answers = tuple(answer for _, _, answer in done)
    return Measured(
        model=name,
        alone=tuple(bare for bare, _, _ in done),
        together=tuple(
            scorer.result(incident, incident.language, answer)
            for incident, answer in zip(incidents, answers, strict=True)
        ),
        answers=answers,
        judgements=tuple(judgement for _, judgement, _ in done),
        failures=failures,
    )


def _bare(incident: Incident) -> tuple[Message, ...]:
    """The incident as somebody would paste it into a chat."""
    parts = [incident.question[incident.language]]
    room = MAX_PASTED
    for attachment in incident.attachments:
        text = str(attachment.content)[:room]
        room -= len(text)
        parts.append(f"--- {attachment.name}\n{text}")
    parts.append(f"Write in {LANGUAGES[incident.language]}.")
    return (Message(role="system", content=ALONE), Message(role="user", content="\n\n".join(parts)))
