"""Posting replies: in threads, to one person alone, and to a command's response_url."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from trainmedic.ui.channels.slack.calls import Calls, SlackLost, SlackRefused
from trainmedic.ui.present.slack import Block, Reply
from trainmedic.ui.present.slack_text import escape, wrapped

log = logging.getLogger("trainmedic.slack")
KIND = "trainmedic_reply"
"""Type of our messages' metadata, whose key finds a message again after a lost call."""
TOO_MUCH = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_blocks_too_many", "msg_too_long"}
)
TEXT = 3_500
BURST = 3
"""Messages in one channel that may be posted at once."""
CHANNELS = 1_000
RESPONSE_USES = 5
"""How often a response_url may be used."""
TIMEOUT_S = 10.0


class ChannelPace:
    """Paces posts per channel: Slack accepts one message a second, and short bursts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next: dict[str, float] = {}

    def wait_s(self, channel: str) -> float:
        """Seconds until this message's turn; the call reserves the turn."""
        now = self._clock()
        # Channels whose turn has passed need no entry: they may post at once anyway.
        if len(self._next) > CHANNELS:
            self._next = {name: at for name, at in self._next.items() if at > now}
        # A quiet channel saves up turns, but never more than the burst.
        turn = max(self._next.get(channel, 0.0), now - BURST + 1)
        self._next[channel] = turn + 1.0
        return max(0.0, turn - now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poster:
    calls: Calls
    http: httpx.AsyncClient
    pace: ChannelPace = field(default_factory=ChannelPace)

    async def post(self, channel: str, thread_ts: str | None, replies: Sequence[Reply]) -> list[str]:
        """Post the replies in order and return the messages' timestamps. Raises `SlackRefused` or `SlackLost`."""
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
            # Invisible in Slack; `_find` recognises the message by the key.
            "metadata": {"event_type": KIND, "event_payload": {"key": key}},
            **content,
        }
        try:
            return str((await self.calls("chat_postMessage", **arguments)).get("ts", ""))
        except SlackLost:
            # A lost call may have succeeded; posting again without looking would show the answer twice.
            if ts := await self._find(channel, thread_ts, key):
                return ts
            return str((await self.calls("chat_postMessage", **arguments)).get("ts", ""))

    async def _find(self, channel: str, thread_ts: str | None, key: str) -> str | None:
        """The timestamp of a message whose call was lost but which was posted."""
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
        await self.calls("chat_update", channel=channel, ts=ts, text=reply.text, blocks=list(reply.blocks), **options)

    async def delete(self, channel: str, ts: str) -> None:
        """Delete one of our messages; a failure is only logged."""
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
        """Answer at a response_url; False if Slack no longer accepts it."""
        body = {"text": reply.text, "blocks": list(reply.blocks) or None, "replace_original": False, **options}
        return await self._sent(url, {name: value for name, value in body.items() if value is not None})

    async def delete_original(self, url: str) -> bool:
        return await self._sent(url, {"delete_original": True})

    async def _sent(self, url: str, body: Mapping[str, Any]) -> bool:
        try:
            response = await self.http.post(url, json=body, follow_redirects=False, timeout=TIMEOUT_S)
            if response.status_code != 200:
                log.warning("a response_url answered %s", response.status_code)
            return response.status_code == 200
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            log.warning("a response_url could not be reached: %s", type(error).__name__)
            return False


def plain_of(blocks: Sequence[Block]) -> str:
    texts = []
    for block in blocks:
        if block["type"] == "markdown":
            texts.append(escape(block["text"]))
        elif block["type"] == "section":
            texts.append(block["text"]["text"])
        elif block["type"] == "context":
            texts += [element["text"] for element in block["elements"]]
    return "\n".join(texts)
