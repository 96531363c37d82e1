"""The causes of a diagnosis in one language, shaped for the wire. Pure."""

from __future__ import annotations

from trainmedic.kb.model.report import Status
from trainmedic.kb.projection import project
from trainmedic.service.answer import CauseView, MechanismRef, RefutationView
from trainmedic.service.composition.citations import plain_text
from trainmedic.service.ranking.diagnose import Diagnosis
from trainmedic.service.ranking.inference import Cause


def fix_of(cause: Cause, diagnosis: Diagnosis, language: str) -> str:
    """What to change; for a mechanism what each origin that is left asks for, the likeliest first."""
    belief = diagnosis.differential.belief(cause) if cause.case.level == "mechanism" else None
    if belief is None:
        return cause.case.section("fix", language)
    colon = "：" if language == "zh" else ": "
    origins = [state.origin for state in belief.origins()]
    return "\n".join(f"- {origin.title.get(language)}{colon}{origin.fix.get(language)}" for origin in origins)


def cause_views(diagnosis: Diagnosis, language: str) -> tuple[CauseView, ...]:
    return tuple(
        CauseView(
            rank=rank,
            case_id=cause.case.id,
            title=cause.case.title.get(language),
            cause=plain_text(cause.case.section("cause", language)),
            fix=plain_text(fix_of(cause, diagnosis, language)),
            confidence=cause.confidence,
            score=round(cause.probability, 4),
            evidence_grade=cause.case.evidence,
            cases=(cause.case.id, *cause.case.related),
            findings=tuple(sorted({f.rule_id for f in cause.findings if f.status is Status.FIRED})),
            refutations=tuple(project(RefutationView, item, language) for item in cause.case.refutations),
            why=tuple(name for name, value in cause.features.items() if value > 0),
            level=cause.case.level,
            mechanism=_mechanism_of(cause, diagnosis, language),
        )
        for rank, cause in enumerate(diagnosis.causes, start=1)
    )


def _mechanism_of(cause: Cause, diagnosis: Diagnosis, language: str) -> MechanismRef | None:
    belief = diagnosis.differential.belief(cause)
    if belief is None:
        return None
    return MechanismRef(id=belief.id, title=belief.weighed.mechanism.title.get(language))
