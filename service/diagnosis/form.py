"""The shape of a model's diagnosis, which the endpoint enforces: what it answers, never what is shown as it stands.

What is too long is cut and not refused: the rest of the answer may be right. The schema bounds only the lists, because
bounds of texts make the grammars of some servers slow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from trainmedic.kb.model.case import Verdict

T = TypeVar("T")
Said = Literal["cause", "unclear", "healthy", "explanation", "other_field"]
VERDICTS: Mapping[Said, Verdict] = {
    "cause": "answered",
    "unclear": "need_input",
    "healthy": "no_fault",
    "explanation": "explained",
    "other_field": "not_in_kb",
}


def _text(most: int) -> AfterValidator:
    return AfterValidator(lambda text: text[:most])


def _items(most: int) -> tuple[AfterValidator, Field]:  # type: ignore[valid-type]
    return AfterValidator(lambda items: items[:most]), Field(json_schema_extra={"maxItems": most})


Word = Annotated[str, _text(255)]
Line = Annotated[str, _text(400)]
Sentences = Annotated[str, _text(900)]
Ids = Annotated[list[Word], *_items(8)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EditForm(Strict):
    """One setting in one of the user's files or in the command, or else a ``line`` (L7) that ``value`` replaces.

    An empty ``value`` removes it.
    """

    file: Word
    setting: Word
    line: Word
    value: Annotated[str, _text(2_000)]


class HypothesisForm(Strict):
    """``candidate`` is an id such as C5, or empty for one of the model's own."""

    candidate: Word
    title: Word
    because: Sentences
    lines_for: Ids
    lines_against: Ids
    change: Sentences
    edits: Annotated[list[EditForm], *_items(6)]
    command: Line
    verify: Line


class DiagnosisForm(Strict):
    """The fields are in the order in which a model should think: what is seen before what is concluded."""

    reading: Sentences
    verdict: Said
    hypotheses: Annotated[list[HypothesisForm], *_items(3)]
    sure: Annotated[int, AfterValidator(lambda sure: min(max(sure, 0), 100))]
    question: Line
    reply: Annotated[str, _text(2_000)]
