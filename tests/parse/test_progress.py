"""How far a reading is, for whoever watches it."""

from __future__ import annotations

from trainmedic.kb.parse.text.progress import ReadingProgress, observer


def test_an_observer_hears_the_position_within_all_parts() -> None:
    heard: list[tuple[int, int]] = []
    token = observer.set(lambda done, total: heard.append((done, total)))
    try:
        progress = ReadingProgress(30)
        progress.within(5)
        progress.finish(10)
        progress.within(7)
    finally:
        observer.reset(token)
    assert heard == [(5, 30), (10, 30), (17, 30)]


def test_nobody_hears_of_a_reading_without_an_observer() -> None:
    ReadingProgress(30).finish(30)
