"""Questions that were not resolved, those alike as one: the curator's list. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from trainmedic.service.storage.outcomes import OpenQuestion, Reason

ALIKE = 0.62
"""The least cosine of a question and the first one of its cluster."""
Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Questions about the same thing, oldest first; ``example`` is the one nearest to all of them."""

    questions: tuple[OpenQuestion, ...]
    example: OpenQuestion

    @property
    def first(self) -> datetime:
        return self.questions[0].asked_at

    @property
    def last(self) -> datetime:
        return self.questions[-1].asked_at

    @property
    def reasons(self) -> Mapping[Reason, int]:
        return Counter(question.reason for question in self.questions)


def clustered(questions: Sequence[OpenQuestion], embed: Embed) -> tuple[Cluster, ...]:
    """The largest clusters first, then the latest.

    A question joins the first cluster whose failure is the same, else the one whose first question is most alike; the
    oldest question comes first, so clusters stay what they were when new questions come.
    """
    ordered = sorted(questions, key=lambda question: (question.asked_at, question.answer_id))
    if not ordered:
        return ()
    vectors = embed([question.question for question in ordered])
    groups: list[list[int]] = []
    for number, question in enumerate(ordered):
        same = (n for n, group in enumerate(groups) if _same(question, ordered[group[0]]))
        likeness = [float(vectors[number] @ vectors[group[0]]) for group in groups]
        nearest = max(range(len(groups)), key=lambda n: (likeness[n], -n), default=None)
        alike = nearest if nearest is not None and likeness[nearest] >= ALIKE else None
        chosen = next(same, alike)
        if chosen is None:
            groups.append([number])
        else:
            groups[chosen].append(number)
    clusters = []
    for group in groups:
        middle = vectors[group].mean(axis=0)
        example = max(group, key=lambda n: (float(vectors[n] @ middle), -n))
        clusters.append(Cluster(questions=tuple(ordered[n] for n in group), example=ordered[example]))
    return tuple(sorted(clusters, key=lambda cluster: (-len(cluster.questions), -cluster.last.timestamp())))


def _same(question: OpenQuestion, other: OpenQuestion) -> bool:
    return bool(question.fingerprint) and question.fingerprint == other.fingerprint
