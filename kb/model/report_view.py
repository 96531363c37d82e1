"""The findings of the rules as clients see them: the response of a check, and what an answer says of the same.

As for `service.answer.schema`, a field added later needs a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from trainmedic.kb.model.evidence import InputReceipt
from trainmedic.kb.model.place import Span
from trainmedic.kb.serialization import NonFinite

Number = Annotated[float, NonFinite()]
"""May be NaN or infinite: ``"nan"``, ``"inf"``, ``"-inf"`` in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingView:
    """One fact that would decide something: its stable name, why it matters, and how to ask for it."""

    fact: str
    why: str
    ask: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingView:
    """One rule's finding. ``patch`` is a unified diff of the user's own text, or None."""

    rule_id: str
    title: str
    severity: str
    status: str
    message: str
    fix: str
    patch: str | None
    evidence: tuple[Span, ...]
    missing: tuple[MissingView, ...]
    cases: tuple[str, ...]
    concludes: str = "fault"
    clears: tuple[str, ...] = ()
    appears: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalView:
    """A symptom found in the log or stated by the user. ``meaning`` defines its kind; ``observed`` says what this log's
    numbers are, and is empty where a sentence or a message shows it."""

    kind: str
    meaning: str
    value: Number | None
    step: int | None
    stated: bool
    evidence: Span
    observed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingView:
    """One canonical setting of the run: its value, the user's spelling, and whether it is a default."""

    value: object
    key: str
    default: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """The run as recognised. ``settings`` lists the written ones, and the defaults that a finding used."""

    framework: str | None
    algorithm: str | None
    stage: str | None
    model: str | None
    model_family: str | None
    reasons: Mapping[str, str]
    versions: Mapping[str, str]
    settings: Mapping[str, SettingView]
    runs: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedView:
    kind: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemView:
    """A part of the input that could not be read."""

    code: str
    message: str
    evidence: Span | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptView:
    inputs: tuple[InputReceipt, ...]
    masked: tuple[MaskedView, ...]
    problems: tuple[ProblemView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonView:
    """A package in a release beyond what is known of it: what was ``asked`` about, and the release up to which its
    ``options`` were read and its ``defects`` collected (None: that far, or nothing of the kind). ``read_up_to`` is the
    first of these. ``older``: it is older than ``read_up_to``, the first release that was read."""

    package: str
    asked: str
    read_up_to: str
    message: str
    options: str | None = None
    defects: str | None = None
    older: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """The response of ``/v1/check`` and ``trainmedic check --format json``: rules only.

    ``patch`` makes the changes of all findings at once; empty if at most one of them has a patch.
    """

    findings: tuple[FindingView, ...]
    run: RunView
    signals: tuple[SignalView, ...]
    receipt: ReceiptView
    ruleset_version: str
    failures: tuple[str, ...] = ()
    patch: str = ""
    horizon: tuple[HorizonView, ...] = ()

    @property
    def fired(self) -> tuple[FindingView, ...]:
        return tuple(finding for finding in self.findings if finding.status == "fired")
