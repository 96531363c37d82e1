"""What a condition, or a rule's own module, answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """True: it fires. False: it is clear. None: it cannot be told, and ``missing`` names the facts that would decide.

    ``user_provided`` says that something holds which the user himself gave (else an unknown outcome is not reported).
    ``values`` fills message placeholders of the same name before the condition language is asked.
    """

    value: bool | None
    evidence: tuple[Span, ...] = ()
    missing: tuple[str, ...] = ()
    user_provided: bool = False
    terms: tuple[Term, ...] = ()
    values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
