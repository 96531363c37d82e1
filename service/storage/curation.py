"""The curator's lists: questions without a resolution, those alike as one, and how often each cause was seen. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainmedic.service.storage.outcomes import OpenQuestion, Reason, Sightings

REASONS: tuple[Reason, ...] = ("voted_down", "not_in_kb", "need_input")
"""The worst first."""
MOST_QUESTIONS = 10
ALIKE = 0.62
"""The least cosine of a question and the first one of its group."""
Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnresolvedView:
    """Questions alike that nobody was helped with. ``reason`` is the commonest, ``nearest`` the page that is most like
    the example, empty if none is; days are ISO 8601."""

    count: int
    first: str
    last: str
    reason: Reason
    reasons: Mapping[str, int]
    question: str
    questions: tuple[str, ...]
    answers: tuple[str, ...]
    comments: tuple[str, ...]
    nearest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCauseView:
    """How often a cause, or a mechanism through its causes, came first."""

    id: str
    title: str
    count: int
    last: str


def unresolved_views(
    questions: Sequence[OpenQuestion], embed: Embed, nearest: Callable[[str], str]
) -> tuple[UnresolvedView, ...]:
    """The curator's list, the largest groups first, then the latest; ``nearest`` gives the page most like a text."""
    groups = clustered(questions, embed)
    groups.sort(key=lambda group: (-len(group[1]), -group[1][-1].asked_at.timestamp()))
    return tuple(_view(example, group, nearest) for example, group in groups)


def _view(example: OpenQuestion, group: Sequence[OpenQuestion], nearest: Callable[[str], str]) -> UnresolvedView:
    reasons = Counter(question.reason for question in group)
    return UnresolvedView(
        count=len(group),
        first=group[0].asked_at.date().isoformat(),
        last=group[-1].asked_at.date().isoformat(),
        reason=max(REASONS, key=lambda reason: reasons.get(reason, 0)),
        reasons={reason: reasons[reason] for reason in REASONS if reasons.get(reason)},
        question=example.question,
        questions=tuple(question.question for question in group[-MOST_QUESTIONS:]),
        answers=tuple(question.answer_id for question in group[-MOST_QUESTIONS:]),
        comments=tuple(question.comment for question in group if question.comment),
        nearest=nearest(example.question),
    )


def clustered(questions: Sequence[OpenQuestion], embed: Embed) -> list[tuple[OpenQuestion, list[OpenQuestion]]]:
    """Groups of questions about the same thing, oldest first, each with the one nearest to all of them.

    A question joins the first group whose failure is the same, else the one whose first question is most alike; the
    oldest question comes first, so groups stay what they were when new questions come.
    """
    ordered = sorted(questions, key=lambda question: (question.asked_at, question.answer_id))
    if not ordered:
        return []
    vectors = embed([question.question for question in ordered])
    groups: list[list[int]] = []
    for number, question in enumerate(ordered):
        marks = [ordered[group[0]].fingerprint for group in groups]
        likeness = [float(vectors[number] @ vectors[group[0]]) for group in groups]
        nearest = max(range(len(groups)), key=lambda n: (likeness[n], -n), default=None)
        if question.fingerprint and question.fingerprint in marks:
            groups[marks.index(question.fingerprint)].append(number)
        elif nearest is not None and likeness[nearest] >= ALIKE:
            groups[nearest].append(number)
        else:
            groups.append([number])
    found = []
    for group in groups:
        middle = vectors[group].mean(axis=0)
        example = max(group, key=lambda n: (float(vectors[n] @ middle), -n))
        found.append((ordered[example], [ordered[n] for n in group]))
    return found


def seen_views(
    sightings: Mapping[str, Sightings], titles: Mapping[str, str], mechanism_of: Callable[[str], str]
) -> tuple[SeenCauseView, ...]:
    """Causes and mechanisms by how often they were seen; those that are no longer published (they have no title) are
    left out. ``mechanism_of`` gives the mechanism that a cause belongs to, or an empty text."""
    counts: dict[str, list[Sightings]] = defaultdict(list)
    for cause, seen in sightings.items():
        for id in {cause, mechanism_of(cause)} & titles.keys():
            counts[id].append(seen)
    views = [
        SeenCauseView(
            id=id,
            title=titles[id],
            count=sum(seen.count for seen in listed),
            last=max(seen.last for seen in listed).date().isoformat(),
        )
        for id, listed in counts.items()
    ]
    return tuple(sorted(views, key=lambda view: (-view.count, view.id)))
