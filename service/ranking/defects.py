"""The known defects to show beside the causes of an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trainmedic.kb.audit.audit import DefectMatch, audit, closeness, wordings
from trainmedic.kb.audit.defect import Defect
from trainmedic.kb.audit.upgrades import releases_of
from trainmedic.kb.model.evidence import Evidence

MOST = 6
SPEAKS_OF = 0.6
"""Closeness from which a pasted text speaks of a defect."""


def defects_beside(
    evidence: Evidence, defects: Iterable[Defect], mechanisms: Iterable[str], *, complains: bool
) -> tuple[DefectMatch, ...]:
    """The few defects to show with an answer: those that the text or a likely mechanism speaks of, and certain ones.

    Of a run that someone ``complains`` about, a certain one is shown only if its condition holds: that the release has
    it says nothing about the complaint. Only packages whose version was pasted count. The closest to the text come
    first.
    """
    pasted = {name for name, fact in evidence.versions.items() if fact.exact is not None and fact.span is not None}
    concerned = [defect for defect in defects if defect.package in pasted]
    if not concerned:
        return ()
    likely = frozenset(mechanisms)
    sentences = wordings(evidence)
    chosen = []
    for place, match in enumerate(audit(concerned, evidence, releases_of(concerned))):
        near = closeness(match.defect, evidence, sentences)
        speaks = near >= SPEAKS_OF or (match.defect.mechanism in likely)
        if speaks or (match.certain and (match.defect.when or not complains)):
            chosen.append((not speaks, -near, place, match))
    chosen.sort(key=lambda item: item[:3])
    return tuple(match for *_, match in chosen[:MOST])
