"""The glossary concepts that causes are about, for comparing them with those of a question. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trainmedic.kb.glossary.terms import Glossary
from trainmedic.kb.model.case import Case


def concepts_of(cases: Iterable[Case], glossary: Glossary) -> dict[str, list[str]]:
    """The concepts of each case by its id, sorted: of its title, symptoms and cause, in both languages."""
    concepts = {}
    for case in cases:
        texts = [case.title.en, case.title.zh, *(s for group in case.symptoms.values() for s in group)]
        texts += [case.section("symptom", "en"), case.section("symptom", "zh"), case.section("cause", "en")]
        texts += [text for r in case.refutations for text in (r.claim.en, r.claim.zh)]
        concepts[case.id] = sorted(glossary.ids("\n".join(texts)))
    return concepts


def titles_of(cases: Iterable[Case], glossary: Glossary) -> dict[str, list[str]]:
    """The concepts of each case's title by its id, sorted, both languages."""
    return {case.id: sorted(glossary.ids(f"{case.title.en}\n{case.title.zh}")) for case in cases}
