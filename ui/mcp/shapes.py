"""What the tools take and return. The schemas made from these are the contract with every client: see the snapshot.

Smaller than the answer of the REST API: what a model reads should not be mostly punctuation.
"""

from __future__ import annotations

from pydantic import BaseModel, Field


class File(BaseModel):
    """A pasted file."""

    name: str = Field(description="its name, such as train.sh")
    content: str = Field(description="its text")


class Place(BaseModel):
    """Where it stands in what was sent: 1-based; attachment null is the question; default: nobody wrote it."""

    attachment: str | None
    line: int
    column: int
    text: str
    default: bool


class Fact(BaseModel):
    """A fact that is missing: its stable name, why it matters, how to ask the user for it."""

    fact: str
    why: str
    ask: str


class Finding(BaseModel):
    """What one rule found. ``patch`` is a unified diff of the user's own text."""

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
    missing: list[Fact]
    cases: list[str]


class Refutation(BaseModel):
    """What people try or say that does not help, and why."""

    claim: str
    why: str


class Cause(BaseModel):
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
    refutations: list[Refutation]


class Cited(BaseModel):
    """What a marker such as [1] in the text points at."""

    marker: int
    kind: str = Field(description="case, rule or input")
    id: str
    title: str
    url: str | None
    quote: str | None


class Taken(BaseModel):
    """One step of an investigation."""

    number: int
    tool: str
    what: str
    result: str
    ok: bool


class Received(BaseModel):
    """What became of one input."""

    name: str | None
    kind: str
    bytes: int
    lines: int
    read: bool
    truncated: bool
    note: str


class Masked(BaseModel):
    """How many secrets of one kind were masked before anything else saw the text."""

    kind: str
    count: int


class Diagnosis(BaseModel):
    """The answer. Act on the first cause only where ``verdict`` is ``answered``."""

    answer_id: str
    conversation_id: str = Field(description="name it in a follow-up; what was sent before still counts")
    verdict: str = Field(
        description="answered; need_input: ask the user for what is missing; not_in_kb: no case covers it; "
        "no_fault: nothing is wrong here"
    )
    language: str
    mode: str = Field(description="llm: the text was written by a model and verified; deterministic: without one")
    answer: str = Field(description="Markdown with citation markers [1], [2] ...")
    causes: list[Cause]
    findings: list[Finding]
    missing: list[Fact]
    citations: list[Cited]
    steps: list[Taken]
    framework: str | None
    algorithm: str | None
    versions: dict[str, str]
    inputs: list[Received]
    masked: list[Masked]
    notices: list[str]
    kb_version: str


class Checked(BaseModel):
    """What the rules found in files of one run."""

    findings: list[Finding]
    framework: str | None
    algorithm: str | None
    versions: dict[str, str]
    inputs: list[Received]
    masked: list[Masked]
    ruleset_version: str


class CaseHit(BaseModel):
    """One case found, and why."""

    case_id: str
    title: str
    score: float
    why: list[str]


class CaseHits(BaseModel):
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
    when: str = Field(description="its condition; empty where a program decides")
    markdown: str
