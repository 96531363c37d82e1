"""A model's order of the first causes, as far as the pasted text bears it out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainmedic.service.ranking.inference import Cause, Differential, contradicted

REORDERED = 20
"""Causes whose order a model may change."""
SHORTEST_QUOTE = 8
"""Code points of a quote, without spaces: shorter ones occur by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A cause that a model moves to the front, with the pasted line that it rests on."""

    cause_id: str
    quote: str


def reranked(differential: Differential, choices: Sequence[Choice], lines: Sequence[str]) -> Differential:
    """The differential with the choices first, in their order; probabilities and mechanisms remain.

    A choice counts only if it is among the first causes, quotes a part of one of ``lines`` (what the user sent), and
    nothing contradicts it. A cause whose check fired is never overtaken by one without.
    """
    pasted = [" ".join(line.split()) for line in lines]
    first = differential.causes[:REORDERED]
    allowed = {cause.case.id: cause for cause in first if not _refuted(cause, differential)}
    chosen = [
        allowed[choice.cause_id] for choice in choices if choice.cause_id in allowed and _occurs(choice.quote, pasted)
    ]
    causes = list(first)
    for cause_id in reversed(list(dict.fromkeys(cause.case.id for cause in chosen))):
        number = next(n for n, other in enumerate(causes) if other.case.id == cause_id)
        moved = causes.pop(number)
        fired = [n for n in range(number) if causes[n].features["rule_fired"]]
        causes.insert(fired[-1] + 1 if fired and not moved.features["rule_fired"] else 0, moved)
    return replace(differential, causes=(*causes, *differential.causes[REORDERED:]))


def _occurs(quote: str, pasted: Sequence[str]) -> bool:
    text = " ".join(quote.split())
    return len(text.replace(" ", "")) >= SHORTEST_QUOTE and any(text in line for line in pasted)


def _refuted(cause: Cause, differential: Differential) -> bool:
    """Whether the evidence excludes a cause or its mechanism, or speaks rather against than for it."""
    features = cause.features
    if contradicted(features) or features["excluded"] or features["version_outside"] or features["fails"]:
        return True
    belief = differential.belief(cause)
    weighed = belief.weighed if belief is not None else None
    return weighed is not None and (bool(weighed.excluded_by) or weighed.contradiction > weighed.support)
