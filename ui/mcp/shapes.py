"""What the tools take and return; tests keep a snapshot of the schemas.

Parts of the answer (`service.answer`), validated from its attributes. Smaller than the REST API's answer, because a
model pays for every token that it reads: no end columns, settings, signals or series.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from trainmedic.kb.model.report_view import InputView, MaskedView, MissingView
from trainmedic.service.answer import Citation, MechanismRef, RefutationView
from trainmedic.service.api.resources import Hit

# JSON has no NaN and no infinity.
NumberText = Annotated[str, BeforeValidator(lambda value: f"{value:.6g}")]


class Part(BaseModel):
    """Read from the attributes of a dataclass."""

    model_config = ConfigDict(from_attributes=True)


class PastedFile(BaseModel):
    """A pasted file."""

    model_config = ConfigDict(extra="forbid", title="File")

    name: str = Field(description="its name, such as train.sh")
    content: str = Field(description="its text")


class File(BaseModel):
    """A file: its name and its text, or its path below one of the server's folders, where the server reads it."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field("", description="its name, such as train.sh")
    content: str | None = Field(None, description="its text")
    path: str | None = Field(None, description="instead of both: where the server finds it; spares sending a long log")


class Place(Part):
    """A place in the files sent: 1-based; attachment null is the question; default: a default, not in the text."""

    attachment: str | None
    line: int
    column: int
    text: str
    default: bool


class Finding(Part):
    """One rule's finding. ``patch`` is a unified diff of the user's own text."""

    rule_id: str
    title: str
    severity: str = Field(description="error, warning or info")
    status: str = Field(description="fired, or cannot_tell because of what is missing")
    message: str
    fix: str
    patch: str | None
    clears: list[str] = Field(description="rules that no longer fire once the patch is applied")
    appears: list[str] = Field(description="rules that fire only then")
    evidence: list[Place]
    missing: list[MissingView]
    cases: list[str]


class Cause(Part):
    """A candidate cause. ``score`` is the calibrated probability that it is the right one."""

    rank: int
    case_id: str
    title: str
    cause: str
    fix: str
    confidence: str = Field(description="high, medium or low")
    score: float
    evidence_grade: str = Field(description="how well the case is established: reproduced, maintainer, reporter ...")
    findings: list[str]
    refutations: list[RefutationView]
    level: str = Field(description="how much it commits to: mechanism, origin or case")
    mechanism: MechanismRef | None


class Statement(Part):
    """Something that speaks for or against a cause."""

    text: str


class Considered(Part):
    """A mechanism, an origin or a case that was considered; ``nodes`` are what it comes from."""

    id: str
    level: str = Field(description="mechanism, origin or case")
    title: str
    probability: float
    supports: list[Statement]
    contradicts: list[Statement]
    excluded_by: list[Statement]
    state: str | None = Field(description="of an origin: holds, does_not_hold or open")
    nodes: list[Considered]


class Differential(Part):
    """Everything considered, most probable first; ``other`` is the probability of something else."""

    nodes: list[Considered]
    other: float


class Step(Part):
    """One step of an investigation."""

    number: int
    tool: str
    what: str
    result: str
    ok: bool


class MessagePlace(Part):
    """The code that prints a message."""

    file: str
    line: int
    function: str
    release: str
    url: str | None


class ConditionValue(Part):
    """What a name in the condition was in this run."""

    name: str
    value: str


class MessageAdvice(Part):
    """What people know about a message."""

    meaning: str
    change: str
    no_help: str
    cases: list[str] = Field(description="get_case reads them")


class Message(Part):
    """A message that a framework's source has."""

    package: str
    kind: str = Field(description="the exception; assert; warning, error or print if it is only printed")
    evidence: Place
    text: str = Field(description="which code prints it and when, and which releases have it")
    condition: str
    values: list[ConditionValue]
    place: MessagePlace
    first_release: str
    last_release: str
    in_version: bool | None
    advice: MessageAdvice | None
    others: list[str] = Field(description="packages with the same message")


