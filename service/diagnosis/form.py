"""The shape of a model's diagnosis, which the endpoint enforces: what it answers, never what is shown as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from trainmedic.kb.model.case import Verdict

Id = Annotated[str, Field(max_length=8)]
Sentence = Annotated[str, Field(max_length=900)]
Said = Literal["cause", "unclear", "healthy", "explanation", "other_field"]
VERDICTS: Mapping[Said, Verdict] = {
    "cause": "answered",
    "unclear": "need_input",
    "healthy": "no_fault",
    "explanation": "explained",
    "other_field": "not_in_kb",
}


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EditForm(Strict):
    """One setting in one of the user's files or in the command; an empty ``value`` removes it."""

    file: Annotated[str, Field(max_length=255)]
    setting: Annotated[str, Field(max_length=120)]
    value: Annotated[str, Field(max_length=200)]


class HypothesisForm(Strict):
    """``candidate`` is an id such as C5, or empty for one of the model's own."""

    candidate: Id
    title: Annotated[str, Field(max_length=200)]
    because: Sentence
    lines_for: Annotated[list[Id], Field(max_length=8)]
    lines_against: Annotated[list[Id], Field(max_length=6)]
    change: Sentence
    edits: Annotated[list[EditForm], Field(max_length=6)]
    command: Annotated[str, Field(max_length=400)]
    verify: Annotated[str, Field(max_length=400)]


class DiagnosisForm(Strict):
    """The fields are in the order in which a model should think: what is seen before what is concluded."""

    reading: Sentence
    verdict: Said
    hypotheses: Annotated[list[HypothesisForm], Field(max_length=3)]
    confidence: Literal["high", "medium", "low"]
    question: Annotated[str, Field(max_length=400)]
    reply: Annotated[str, Field(max_length=2000)]
