"""Posting replies: in threads, to one person alone, and to a command's response_url."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from trainmedic.ui.channels.slack.calls import Calls, SlackLost, SlackRefused
from trainmedic.ui.present.slack import Block, Reply
from trainmedic.ui.present.slack_text import escape, wrapped

log = logging.getLogger("trainmedic.slack")
TOO_MUCH = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_blocks_too_many", "msg_too_long"}
)
TEXT = 3_500
RESPONSE_USES = 5
"""How often a response_url may be used."""
TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something was written. ``thread_ts`` names the thread's first message, empty outside of one.

    ``direct``: a DM with the bot.
    """

    team: str
    channel: str
    thread_ts: str
    user: str
    direct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Poster:
    calls: Calls
    http: httpx.AsyncClient

    async def post(self, place: Place, replies: Sequence[Reply]) -> list[str]:
        """Post the replies in order and return the messages' timestamps. Raises `SlackRefused` or `SlackLost`."""
        return [ts for reply in replies for ts in await self._one(place, reply)]

    async def _one(self, place: Place, reply: Reply) -> list[str]:
        try:
            return [await self._message(place, text=reply.text, blocks=list(reply.blocks))]
        except SlackRefused as refused:
            if refused.error not in TOO_MUCH:
                raise
            # Better plain than not at all.
            log.error("Slack refused the blocks of an answer: %s", refused)
            return [await self._message(place, text=part) for part in wrapped(plain_of(reply.blocks), TEXT)]

    async def _message(self, place: Place, **content: Any) -> str:
        where = {"channel": place.channel, "thread_ts": place.thread_ts}
        # If the first one was stored and only its answer lost, the message shows twice: better than not at all.
        posted = await self.calls.repeatable(
            "chat_postMessage", **where, unfurl_links=False, unfurl_media=False, **content
        )
        return str(posted.get("ts", ""))

    async def update(self, channel: str, ts: str, reply: Reply) -> None:
        await self.calls("chat_update", channel=channel, ts=ts, text=reply.text, blocks=list(reply.blocks))

    async def delete(self, channel: str, ts: str) -> None:
        """Delete one of our messages; a failure is only logged."""
        try:
            await self.calls("chat_delete", channel=channel, ts=ts)
        except (SlackRefused, SlackLost) as error:
            log.warning("a message could not be deleted: %s", error)

    async def whisper(self, place: Place, reply: Reply, thread_ts: str | None) -> None:
        """Show a reply to one person alone. Raises `SlackRefused` or `SlackLost`."""
        await self.calls(
            "chat_postEphemeral",
            channel=place.channel,
            user=place.user,
            thread_ts=thread_ts,
            text=reply.text,
            blocks=list(reply.blocks),
        )

    async def respond(self, url: str, reply: Reply) -> bool:
        """Answer at a response_url; False if Slack no longer accepts it."""
        body = {"text": reply.text, "blocks": list(reply.blocks), "replace_original": False}
        try:
            response = await self.http.post(url, json=body, follow_redirects=False, timeout=TIMEOUT_S)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            log.warning("a response_url could not be reached: %s", type(error).__name__)
            return False
        if response.status_code != 200:
            log.warning("a response_url answered %s", response.status_code)
        return response.status_code == 200


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
