"""What `/readyz` asks of the outside, and how often."""

from __future__ import annotations

import asyncio

from trainmedic.service.api.probes import CACHE_S, CachedProbe


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
