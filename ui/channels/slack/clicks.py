"""The buttons under an answer: helped, did not help, resolved."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, Literal, cast

from trainmedic.service.storage.history import Feedback
from trainmedic.ui.channels.handler import Handler
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.slack.destination import SlackDestination
from trainmedic.ui.channels.slack.workspace import Place, Workspace

Reaction = Literal["up", "down", "resolved"]


async def react(workspace: Workspace, handler: Handler, body: Mapping[str, Any]) -> None:
    """Store a reaction and thank whoever clicked. The click is acknowledged already; never raises."""
    value = value_of((body.get("actions") or [{}])[0])
    reaction, language = value.get("reaction"), value.get("language") or "en"
    if reaction not in ("up", "down", "resolved"):
        return  # a button of an older answer
    place = place_of(body, workspace.identity.team)
    to = SlackDestination(workspace, place, alone=True, url=str(body.get("response_url") or ""), language=language)
    feedback = Feedback(answer_id=value.get("answer", ""), reaction=cast(Reaction, reaction), reason="slack")
    try:
        await workspace.context.executor(lambda: workspace.context.memory.give_feedback(feedback))
        text = messages(f"thanks.{reaction}", language)
    except Exception as error:
        text = handler.failure(error, language, uuid.uuid4().hex)
    await to.say(text)


def value_of(action: Mapping[str, Any]) -> Mapping[str, str]:
    """The value of one of our buttons; empty for any other."""
    try:
        value = json.loads(str(action.get("value") or "{}"))
    except ValueError:
        return {}
    return {str(name): str(item) for name, item in value.items()} if isinstance(value, dict) else {}


def place_of(body: Mapping[str, Any], team: str) -> Place:
    container, message = body.get("container") or {}, body.get("message") or {}
    channel = str((body.get("channel") or {}).get("id") or container.get("channel_id") or "")
    ts = message.get("thread_ts") or container.get("thread_ts") or message.get("ts") or container.get("message_ts")
    return Place(
        team=str((body.get("team") or {}).get("id") or team),
        channel=channel,
        thread_ts=str(ts or ""),
        user=str((body.get("user") or {}).get("id") or ""),
        direct=channel.startswith("D"),
    )
