"""What tests see of the local Slack, and how they wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from tests.slack.fake.files import Files
from tests.slack.fake.sending import Courier
from tests.slack.fake.values import PATIENCE_S, Call, Delivery, Json, Message, Refusal
from tests.slack.fake.world import Stream, World


class Sees:
    """Looking at the workspace, and waiting for what is about to happen."""

    world: World
    files: Files
    courier: Courier
    deliveries: list[Delivery]

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def messages(self, channel: str | None = None, thread_ts: str | None = None) -> list[Message]:
        """What the bot has posted for all to see, in order."""
        return [
            each
            for each in self.world.messages
            if each.bot_id is not None
            and each.sent
            and each.ephemeral_to is None
            and channel in (None, each.channel)
            and thread_ts in (None, each.thread_ts)
        ]

    def ephemerals(self, user: str | None = None) -> list[Message]:
        """What only one person sees."""
        return [each for each in self.world.messages if each.ephemeral_to and user in (None, each.ephemeral_to)]

    def message(self, ts: str) -> Message:
        """The message of this timestamp, whoever wrote or sees it."""
        found = [each for each in self.world.messages if each.ts == ts]
        assert found, f"there is no message {ts}"
        return found[0]

    def replies(self, ts: str) -> list[Message]:
        """Everything that was said below a message, by anybody."""
        return [each for each in self.world.messages if each.thread_ts == ts and each.ts != ts]

    def calls(self, method: str | None = None) -> list[Call]:
        """Web API calls, faulted and refused ones too."""
        return [call for call in self.world.calls if method in (None, call.method)]

    def count(self, method: str) -> int:
        """How often a method was called."""
        return len(self.calls(method))

    def rates(self, method: str) -> int:
        """Calls of the method in the last minute."""
        return self.world.rates(method)

    @property
    def streams(self) -> list[Stream]:
        """Streamed messages with their state, cards and pieces."""
        return list(self.world.streams.values())

    @property
    def views(self) -> list[Json]:
        """Open views."""
        return list(self.world.views.values())

    @property
    def statuses(self) -> list[Json]:
        """States and status texts of conversations, in order; ``by`` says which method set them."""
        return list(self.world.statuses)

    @property
    def prompts(self) -> list[Json]:
        """Suggested prompts that people see (a call with a thread under agent_view is only in ``world.ignored``)."""
        return list(self.world.prompts)

    @property
    def reactions(self) -> list[tuple[str, str, str]]:
        """(channel, ts, name) of the bot's reactions."""
        return list(self.world.reactions)

    @property
    def downloads(self) -> list[tuple[str, int]]:
        """(file id, status) of each request for a private address."""
        return list(self.files.downloads)

    @property
    def leaks(self) -> list[str]:
        """Authorization headers that another host was shown."""
        return list(self.files.leaks)

    @property
    def connections(self) -> int:
        """Live Socket Mode connections that payloads go to."""
        return sum(not link.retired for link in list(self.courier.links))

    @property
    def opened(self) -> int:
        """Socket Mode connections made so far."""
        return self.courier.opened

    # ── strictness ───────────────────────────────────────────────────────────────────────────────────────────────────
    @property
    def refusals(self) -> list[Refusal]:
        """All that was not accepted from the bot."""
        return list(self.world.refusals)

    def refused(self, error: str, where: str | None = None) -> list[Refusal]:
        """The refusals with this error (and of this method), which are now expected; there has to be one."""
        found = [each for each in self.refusals if each.error == error and where in (None, each.where)]
        assert found, f"nothing was refused with {error}; refused were {self.refusals}"
        for each in found:
            each.expected = True
        return found

    def assert_nothing_unexpected(self) -> None:
        """Fail where the bot was refused something that no test has asserted."""
        left = [each for each in self.refusals if not each.expected]
        assert not left, "refused: " + "; ".join(f"{each.where}: {each.error} {each.detail}".strip() for each in left)

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def wait(self, true: Callable[[], bool], what: str = "it", patience_s: float = PATIENCE_S) -> None:
        """Block until it is true. Not from the bot's own event loop."""
        with self.world.changed:
            assert self.world.changed.wait_for(true, patience_s), f"waited {patience_s} s in vain for {what}"

    async def until(self, true: Callable[[], bool], what: str = "it", patience_s: float = PATIENCE_S) -> None:
        """Wait until it is true, woken by each change."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop of a test that is over
                loop.call_soon_threadsafe(changed.set)

        end = self.world.watch(wake)
        try:
            async with asyncio.timeout(patience_s):
                while not true():
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            raise AssertionError(f"waited {patience_s} s in vain for {what}; refused: {self.refusals}") from None
        finally:
            end()

    async def until_connected(self, times: int = 1) -> None:
        """Wait for the bot's so-many-th Socket Mode connection, counted from the start, and for it to be usable."""
        await self.until(lambda: self.opened >= times and self.connections > 0, f"connection {times}")

    async def until_acked(self, delivery: Delivery) -> None:
        """Wait for a delivery to be acknowledged in time."""
        await self.until(lambda: delivery.acked, "an acknowledgement")

    async def until_settled(self, delivery: Delivery) -> None:
        """Wait for a delivery's end, good or bad."""
        await self.until(lambda: delivery.acked or delivery.given_up or delivery.user_saw is not None, "a delivery")

    async def until_call(self, method: str, times: int = 1) -> Call:
        """Wait for the so-many-th call of a method."""
        await self.until(lambda: self.count(method) >= times, f"call {times} of {method}")
        return self.calls(method)[times - 1]

    async def until_refused(self, error: str, where: str | None = None) -> list[Refusal]:
        """Wait for a refusal, and take it as expected."""
        await self.until(
            lambda: any(each.error == error and where in (None, each.where) for each in self.refusals), error
        )
        return self.refused(error, where)

    async def until_said(
        self, part: str = "", *, channel: str | None = None, thread_ts: str | None = None, finished: bool = True
    ) -> Message:
        """Wait for a message of the bot that shows these words (``finished``: not one that is still streaming)."""

        def found() -> list[Message]:
            return [
                each
                for each in self.messages(channel, thread_ts)
                if part in each.shown and not (finished and self._is_streaming(each))
            ]

        await self.until(lambda: bool(found()), f"{part!r} among {[each.shown[:80] for each in self.messages()]}")
        return found()[0]

    async def until_whispered(self, part: str = "", *, user: str | None = None) -> Message:
        """Wait for an ephemeral message that shows these words."""

        def found() -> list[Message]:
            return [each for each in self.ephemerals(user) if part in each.shown]

        await self.until(lambda: bool(found()), f"{part!r} whispered")
        return found()[0]

    def _is_streaming(self, message: Message) -> bool:
        stream = self.world.streams.get((message.channel, message.ts))
        return stream is not None and stream.state == "streaming"
