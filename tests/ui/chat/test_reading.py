"""How far the reading of a large log has got is said while its answer is awaited."""

from __future__ import annotations

import asyncio

import pytest

from trainmedic.kb.errors import InvalidRequest
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.parse.pipeline import parse
from trainmedic.kb.parse.text.progress import observer
from trainmedic.service.answering import Delta, Parts
from trainmedic.ui.chat.reading import EVERY_S, Progress, with_progress


async def seen(parts: Parts) -> list[object]:
    """The parts; of a progress what a reader is told of it then."""
    return [part.megabytes if isinstance(part, Progress) else part async for part in with_progress(parts)]


def test_a_parse_reports_how_far_it_has_read() -> None:
    log = "\n".join(f"{{'loss': 1.5, 'step': {number}}}" for number in range(3_500))
    reports: list[tuple[int, int]] = []
    token = observer.set(lambda read, total: reports.append((read, total)))
    try:
        parse("why?", (Attachment(name="train.log", content=log),))
    finally:
        observer.reset(token)
    assert [read for read, _ in reports] == sorted(read for read, _ in reports)
    assert len(reports) >= 5
    assert reports[-1] == (len(log) + 4, len(log) + 4)


def test_the_progress_of_a_large_input_comes_before_the_first_part_and_never_goes_back() -> None:
    async def parts() -> Parts:
        report = observer.get()
        assert report is not None
        for read in (1_200_000, 300_000, 1_900_000):
            report(read, 2_000_000)
            await asyncio.sleep(1.5 * EVERY_S)
        yield Delta("lead", "a")
        yield Delta("lead", "b")

    shown = asyncio.run(seen(parts()))
    assert shown == [("1.2", "2.0"), ("1.9", "2.0"), Delta("lead", "a"), Delta("lead", "b")]


def test_a_small_input_has_no_progress_and_a_failure_stays_one() -> None:
    async def parts() -> Parts:
        report = observer.get()
        assert report is not None
        report(100, 200)
        await asyncio.sleep(1.5 * EVERY_S)
        for error in [InvalidRequest("too long")]:
            raise error
        yield Delta("lead", "")

    with pytest.raises(InvalidRequest):
        asyncio.run(seen(parts()))


def test_stopping_while_it_is_read_ends_the_work() -> None:
    ended = []

    async def parts() -> Parts:
        try:
            await asyncio.sleep(60)
            yield Delta("lead", "")
        finally:
            ended.append(True)

    async def stopped() -> None:
        task = asyncio.ensure_future(seen(parts()))
        await asyncio.sleep(EVERY_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped())
    assert ended == [True]
