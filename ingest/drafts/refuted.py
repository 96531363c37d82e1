"""Statements that a related case refutes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from trainmedic.ingest.drafts.draft import Draft, Mark, Passage
from trainmedic.ingest.drafts.likeness import Weights, denies, figures_of, turns_of, words_of
from trainmedic.ingest.drafts.statements import Statement
from trainmedic.ingest.summary import sentences
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
MOST_SHORT = 24
"""Code points of items that only together say something."""
OWN = ("cause", "fix", "confirm")


@dataclass(frozen=True, slots=True)
class _Texts:
    """What a sentence is compared with: all claims, as the weights of their words, in one language."""

    weights: Weights
    language: str


def refuted(draft: Draft, said: Sequence[Statement], cases: Mapping[str, Case]) -> Iterator[Mark]:
    """At most one mark a statement: the refutation that it is most like, of the first case that has any."""
    language = "zh" if draft.language == "zh" else "en"
    texts = _Texts(_weights(_claims_of(cases, language)), language)
    candidates = [
        case for identity in draft.related if (case := cases.get(identity)) is not None and _fits(case, draft)
    ]
    refuted_items: set[str] = set()
    for statement in (*said, *_lists(said)):
        if statement.kind == "code" or statement.section == "no_help":
            continue
        denied = _denied(statement, said)
        for case in candidates:
            least = 0.0 if case.id == draft.related[0] else RELATED
            claims = [
                r
                for r in case.refutations
                if denied <= denies(r.claim.get(language)) and _claims(statement, r, case, texts, least)
            ]
            claims = [r for r in claims if statement.kind != "list" or r.claim.en not in refuted_items]
            if claims:
                words = words_of(statement.text)
                best = max(claims, key=lambda r: texts.weights.resemblance(words_of(r.claim.get(language)), words))
                refuted_items.add(best.claim.en)
                yield Mark(kind="refuted", claim=statement.passage, page=case.id, statement=best.claim, why=best.why)
                break


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


def _claims_of(cases: Mapping[str, Case], language: str) -> tuple[str, ...]:
    return tuple(refutation.claim.get(language) for case in cases.values() for refutation in case.refutations)


@lru_cache(maxsize=4)
def _weights(claims: tuple[str, ...]) -> Weights:
    return Weights(claims)


def _denied(statement: Statement, said: Sequence[Statement]) -> bool:
    """Whether the statement, or the sentence right behind it, says that it is not so or did not help."""
    if denies(statement.text):
        return True
    line = statement.passage.first_line
    after = [other for other in said if other.passage.first_line == line]
    later = after[after.index(statement) + 1 :] if statement in after else []
    return any(denies(other.text) and len(other.text) < 40 for other in later[:1])


def _lists(said: Sequence[Statement]) -> Iterator[Statement]:
    """Consecutive short items as one statement: "precision", "out-of-bounds access", "synchronisation"."""
    run: list[Statement] = []
    for statement in (*said, None):
        short = statement is not None and statement.kind == "item" and len(statement.text) <= MOST_SHORT
        if (
            statement is not None
            and short
            and (not run or statement.passage.first_line == run[-1].passage.last_line + 1)
        ):
            run.append(statement)
            continue
        if len(run) > 2:
            passage = Passage(
                first_line=run[0].passage.first_line,
                last_line=run[-1].passage.last_line,
                text=" ".join(item.text for item in run),
            )
            yield Statement(passage=passage, section=run[0].section, kind="list")
        run = [statement] if statement is not None and short else []


def _claims(statement: Statement, refutation: Refutation, case: Case, texts: _Texts, least: float) -> bool:
    claim = refutation.claim.get(texts.language)
    words, claimed = words_of(statement.text), words_of(claim)
    turns, wanted = turns_of(statement.text), turns_of(claim)
    if wanted and not wanted & turns:
        return False
    figures = figures_of(claim)
    if figures & {"true", "false", "none"} - words:
        return False
    shared = bool(figures & words)
    needed = COVERED_WITH_FIGURE if shared else OBSERVED if statement.section == "symptom" else COVERED
    if texts.weights.coverage(claimed, words) < max(needed, least) or (least and len(claimed) < LEAST_WORDS):
        return False
    # What the page itself says of its own case is no contradiction of it.
    alike = texts.weights.likeness(claimed, words)
    return all(texts.weights.likeness(words_of(own), words) <= alike for own in _own(case, refutation, texts.language))


def _own(case: Case, refutation: Refutation, language: str) -> Iterator[str]:
    for text in (*(case.section(name, language) for name in OWN), refutation.why.get(language)):
        yield from sentences(text)
