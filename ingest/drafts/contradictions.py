"""The statements of a write-up that the knowledge contradicts. Deterministic and pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trainmedic.ingest.drafts.configurations import blamed_but_absent, failing_fixes
from trainmedic.ingest.drafts.draft import Draft, Mark
from trainmedic.ingest.drafts.options import wrong_options
from trainmedic.ingest.drafts.refuted import refuted
from trainmedic.ingest.drafts.releases import wrong_releases
from trainmedic.ingest.drafts.statements import statements
from trainmedic.kb.audit.defect import DefectSet
from trainmedic.kb.engine.rule import RuleSet
from trainmedic.kb.model.case import Case
from trainmedic.kb.model.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What statements are held against: the published cases by id, the rules, and the known defects."""

    cases: Mapping[str, Case] = field(default_factory=lambda: MappingProxyType({}))
    rules: RuleSet | None = None
    defects: DefectSet = field(default_factory=DefectSet)


def marks_of(draft: Draft, evidence: Evidence, reference: Reference) -> tuple[Mark, ...]:
    said = statements(draft)
    marks = [
        *refuted(draft, said, reference.cases),
        *wrong_options(draft, said),
        *blamed_but_absent(draft, said),
        *wrong_releases(draft, said, reference.cases, reference.defects),
    ]
    if reference.rules is not None:
        marks += failing_fixes(draft, said, reference.rules)
    return tuple(sorted(dict.fromkeys(marks), key=lambda mark: (mark.claim.first_line, mark.claim.text)))
