"""What first messages state is read: the floors of `measure`, on the half that was tuned on and on the blind one."""

from __future__ import annotations

from collections import Counter

from tests.eval.words.measure import is_blind, measured, messages
from tests.every_case import every_case

FLOORS = {"settings": (0.97, 0.85), "versions": (0.97, 0.85), "devices": (0.97, 0.85), "tried": (0.65, 0.75)}


@every_case("blind", [False, True])
def test_facts_of_first_messages_are_read_right_and_mostly_read(blind: bool) -> None:
    scores = measured(blind=blind)
    figures = {kind: (round(score.precision, 3), round(score.recall, 3)) for kind, score in scores.items()}
    low = {
        kind: figure
        for kind, figure in figures.items()
        if any(a < b for a, b in zip(figure, FLOORS[kind], strict=True))
    }
    assert not low, "below the floors; the misses of the blind half stay unread"


def test_both_halves_hold_both_languages() -> None:
    labelled = list(messages())
    assert len({label["id"] for label, _ in labelled}) == 140
    halves = Counter((is_blind(label), text.isascii()) for label, text in labelled)
    assert min(halves.values()) >= 30
