"""Statements that a related case refutes: those that are most like the claim of one of its refutations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from trainmedic.ingest.drafts.draft import Draft, Mark
from trainmedic.ingest.drafts.likeness import Weights, denies, figures_of, turns_of, words_of
from trainmedic.ingest.drafts.statements import Statement
from trainmedic.ingest.threads.summary import sentences
from trainmedic.kb.model.case import Case, Refutation

COVERED = 0.44
"""The share of a claim's weight that a sentence must have to make that claim."""
COVERED_WITH_FIGURE = 0.34
"""The same if they share a number, which hardly happens by chance."""
OBSERVED = 0.62
"""The same for a sentence that describes what was seen."""
RELATED = 0.6
"""The same for a case that is not the first."""
LEAST_WORDS = 6
"""Words of a claim of another case than the first: "a lower learning rate" is right elsewhere."""
OWN = ("cause", "fix", "confirm")


def refuted(draft: Draft, said: Sequence[Statement], cases: Mapping[str, Case]) -> Iterator[Mark]:
    """At most one mark a statement: the refutation that it is most like, of the first case that has any."""
    language = "zh" if draft.language == "zh" else "en"
    weights = _weights(tuple(r.claim.get(language) for case in cases.values() for r in case.refutations))
    related = [case for name in draft.related if (case := cases.get(name)) is not None and _fits(case, draft)]
    for number, statement in enumerate(said):
        if statement.kind == "code" or statement.section == "no_help":
            continue
        denied = denies(statement.text) or _denied_by(statement, said[number + 1 : number + 2])
        for case in related:
            least = 0.0 if case.id == draft.related[0] else RELATED
            claims = [
                r
                for r in case.refutations
                if denied <= denies(r.claim.get(language)) and _claims(statement, r, case, weights, language, least)
            ]
            if claims:
                words = words_of(statement.text)
                best = max(claims, key=lambda r: weights.resemblance(words_of(r.claim.get(language)), words))
                yield Mark(kind="refuted", claim=statement.passage, page=case.id, statement=best.claim, why=best.why)
                break


@lru_cache(maxsize=4)
def _weights(claims: tuple[str, ...]) -> Weights:
    return Weights(claims)


def _fits(case: Case, draft: Draft) -> bool:
    """Whether the case is about the same framework, algorithm and signals, as far as both name them."""
    pairs = (
        (case.frameworks, draft.values("framework")),
        (case.algorithms, draft.values("algorithm")),
        (case.model_families, draft.values("model_family")),
    )
    return all(not known or not named or set(known) & set(named) for known, named in pairs) and bool(
        set(case.signals) & set(draft.values("signal"))
    )


def _denied_by(statement: Statement, after: Sequence[Statement]) -> bool:
    """Whether the short sentence right behind says that it is not so or did not help."""
    return any(
        other.passage.first_line == statement.passage.first_line and len(other.text) < 40 and denies(other.text)
        for other in after
    )


def _claims(
    statement: Statement, refutation: Refutation, case: Case, weights: Weights, language: str, least: float
) -> bool:
    claim = refutation.claim.get(language)
    words, claimed = words_of(statement.text), words_of(claim)
    wanted, figures = turns_of(claim), figures_of(claim)
    if (wanted and not wanted & turns_of(statement.text)) or figures & {"true", "false", "none"} - words:
        return False
    needed = COVERED_WITH_FIGURE if figures & words else OBSERVED if statement.section == "symptom" else COVERED
    if weights.coverage(claimed, words) < max(needed, least) or (least and len(claimed) < LEAST_WORDS):
        return False
    # What the page itself says of its own case is no contradiction of it.
    alike = weights.likeness(claimed, words)
    texts = (*(case.section(name, language) for name in OWN), refutation.why.get(language))
    own = (sentence for text in texts for sentence in sentences(text))
    return all(weights.likeness(words_of(sentence), words) <= alike for sentence in own)
