"""Pages of the lists; callers see their items only."""

from __future__ import annotations

from dataclasses import dataclass

from trainmedic.ui.client.models import CaseSummary, RuleSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePage:
    """Some of the cases."""

    items: tuple[CaseSummary, ...]
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePage:
    """Some of the rules."""

    items: tuple[RuleSummary, ...]
    total: int = 0
