"""The result of a condition or of a rule module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.kb.engine.values import show
from trainmedic.kb.model.place import Span
from trainmedic.kb.model.report import Safety, Term
from trainmedic.kb.model.run import Option, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A result of a rule module: settings to write, options to give another name.

    ``alternative`` as in `kb.model.report.Fix`.
    """

    safety: Safety
    set: Mapping[str, Scalar] = field(default_factory=lambda: MappingProxyType({}))
    rename: tuple[tuple[Option, str], ...] = ()
    alternative: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """True: it fires. False: it is clear. None: it cannot be told, and ``missing`` names the facts that would decide.

    ``user_provided``: something that holds was given by the user; without it an unknown outcome is not reported.
    ``values`` fills message placeholders of the same name, before the condition language is asked. ``changes`` are
    offered before the page's fixes.
    """

    value: bool | None
    evidence: tuple[Span, ...] = ()
    missing: tuple[str, ...] = ()
    user_provided: bool = False
    terms: tuple[Term, ...] = ()
    values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    changes: tuple[Change, ...] = ()


CLEAR = Outcome(value=False)
NOT_SHOWN = Outcome(value=None)
"""Nothing to report, but not clear: a log is mostly an excerpt, and what it does not show rules nothing out."""


def fires(*spans: Span, **values: object) -> Outcome:
    """The rule fires on these places; ``values`` fill the message."""
    shown = {name: show(value) for name, value in values.items()}
    return Outcome(value=True, evidence=tuple(dict.fromkeys(spans)), user_provided=True, values=shown)
