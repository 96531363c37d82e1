"""The bodies that Slack sends: events, commands, clicks and shortcuts, and a user's text as it arrives.

Text arrives escaped: ``&``, ``<`` and ``>`` as entities; the rich text blocks hold what was typed.
"""

from __future__ import annotations

import re
import time

from tests.slack.fake.model import APP, BOT_USER, TEAM, Json, Message
from tests.slack.fake.workspace import Workspace

MENTION = re.compile(r"(<@U[A-Z0-9]+>)")
FENCE = re.compile(r"```\n?(.*?)\n?```", re.DOTALL)


def escaped(typed: str) -> str:
    """Typed text as the ``text`` of an event."""
    pieces = MENTION.split(typed)
    for number in range(0, len(pieces), 2):
        pieces[number] = pieces[number].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(pieces)


def rich_text(typed: str) -> list[Json]:
    """Typed text as the rich text block of an event; fences are preformatted."""
    elements: list[Json] = []
    for number, piece in enumerate(FENCE.split(typed)):
        if number % 2:
            elements.append({"type": "rich_text_preformatted", "elements": [{"type": "text", "text": piece}]})
        elif piece.strip():
            parts: list[Json] = [
                {"type": "user", "user_id": part[2:-1]} if MENTION.fullmatch(part) else {"type": "text", "text": part}
                for part in MENTION.split(piece)
                if part
            ]
            elements.append({"type": "rich_text_section", "elements": parts})
    return [{"type": "rich_text", "block_id": "b", "elements": elements}]


def callback(workspace: Workspace, event: Json) -> Json:
    """An event in its outer body, with an event id of its own."""
    return {
        "team_id": TEAM,
        "api_app_id": APP,
        "type": "event_callback",
        "event": event,
        "event_id": workspace.new_id("Ev"),
        "event_time": int(time.time()),
        "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True, "is_enterprise_install": False}],
    }


def message_event(workspace: Workspace, message: Message) -> Json:
    kind = workspace.channels[message.channel].kind
    return {**message.wire(), "channel": message.channel, "channel_type": kind, "event_ts": message.ts}


def mention_event(message: Message) -> Json:
    """A message that names the bot, as its ``app_mention`` event: without channel type and subtype."""
    body = {**message.wire(), "type": "app_mention", "channel": message.channel, "event_ts": message.ts}
    body.pop("subtype", None)
    return body


def hidden_event(workspace: Workspace, what: str, message: Message) -> Json:
    """An edited or deleted message."""
    detail: Json = {"message": message.wire()} if what == "edited" else {"deleted_ts": message.ts}
    ts = workspace.new_ts()
    return {
        "type": "message",
        "subtype": "message_changed" if what == "edited" else "message_deleted",
        "hidden": True,
        **detail,
        "previous_message": message.wire(),
        "channel": message.channel,
        "channel_type": workspace.channels[message.channel].kind,
        "ts": ts,
        "event_ts": ts,
    }


def command_payload(workspace: Workspace, command: str, text: str, channel: str, user: str) -> Json:
    """A slash command: every value is text."""
    place = workspace.channels[channel].wire
    return {
        "team_id": TEAM,
        "channel_id": place["id"],
        "channel_name": place["name"],
        "user_id": user,
        "user_name": workspace.users[user],
        "command": command,
        "text": text,
        "api_app_id": APP,
        "is_enterprise_install": "false",
        "response_url": workspace.new_response_url(channel, user),
        "trigger_id": workspace.new_id("trigger"),
    }


def interaction(workspace: Workspace, kind: str, message: Message, user: str) -> Json:
    """What a click and a shortcut share."""
    name = workspace.users[user]
    return {
        "type": kind,
        "team": {"id": TEAM, "domain": "local"},
        "user": {"id": user, "username": name, "name": name, "team_id": TEAM},
        "api_app_id": APP,
        "trigger_id": workspace.new_id("trigger"),
        "is_enterprise_install": False,
        "response_url": workspace.new_response_url(message.channel, user),
        "channel": workspace.channels[message.channel].wire,
    }


def click_payload(workspace: Workspace, message: Message, block: Json, action: Json, user: str) -> Json:
    """A click on an element of a message; an ephemeral message is named by the container only."""
    container = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": message.channel,
        "is_ephemeral": message.ephemeral_to is not None,
        **({"thread_ts": message.thread_ts} if message.thread_ts else {}),
    }
    return {
        **interaction(workspace, "block_actions", message, user),
        "container": container,
        "actions": [{"block_id": block.get("block_id", "b"), "action_ts": workspace.new_ts(), **action}],
        **({} if message.ephemeral_to else {"message": message.wire()}),
    }


def shortcut_payload(workspace: Workspace, callback_id: str, message: Message, user: str) -> Json:
    return {
        **interaction(workspace, "message_action", message, user),
        "callback_id": callback_id,
        "message": message.wire(),
        "message_ts": message.ts,
        "action_ts": workspace.new_ts(),
    }
