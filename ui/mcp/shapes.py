"""What the tools take and return; tests keep a snapshot of the schemas.

Parts of the answer (`service.answer`), validated from its attributes. Smaller than the REST API's answer, because a
model pays for every token that it reads: no end columns, settings, signals or series.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from trainmedic.service.answer import Answer, Citation, InputView, MaskedView, MissingView, RefutationView, ReportView


class Part(BaseModel):
    """Read from the attributes of a dataclass."""

    model_config = ConfigDict(from_attributes=True)


class File(BaseModel):
    """A pasted file."""

    name: str = Field(description="its name, such as train.sh")
    content: str = Field(description="its text")


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


class Step(Part):
    """One step of an investigation."""

    number: int
    tool: str
    what: str
    result: str
    ok: bool


class Diagnosis(BaseModel):
    """The answer. Act on the first cause only if ``verdict`` is ``answered``."""

    answer_id: str
    conversation_id: str = Field(description="send it with a follow-up question; earlier files still apply")
    verdict: str = Field(
        description="answered; need_input: ask the user for what is missing; not_in_kb: no case covers it; "
        "no_fault: nothing is wrong here"
    )
    language: str
    mode: str = Field(description="llm: the text was written by a model and verified; deterministic: without one")
    answer: str = Field(description="Markdown with citation markers [1], [2] ...")
    causes: list[Cause]
    findings: list[Finding]
    missing: list[MissingView]
    citations: list[Citation]
    steps: list[Step]
    framework: str | None
    algorithm: str | None
    versions: dict[str, str]
    inputs: list[InputView]
    masked: list[MaskedView]
    notices: list[str]
    kb_version: str

    @classmethod
    def of(cls, answer: Answer) -> Diagnosis:
        return cls(
            answer_id=answer.id,
            conversation_id=answer.conversation_id,
            verdict=answer.verdict,
            language=answer.language,
            mode=answer.mode,
            answer=answer.answer,
            causes=[Cause.model_validate(cause) for cause in answer.causes],
            findings=[Finding.model_validate(finding) for finding in answer.findings],
            missing=list(answer.missing),
            citations=list(answer.citations),
            steps=[Step.model_validate(step) for step in answer.steps],
            framework=answer.run.framework,
            algorithm=answer.run.algorithm,
            versions=dict(answer.run.versions),
            inputs=list(answer.receipt.inputs),
            masked=list(answer.receipt.masked),
            notices=list(answer.notices),
            kb_version=answer.kb_version,
        )


class CheckResult(BaseModel):
    """The findings of the rules in the files of one run."""

    findings: list[Finding]
    framework: str | None
    algorithm: str | None
    versions: dict[str, str]
    inputs: list[InputView]
    masked: list[MaskedView]
    ruleset_version: str

    @classmethod
    def of(cls, report: ReportView) -> CheckResult:
        return cls(
            findings=[Finding.model_validate(finding) for finding in report.findings],
            framework=report.run.framework,
            algorithm=report.run.algorithm,
            versions=dict(report.run.versions),
            inputs=list(report.receipt.inputs),
            masked=list(report.receipt.masked),
            ruleset_version=report.ruleset_version,
        )


class CaseHit(Part):
    """One case found, and why."""

    case_id: str
    title: str
    score: float
    why: list[str]


class CaseHits(Part):
    """Cases, nearest first."""

    hits: list[CaseHit]
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