class Diagnosis(Part):
    """The answer. Act on the first cause only if ``verdict`` is ``answered``."""

    answer_id: str = Field(validation_alias=AliasChoices("answer_id", "id"))  # the first is the name in the schema
    conversation_id: str = Field(description="send it with a follow-up question; earlier files still apply")
    verdict: str = Field(
        description="answered; need_input: ask the user for what is missing; not_in_kb: no case covers it; "
        "no_fault: nothing is wrong here"
    )
    language: str
    mode: str = Field(description="llm: the text was written by a model and verified; deterministic: without one")
    answer: str = Field(description="Markdown with citation markers [1], [2] ...")
    causes: list[Cause]
    differential: Differential
    findings: list[Finding]
    missing: list[MissingView]
    citations: list[Citation]
    steps: list[Step]
    messages: list[Message]
    framework: str | None = Field(validation_alias=AliasPath("run", "framework"))
    algorithm: str | None = Field(validation_alias=AliasPath("run", "algorithm"))
    versions: dict[str, str] = Field(validation_alias=AliasPath("run", "versions"))
    inputs: list[InputView] = Field(validation_alias=AliasPath("receipt", "inputs"))
    masked: list[MaskedView] = Field(validation_alias=AliasPath("receipt", "masked"))
    notices: list[str]
    kb_version: str


class CheckResult(Part):
    """The findings of the rules in the files of one run."""

    findings: list[Finding]
    framework: str | None = Field(validation_alias=AliasPath("run", "framework"))
    algorithm: str | None = Field(validation_alias=AliasPath("run", "algorithm"))
    versions: dict[str, str] = Field(validation_alias=AliasPath("run", "versions"))
    inputs: list[InputView] = Field(validation_alias=AliasPath("receipt", "inputs"))
    masked: list[MaskedView] = Field(validation_alias=AliasPath("receipt", "masked"))
    ruleset_version: str


class Defect(Part):
    """A known defect of an installed package; ``certain`` false: the configuration or the exact version decides."""

    id: str
    package: str
    version: str
    title: str
    effect: str = Field(description="silent, hang, crash, save, resume, memory, slow or log")
    affected: str = Field(description="the range of releases with the defect")
    certain: bool
    workaround: str
    link: str


class VersionChange(Part):
    """A package to change, and the ids of the defects that this clears and brings."""

    package: str
    current: str
    to: str
    clears: list[str]
    enters: list[str]
    because: str = Field(description="the requirement of another package that asks for it, if no defect does")


class AuditResult(Part):
    """The known defects of an environment, the most harmful first, and the versions without them."""

    defects: list[Defect]
    changes: list[VersionChange]
    packages: dict[str, str] = Field(description="the versions that were read of packages with known defects")
    patch: str = Field(description="a unified diff of the requirement files")
    inputs: list[InputView] = Field(validation_alias=AliasPath("receipt", "inputs"))
    masked: list[MaskedView] = Field(validation_alias=AliasPath("receipt", "masked"))


class DifferenceEffect(Part):
    """What a difference does; ``explains``: it produces a symptom that only the failing run shows."""

    kind: str = Field(description="rule, defect, origin, default, removed or renamed")
    id: str
    title: str
    fix: str
    explains: bool


class RunDifference(Part):
    """One thing that differs; null on a side that does not have it or does not say."""

    kind: str = Field(description="run, setting, option or package")
    name: str
    good: str | None
    bad: str | None
    good_place: Place | None
    bad_place: Place | None
    effects: list[DifferenceEffect]


class CurveParting(Part):
    """The first step from which a metric differs for good; ``whole``: from the first common step."""

    metric: str
    step: int
    good: NumberText
    bad: NumberText
    whole: bool
    bad_place: Place


class DiffResult(Part):
    """Only what differs, what explains the failure first. Findings and defects are those of the failing run alone."""

    differences: list[RunDifference]
    curves: list[CurveParting]
    findings: list[Finding]
    defects: list[Defect]


class MessageList(Part):
    """The messages, those that end a run first; empty if none is known."""

    messages: list[Message]


class CaseHits(Part):
    """Cases, nearest first."""

    hits: list[Hit]
    kb_version: str


class CasePage(BaseModel):
    """One case: symptom, cause, fix, what does not help, how to confirm, sources."""

    id: str
    title: str
    kind: str = Field(description="fault, or artefact: it merely looks wrong")
    family: str
    frameworks: list[str]
    evidence: str = Field(description="how well it is established")
    rules: list[str]
    markdown: str


class RulePage(BaseModel):
    """One rule: what it finds, why that matters, what to do, and pastes on which it fires or stays silent."""

    id: str
    title: str
    severity: str
    status: str
    frameworks: list[str]
    cases: list[str]
    when: str = Field(description="its condition; empty if a program decides")
    markdown: str
