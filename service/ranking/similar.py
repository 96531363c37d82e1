"""The threads most like a question: reports of others, with how alike they are. Deterministic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from trainmedic.kb.store.embedder import Embedder
from trainmedic.kb.threads.store import ThreadStore
from trainmedic.kb.threads.thread import Reported, SimilarThread
from trainmedic.service.dialogue.query import Query
from trainmedic.service.ranking.knowledge import Knowledge
from trainmedic.service.ranking.retrieve import KNOWN_ENOUGH

DEPTH = 40
"""Threads of each list that take part."""
SMOOTHING = 30.0
LEAST_COSINE = 0.45
"""Below it a thread is about something else, whatever words it shares."""
AGREED, SHARED = 0.9, 0.5
"""The least share of the best possible fused rank, and of the question's words, for a thread that is alike by its words
alone. Of a few threads each has a good rank."""

MOST = 12
"""Threads that are found."""
SHOWN = 3

NEAR = 20
"""Chunks of pages that vote for what is going on in a thread."""
MECHANISMS = 3
WITNESSES = 5
"""Resolved threads that speak for a mechanism or cause."""


def similar_threads(query: Query, store: ThreadStore, embedder: Embedder) -> tuple[SimilarThread, ...]:
    """The threads that a question's words and meaning find, most alike first, ties by id. Those about something else
    are left out."""
    terms = {**query.pasted, **query.terms}
    words = store.by_words(terms, DEPTH)
    known = embedder.known_share(query.embedded) if query.embedded.strip() else 0.0
    meaning: Sequence[tuple[str, float]] = ()
    if known >= KNOWN_ENOUGH:
        meaning = store.by_vector(np.asarray(embedder.embed_query(query.embedded), np.float32), DEPTH)
    votes: dict[str, float] = {}
    for listed, weight in ((words, 1.0), (meaning, known)):
        for rank, (name, _) in enumerate(listed, start=1):
            votes[name] = votes.get(name, 0.0) + weight * SMOOTHING / (SMOOTHING + rank)
    best_vote = (1.0 + known) * SMOOTHING / (SMOOTHING + 1)
    cosines: Mapping[str, float] = dict(meaning)
    agreed = [name for name, vote in votes.items() if vote / best_vote >= AGREED]
    shared = store.shared_words(agreed, terms)
    alike = [
        (vote / best_vote, name)
        for name, vote in votes.items()
        if cosines.get(name, 0.0) >= LEAST_COSINE or shared.get(name, 0.0) >= SHARED
    ]
    alike.sort(key=lambda item: (-item[0], item[1]))
    likeness = {name: value for value, name in alike[:MOST]}
    return tuple(SimilarThread(thread=thread, likeness=likeness[thread.id]) for thread in store.get(likeness))


def shown(similar: Sequence[SimilarThread]) -> tuple[SimilarThread, ...]:
    """The threads that an answer shows: resolved ones first."""
    return tuple(sorted(similar, key=lambda item: not item.thread.resolution)[:SHOWN])


def reports_of(similar: Sequence[SimilarThread], sources: Mapping[str, Sequence[str]]) -> Mapping[str, Reported]:
    """The reports of resolved threads on causes and mechanisms, by their ids.

    A thread speaks for the causes whose pages name it as a source (``sources``: address → causes), and for the
    mechanisms that its resolution is about.
    """
    reports: dict[str, Reported] = {}
    for item in [item for item in similar if item.thread.resolution][:WITNESSES]:
        thread = item.thread
        shares = {cause: 1.0 for cause in sources.get(thread.url.partition("#")[0], ())}
        for name, share in {**thread.mechanisms, **shares}.items():
            earlier = reports.get(name, Reported(weight=0.0, threads=()))
            weight = min(1.0, earlier.weight + share * item.likeness)
            reports[name] = Reported(weight=weight, threads=(*earlier.threads, thread))
    return reports


def mechanisms_near(vector: npt.NDArray[np.float32], knowledge: Knowledge) -> Mapping[str, float]:
    """The mechanisms of the pages nearest to a vector → share of their votes, the first three."""
    votes: dict[str, float] = {}
    numbers, _ = knowledge.index.vectors.ranked(vector, NEAR)
    for rank, number in enumerate(numbers.tolist(), start=1):
        for cause in knowledge.index.passages.causes[number]:
            for place in knowledge.places.get(cause, ())[:1]:
                votes[place.mechanism] = votes.get(place.mechanism, 0.0) + 1 / rank
    whole = sum(votes.values())
    best = sorted(votes.items(), key=lambda item: (-item[1], item[0]))[:MECHANISMS]
    return {mechanism: round(vote / whole, 3) for mechanism, vote in best}
