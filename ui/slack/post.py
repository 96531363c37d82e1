"""Posting replies: in threads, to one person alone, and to the address that a command brings along."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from trainmedic.ui.present.slack import Block, Reply
from trainmedic.ui.present.slack_text import escape, wrapped
from trainmedic.ui.slack.calls import Calls, SlackLost, SlackRefused

log = logging.getLogger("trainmedic.slack")
KIND = "trainmedic_reply"
"""The type of our messages' metadata: by its key a message is found again whose call was lost."""
TOO_MUCH = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_blocks_too_many", "msg_too_long"}
)
TEXT = 3_500
BURST = 3
"""Messages in one channel that may come at once."""
CHANNELS = 1_000
USES = 5
"""How often a response_url may be used."""
TIMEOUT_S = 10.0


class ChannelPace:
    """Whose turn it is to post in each channel: Slack takes one message a second, and short bursts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next: dict[str, float] = {}

    def wait_s(self, channel: str) -> float:
        """Seconds until this message's turn, which is taken by asking."""
        now = self._clock()
        if len(self._next) > CHANNELS:
            self._next = {name: at for name, at in self._next.items() if at > now}
        turn = max(self._next.get(channel, 0.0), now - BURST + 1)
        self._next[channel] = turn + 1.0
        return max(0.0, turn - now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poster:
    """Posts for one workspace."""

    calls: Calls
    session: aiohttp.ClientSession
    pace: ChannelPace = field(default_factory=ChannelPace)

    async def post(self, channel: str, thread_ts: str | None, replies: Sequence[Reply]) -> list[str]:
        """Post the replies in order; the messages' timestamps. Raises `SlackRefused` or `SlackLost`."""
        return [ts for reply in replies for ts in await self._one(channel, thread_ts, reply)]

    async def _one(self, channel: str, thread_ts: str | None, reply: Reply) -> list[str]:
        try:
            return [await self._message(channel, thread_ts, text=reply.text, blocks=list(reply.blocks))]
        except SlackRefused as refused:
            if refused.error not in TOO_MUCH:
                raise
            # Better plain than not at all.
            log.error("Slack refused the blocks of an answer: %s", refused)
            parts = wrapped(plain_of(reply.blocks), TEXT)
            return [await self._message(channel, thread_ts, text=part) for part in parts]

    async def _message(self, channel: str, thread_ts: str | None, **content: Any) -> str:
        await asyncio.sleep(self.pace.wait_s(channel))
        key = uuid.uuid4().hex
        arguments = {
            "channel": channel,
            "thread_ts": thread_ts,
            "unfurl_links": False,
            "unfurl_media": False,
            "metadata": {"event_type": KIND, "event_payload": {"key": key}},
            **content,
        }
        try:
            return str((await self.calls("chat_postMessage", **arguments)).get("ts", ""))
        except SlackLost:
            if found := await self._find(channel, thread_ts, key):
                return found
            return str((await self.calls("chat_postMessage", **arguments)).get("ts", ""))

    async def _find(self, channel: str, thread_ts: str | None, key: str) -> str | None:
        """A message whose call was lost, if it was posted all the same."""
        if thread_ts is None:
            return None
        cursor: str | None = None
        try:
            while True:
                page = await self.calls.read(
                    "conversations_replies",
                    channel=channel,
                    ts=thread_ts,
                    limit=200,
                    include_all_metadata=True,
                    cursor=cursor,
                )
                for item in page.get("messages") or ():
                    if ((item.get("metadata") or {}).get("event_payload") or {}).get("key") == key:
                        return str(item["ts"])
                cursor = (page.get("response_metadata") or {}).get("next_cursor") or None
                if cursor is None:
                    return None
        except (SlackRefused, SlackLost):
            return None

    async def update(self, channel: str, ts: str, reply: Reply, **options: Any) -> None:
        """Replace one of our messages. Its text is cut to what an update takes; the blocks hold all."""
        await self.calls("chat_update", channel=channel, ts=ts, text=reply.text, blocks=list(reply.blocks), **options)

    async def delete(self, channel: str, ts: str) -> None:
        """Take one of our messages away, if that still can be done."""
        try:
            await self.calls("chat_delete", channel=channel, ts=ts)
        except (SlackRefused, SlackLost) as error:
            log.warning("a message could not be deleted: %s", error)

    async def whisper(self, channel: str, user: str, replies: Sequence[Reply], thread_ts: str | None = None) -> None:
        """Show the replies to one person alone. Raises `SlackRefused` or `SlackLost`."""
        for reply in replies:
            await self.calls(
                "chat_postEphemeral",
                channel=channel,
                user=user,
                thread_ts=thread_ts,
                text=reply.text,
                blocks=list(reply.blocks) or None,
            )

    async def respond(self, url: str, reply: Reply, **options: Any) -> bool:
        """Answer at a response_url; False where Slack no longer takes that."""
        body = {"text": reply.text, "blocks": list(reply.blocks) or None, "replace_original": False, **options}
        return await self._sent(url, {name: value for name, value in body.items() if value is not None})

    async def take_away(self, url: str) -> bool:
        """Delete the message that a response_url belongs to."""
        return await self._sent(url, {"delete_original": True})

    async def _sent(self, url: str, body: Mapping[str, Any]) -> bool:
        try:
            timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
            async with self.session.post(url, json=body, allow_redirects=False, timeout=timeout) as response:
                if response.status != 200:
                    log.warning("a response_url answered %s", response.status)
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError) as error:
            log.warning("a response_url could not be reached: %s", type(error).__name__)
            return False


def plain_of(blocks: Sequence[Block]) -> str:
    """All texts of some blocks, escaped for mrkdwn."""
    found = []
    for block in blocks:
        if block["type"] == "markdown":
            found.append(escape(block["text"]))
        elif block["type"] == "section":
            found.append(block["text"]["text"])
        elif block["type"] == "context":
            found += [element["text"] for element in block["elements"]]
    return "\n".join(found)
