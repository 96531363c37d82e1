"""What `/readyz` asks of the outside, and how often."""

from __future__ import annotations

import asyncio

from fastapi.testclient import TestClient

from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.api.probes import CACHE_S, CachedProbe, results
from trainmedic.service.settings import Settings

FOREVER_S = 3600.0


def test_an_endpoint_is_asked_once_by_all_who_look_at_the_same_time() -> None:
    asked, clock = [0], [0.0]

    async def probe() -> str | None:
        asked[0] += 1
        await asyncio.sleep(0)
        return "timeout" if asked[0] == 1 else None

    remembered = CachedProbe(probe, now=lambda: clock[0])

    async def looks(count: int) -> set[str | None]:
        return set(await asyncio.gather(*(remembered() for _ in range(count))))

    async def scenario() -> None:
        assert await looks(20) == {"timeout"}
        clock[0] = CACHE_S / 2
        assert await looks(1) == {"timeout"}
        assert asked == [1]
        clock[0] = CACHE_S + 1
        assert await looks(20) == {None}
        assert asked == [2]

    asyncio.run(scenario())


def test_what_hangs_is_down_in_time_and_is_not_asked_again_before_it_answers() -> None:
    clock, begun, answer = [0.0], [0], asyncio.Event()

    async def probe() -> str | None:
        begun[0] += 1
        await answer.wait()
        return None

    hanging = CachedProbe(probe, now=lambda: clock[0], within_s=0.01)

    async def scenario() -> None:
        for _ in range(5):
            assert set(await asyncio.gather(*(hanging() for _ in range(20)))) == {"timeout"}
            clock[0] += CACHE_S + 1
        assert begun == [1]
        answer.set()
        await asyncio.sleep(0)
        assert await hanging() is None
        assert begun == [2]

    asyncio.run(scenario())


def test_several_that_hang_take_no_longer_than_one() -> None:
    async def hangs() -> str | None:
        await asyncio.sleep(FOREVER_S)
        return None

    async def scenario() -> None:
        probes = {str(number): CachedProbe(hangs, within_s=0.1) for number in range(50)}
        async with asyncio.timeout(2):  # one after the other would take five seconds
            assert set((await results(probes)).values()) == {"timeout"}

    asyncio.run(scenario())


def test_a_service_beside_something_that_hangs_is_degraded_and_shows_its_figures(advisor: Advisor) -> None:
    async def hangs() -> str | None:
        await asyncio.sleep(FOREVER_S)
        return None

    with TestClient(create_app(advisor, Settings(), {"history": hangs})) as client:
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
        assert ready.json()["down"] == {"history": "timeout"}
        assert 'trainmedic_check_ok{check="history"} 0.0' in client.get("/metrics").text


def test_what_the_model_is_used_for_is_told_while_it_is_there(advisor: Advisor) -> None:
    trouble: list[str | None] = [None]

    async def probe() -> str | None:
        return trouble[0]

    async def standing() -> str | None:
        return "tiny-1.5b: elects (measured)"

    def told() -> object:
        with TestClient(create_app(advisor, Settings(), {"model": probe}, standing=standing)) as client:
            return client.get("/readyz").json()["model"]

    assert told() == "tiny-1.5b: elects (measured)"
    trouble[0] = "absent"
    assert told() is None
