"""Sentences that a related case refutes: those that are most like the claim of one of its refutations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from trainmedic.ingest.drafts.draft import Draft, Mark, Passage
from trainmedic.ingest.drafts.likeness import TRUTHS, Weights, denies, figures_of, turns_of, words_of
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


_weights = lru_cache(maxsize=4)(Weights)


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
        said = list(sentences(line.removeprefix("- "), LEAST_SENTENCE)) if section != "no_help" else []
        for text, after in zip(said, (*said[1:], ""), strict=False):
            statement = _Statement(text, section, denies(text) or (len(after) < SHORT and denies(after)))
            for case in related:
                least = 0.0 if case.id == draft.related[0] else RELATED
                best = _refutation(statement, case, weights, language, least)
                if best is not None:
                    passage = Passage(first_line=number, last_line=number, text=text)
                    yield Mark(kind="refuted", claim=passage, page=case.id, statement=best.claim, why=best.why)
                    break


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
    best, most = None, 0.0
    words, turns = words_of(said.text), turns_of(said.text)
    for refutation in case.refutations:
        text = refutation.claim.get(language)
        claim, wanted, figures = words_of(text), turns_of(text), figures_of(text)
        if said.denied > denies(text) or (wanted and not wanted & turns) or figures & TRUTHS - words:
            continue
        covered, likeness = weights.coverage(claim, words), weights.likeness(claim, words)
        needed = COVERED_WITH_FIGURE if figures & words else OBSERVED if said.section == "symptom" else COVERED
        if covered < max(needed, least) or (least and len(claim) < LEAST_WORDS) or covered + likeness <= most:
            continue
        # What the page itself says of its own case is not a contradiction of it.
        texts = (*(case.section(name, language) for name in OWN), refutation.why.get(language))
        own = (words_of(sentence) for text in texts for sentence in sentences(text))
        if all(weights.likeness(sentence, words) <= likeness for sentence in own):
            best, most = refutation, covered + likeness
    return best
