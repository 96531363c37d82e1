"""The curator's lists as they leave the service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trainmedic.service.dialogue.turn import Turn
from trainmedic.service.storage.outcomes import OpenQuestion, Reason, Sightings
from trainmedic.service.storage.unresolved import Embed, clustered

REASONS: tuple[Reason, ...] = ("voted_down", "not_in_kb", "need_input")
"""The worst first."""
MOST_QUESTIONS = 10


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurringView:
    """A failure that several conversations were about. ``cause`` is what its latest answer named, if anything."""

    count: int
    last: str
    question: str
    cause: str
    answer: str


def unresolved_views(
    questions: Sequence[OpenQuestion], embed: Embed, nearest: Callable[[str], str]
) -> tuple[UnresolvedView, ...]:
    """The curator's list; ``nearest`` gives the id of the page that is most like a text."""
    views = []
    for cluster in clustered(questions, embed):
        reasons = cluster.reasons
        views.append(
            UnresolvedView(
                count=len(cluster.questions),
                first=cluster.first.date().isoformat(),
                last=cluster.last.date().isoformat(),
                reason=max(REASONS, key=lambda reason: reasons.get(reason, 0)),
                reasons={reason: reasons[reason] for reason in REASONS if reasons.get(reason)},
                question=cluster.example.question,
                questions=tuple(question.question for question in cluster.questions[-MOST_QUESTIONS:]),
                answers=tuple(question.answer_id for question in cluster.questions[-MOST_QUESTIONS:]),
                comments=tuple(question.comment for question in cluster.questions if question.comment),
                nearest=nearest(cluster.example.question),
            )
        )
    return tuple(views)


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


def recurring_views(found: Sequence[tuple[Turn, Sightings]]) -> tuple[RecurringView, ...]:
    return tuple(
        RecurringView(
            count=seen.count,
            last=seen.last.date().isoformat(),
            question=turn.question,
            cause=turn.causes[0] if turn.verdict == "answered" and turn.causes else "",
            answer=turn.answer_id,
        )
        for turn, seen in found
    )
