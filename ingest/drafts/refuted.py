"""Sentences that a related case refutes: those that are most like the claim of one of its refutations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from trainmedic.ingest.drafts.draft import Draft, Mark, Passage
from trainmedic.ingest.drafts.likeness import Weights, denies, figures_of, turns_of, words_of
from trainmedic.ingest.drafts.sections import prose_lines
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
LEAST_SENTENCE = 4
"""Letters and digits of a sentence: items of Chinese lists are short."""
SHORT = 40
"""Code points of a sentence like "That did not help", which denies the one before it."""
OWN = ("cause", "fix", "confirm")


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    section: str
    denied: bool


def refuted(draft: Draft, cases: Sequence[Case]) -> Iterator[Mark]:
    """At most one mark a sentence: the refutation that it is most like, of the first case that has any."""
    language = "zh" if draft.language == "zh" else "en"
    weights = _weights(tuple(r.claim.get(language) for case in cases for r in case.refutations))
    related = [case for name in draft.related for case in cases if case.id == name and _fits(case, draft)]
    for section, number, line in prose_lines(draft.blocks):
        said = list(sentences(line, LEAST_SENTENCE)) if section != "no_help" else []
        for text, after in zip(said, (*said[1:], ""), strict=False):
            statement = _Statement(text, section, denies(text) or (len(after) < SHORT and denies(after)))
            for case in related:
                least = 0.0 if case.id == draft.related[0] else RELATED
                best = _refutation(statement, case, weights, language, least)
                if best is not None:
                    passage = Passage(first_line=number, last_line=number, text=text)
                    yield Mark(kind="refuted", claim=passage, page=case.id, statement=best.claim, why=best.why)
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
    alike = all(not known or not named or set(known) & set(named) for known, named in pairs)
    return alike and bool(set(case.signals) & set(draft.values("signal")))


def _refutation(said: _Statement, case: Case, weights: Weights, language: str, least: float) -> Refutation | None:
    """The refutation of the claim that the statement makes and is most like."""
    words = words_of(said.text)
    claims = [(r, words_of(r.claim.get(language))) for r in case.refutations if _claims(said, r, language)]
    made = [
        (weights.coverage(claim, words) + weights.likeness(claim, words), refutation)
        for refutation, claim in claims
        if weights.coverage(claim, words) >= _needed(said, refutation, language, least)
        and (not least or len(claim) >= LEAST_WORDS)
        and not _says_itself(case, refutation, words, weights, language)
    ]
    return max(made, key=lambda pair: pair[0])[1] if made else None


def _claims(said: _Statement, refutation: Refutation, language: str) -> bool:
    """Whether the statement neither denies what is claimed nor names another direction or truth value."""
    claim = refutation.claim.get(language)
    wanted, truths = turns_of(claim), figures_of(claim) & {"true", "false", "none"}
    turns = not wanted or bool(wanted & turns_of(said.text))
    return said.denied <= denies(claim) and turns and truths <= words_of(said.text)


def _needed(said: _Statement, refutation: Refutation, language: str, least: float) -> float:
    if figures_of(refutation.claim.get(language)) & words_of(said.text):
        return max(COVERED_WITH_FIGURE, least)
    return max(OBSERVED if said.section == "symptom" else COVERED, least)


def _says_itself(case: Case, refutation: Refutation, words: frozenset[str], weights: Weights, language: str) -> bool:
    """Whether the page says of its own case what the statement says: that is no contradiction of it."""
    alike = weights.likeness(words_of(refutation.claim.get(language)), words)
    texts = (*(case.section(name, language) for name in OWN), refutation.why.get(language))
    own = (sentence for text in texts for sentence in sentences(text))
    return any(weights.likeness(words_of(sentence), words) > alike for sentence in own)
