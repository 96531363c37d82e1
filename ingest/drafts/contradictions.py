"""The statements of a write-up that the knowledge contradicts. Deterministic and pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.ingest.drafts.draft import Draft, Mark
from trainmedic.kb.engine.defect import DefectSet
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What statements are held against: the published cases by id, the rules, and the known defects."""

    cases: Mapping[str, Case] = field(default_factory=lambda: MappingProxyType({}))
    rules: RuleSet | None = None
    defects: DefectSet = field(default_factory=DefectSet)


def marks_of(draft: Draft, evidence: Evidence, knowledge: Reference) -> tuple[Mark, ...]:
    return ()
