"""Findings of the rules. Complete without any model, and never changed by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from trainmedic.kb.model.place import Span


class Severity(StrEnum):
    """How bad it is. ``error``: it fails or will; ``warning``: it is wrong but runs; ``info``: worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Status(StrEnum):
    """A rule's three values (Kleene)."""

    FIRED = "fired"
    CANNOT_TELL = "cannot_tell"
    CLEAR = "clear"


class Safety(StrEnum):
    """How safe a fix is to apply unread: safe | unsafe (changes what is trained) | display (shown only)."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The same sentence in English and Chinese."""

    en: str
    zh: str

    def get(self, language: str) -> str:
        """The text in ``language``; English for anything but ``zh``."""
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A fact that would decide something. ``fact`` is its stable name: ``version:trl``, ``setting:bf16``, ``log``."""

    fact: str
    why: Text
    ask: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace ``span`` by ``replacement`` (an empty span inserts)."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A change that repairs. ``edits`` is empty where it can only be described.

    ``alternative``: instead of the fixes before it, not after them. ``repairs``: false where it only changes what is
    reported, so that the run fails as before.
    """

    text: Text
    safety: Safety
    edits: tuple[Edit, ...] = ()
    patch: str | None = None  # unified diff of the user's own (masked) text
    clears: tuple[str, ...] = ()  # rule ids that no longer fire when the patch is applied
    appears: tuple[str, ...] = ()  # rule ids that fire only then
    alternative: bool = False
    repairs: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One leaf of a condition as it was evaluated: ``micro_batch == 1`` → True, with the value seen."""

    text: str
    value: bool | None
    seen: str
    evidence: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One rule's result on one run."""

    rule_id: str
    title: Text
    severity: Severity
    status: Status
    message: Text
    run_id: str
    concludes: str = "fault"  # fault | no_fault: what the finding says about the run
    symptoms: tuple[str, ...] = ()  # signal kinds that this defect produces
    fixes: tuple[Fix, ...] = ()
    evidence: tuple[Span, ...] = ()
    missing: tuple[Missing, ...] = ()
    cases: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()

    @property
    def order(self) -> tuple[int, int, tuple[str, int, int, int, int], str, str]:
        """Fired before cannot-tell, errors first, then by place and id."""
        place = self.evidence[0].order if self.evidence else ("￿", 0, 0, 0, 0)
        return (
            [Status.FIRED, Status.CANNOT_TELL, Status.CLEAR].index(self.status),
            [Severity.ERROR, Severity.WARNING, Severity.INFO].index(self.severity),
            place,
            self.rule_id,
            self.run_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFailure:
    """A check that could not be loaded, or a rule that raised. The rest ran."""

    rule_id: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All findings, in order, and which rules were clear or failed.

    ``ruled_out`` are those of the clear rules that look at such a run and whose condition is certainly false.
    ``repair`` makes the first change of each fired finding in one patch; None if fewer than two findings have one.
    ``titles`` has those of the rules that a fix brings up.
    """

    findings: tuple[Finding, ...] = ()
    clear: tuple[str, ...] = ()
    ruled_out: frozenset[str] = frozenset()
    failures: tuple[RuleFailure, ...] = ()
    ruleset_version: str = ""
    repair: Fix | None = None
    titles: Mapping[str, Text] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def fired(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.status is Status.FIRED)

    @property
    def cannot_tell(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.status is Status.CANNOT_TELL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Where a fact comes from. ``says``: maintainer | reporter | source | reproduction | docs."""

    url: str
    says: str
    note: str = ""
