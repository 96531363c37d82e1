"""The bodies that Slack sends: events, commands, clicks, shortcuts, submitted views; and a user's text as it arrives.

Text arrives escaped and altered: ``&``, ``<`` and ``>`` as entities, addresses in angle brackets; the rich text blocks
hold what was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.slack.fake.values import APP, BOT, BOT_USER, TEAM, Json, Message
from tests.slack.fake.world import World

MENTION = re.compile(r"<@(U[A-Z0-9]+)>")
FENCE = re.compile(r"```\n?(.*?)\n?```", re.DOTALL)
ADDRESS = re.compile(r"https?://[^\s<>`\"']+")


def escaped(typed: str) -> str:
    """Typed text as the ``text`` of an event: entities, and addresses in brackets outside of code."""
    pieces = re.split(r"(```.*?```|<@U[A-Z0-9]+>)", typed, flags=re.DOTALL)
    made = []
    for piece in pieces:
        if MENTION.fullmatch(piece):
            made.append(piece)
            continue
        piece = piece.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        made.append(piece if piece.startswith("```") else ADDRESS.sub(lambda found: f"<{found[0]}>", piece))
    return "".join(made)


def _section(typed: str) -> Iterator[Json]:
    """The elements of a line of running text."""
    for piece in re.split(r"(<@U[A-Z0-9]+>|https?://[^\s<>`\"']+)", typed):
        mention = MENTION.fullmatch(piece)
        if mention is not None:
            yield {"type": "user", "user_id": mention[1]}
        elif ADDRESS.fullmatch(piece):
            yield {"type": "link", "url": piece}
        elif piece:
            yield {"type": "text", "text": piece}


def rich_text(typed: str) -> list[Json]:
    """Typed text as the rich text block of an event; fences are preformatted."""
    elements: list[Json] = []
    for number, piece in enumerate(FENCE.split(typed)):
        if number % 2:
            elements.append({"type": "rich_text_preformatted", "elements": [{"type": "text", "text": piece}]})
        elif piece.strip():
            elements.append({"type": "rich_text_section", "elements": list(_section(piece))})
    return [{"type": "rich_text", "block_id": "b", "elements": elements}]


def callback(world: World, event: Json) -> Json:
    """An event in its outer body, with an event id of its own."""
    name = world.new_id("Ev")
    authorization = {
        "enterprise_id": None,
        "team_id": TEAM,
        "user_id": BOT_USER,
        "is_bot": True,
        "is_enterprise_install": False,
    }
    return {
        "token": "legacy-token",
        "team_id": TEAM,
        "context_team_id": TEAM,
        "context_enterprise_id": None,
        "api_app_id": APP,
        "type": "event_callback",
        "event": event,
        "event_id": name,
        "event_time": int(world.clock.now()),
        "event_context": f"4-{name}",
        "authorizations": [authorization],
        "is_ext_shared_channel": False,
    }


def message_event(world: World, message: Message) -> Json:
    """A new message as its ``message`` event."""
    body = {
        **message.wire(),
        "channel": message.channel,
        "channel_type": world.kind_of(message.channel),
        "event_ts": message.ts,
    }
    if message.thread_ts and message.thread_ts != message.ts:
        parent = world.find(message.channel, message.thread_ts)
        body["parent_user_id"] = parent.user if parent else ""
    return body


def mention_event(message: Message) -> Json:
    """A message that names the bot, as its ``app_mention`` event: without channel type and subtype."""
    body = {**message.wire(), "type": "app_mention", "channel": message.channel, "event_ts": message.ts}
    body.pop("subtype", None)
    return body


def changed_event(world: World, message: Message, before: Json) -> Json:
    """An edited message."""
    return {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "message": message.wire(),
        "previous_message": before,
        "channel": message.channel,
        "channel_type": world.kind_of(message.channel),
        "ts": (now := world.new_ts()),
        "event_ts": now,
    }


def deleted_event(world: World, message: Message, before: Json) -> Json:
    """A deleted message."""
    return {
        "type": "message",
        "subtype": "message_deleted",
        "hidden": True,
        "deleted_ts": message.ts,
        "previous_message": before,
        "channel": message.channel,
        "channel_type": world.kind_of(message.channel),
        "ts": (now := world.new_ts()),
        "event_ts": now,
    }


def command_payload(world: World, *, command: str, text: str, channel: str, user: str) -> Json:
    """A slash command: every value is text."""
    place = world.channels[channel]
    return {
        "token": "legacy-token",
        "team_id": TEAM,
        "team_domain": "local",
        "channel_id": channel,
        "channel_name": "directmessage" if place.kind == "im" else place.name,
        "user_id": user,
        "user_name": world.users[user].name,
        "command": command,
        "text": text,
        "api_app_id": APP,
        "is_enterprise_install": "false",
        "response_url": world.new_response_url(channel, user),
        "trigger_id": world.new_trigger(),
    }


def interaction(world: World, kind: str, user: str) -> Json:
    """What all interactive payloads share."""
    return {
        "type": kind,
        "team": {"id": TEAM, "domain": "local"},
        "user": {"id": user, "username": world.users[user].name, "name": world.users[user].name, "team_id": TEAM},
        "api_app_id": APP,
        "token": "legacy-token",
        "trigger_id": world.new_trigger(),
        "is_enterprise_install": False,
        "enterprise": None,
    }


def click_payload(world: World, message: Message, block: Json, action: Json, user: str) -> Json:
    """A click on an element of a message; an ephemeral one is named by its container only."""
    place = world.channels[message.channel]
    ephemeral = message.ephemeral_to is not None
    container: Json = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": message.channel,
        "is_ephemeral": ephemeral,
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    body = {
        **interaction(world, "block_actions", user),
        "container": container,
        "channel": {"id": place.id, "name": "directmessage" if place.kind == "im" else place.name},
        "state": {"values": {}},
        "response_url": world.new_response_url(message.channel, user, message.ts),
        "actions": [{"block_id": block.get("block_id", "b"), "action_ts": world.new_ts(), **action}],
    }
    if not ephemeral:
        body["message"] = {**message.wire(), "app_id": APP, "bot_id": message.bot_id or BOT}
    return body
