"""The methods that write messages: chat.postMessage, update, delete, postEphemeral, getPermalink."""

from __future__ import annotations

from typing import Any

from tests.slack.fake.blocks import MARKDOWN_TOTAL, check_blocks, check_metadata, rich, stored
from tests.slack.fake.values import BOT, BOT_USER, Channel, Json, Message, Refused
from tests.slack.fake.world import World

TEXT_MOST = 40_000
UPDATE_MOST = 4_000


def conversation(world: World, name: Any, *, write: bool = True) -> Channel:
    """The channel of a call; a user's id is the conversation with this user."""
    if name in world.users and write and name != BOT_USER:
        return world.dm_of(name)
    channel = world.channels.get(name) if isinstance(name, str) else None
    if channel is None:
        raise Refused("channel_not_found")
    if BOT_USER not in channel.members:
        raise Refused("not_in_channel")
    if write and channel.archived:
        raise Refused("is_archived")
    return channel


def content(args: Json, *, most: int = TEXT_MOST, needed: bool = True) -> Json:
    """Text, blocks, Markdown and metadata of a call, checked: the fields of a `Message`."""
    text, markdown = args.get("text"), args.get("markdown_text")
    blocks = check_blocks(args["blocks"]) if args.get("blocks") else []
    if markdown is not None:
        if text or blocks:
            raise Refused("markdown_text_conflict")
        if not isinstance(markdown, str) or len(markdown) > MARKDOWN_TOTAL:
            raise Refused("msg_too_long")
        text, blocks = markdown, [{"type": "markdown", "text": markdown}] if markdown else []
    if text is not None and not isinstance(text, str):
        raise Refused("invalid_arguments", "text must be a string")
    if needed and not text and not blocks and not args.get("attachments"):
        raise Refused("no_text")
    if most < TEXT_MOST and len(text or "") > most:
        raise Refused("msg_too_long")
    written = [block["text"] for block in blocks if block["type"] == "markdown"]
    return {
        "text": (text or "")[:TEXT_MOST],
        "blocks": stored(blocks),
        "markdown": markdown or "\n".join(written),
        "metadata": check_metadata(args.get("metadata")),
    }


def _thread(world: World, channel: Channel, args: Json) -> str | None:
    """The root of the thread that a call answers to."""
    wanted = args.get("thread_ts")
    if wanted is None:
        return None
    parent = world.find(channel.id, str(wanted))
    if parent is None:
        raise Refused("thread_not_found")
    if parent.subtype in ("channel_join", "tombstone"):
        raise Refused("cannot_reply_to_message")
    return parent.thread_ts or parent.ts


def post_message(world: World, args: Json) -> Json:
    """chat.postMessage."""
    channel = conversation(world, args["channel"])
    if channel.kind == "im" and not world.messages_tab:
        raise Refused("messages_tab_disabled")
    made = content(args)
    message = world.store(
        Message(
            channel=channel.id,
            ts=world.new_ts(),
            user=BOT_USER,
            bot_id=BOT,
            thread_ts=_thread(world, channel, args),
            subtype="thread_broadcast" if args.get("reply_broadcast") and args.get("thread_ts") else None,
            sent=dict(args),
            **made,
        )
    )
    answer: Json = {"channel": channel.id, "ts": message.ts, "message": message.wire()}
    if len(str(args.get("text") or "")) > TEXT_MOST:
        answer["response_metadata"] = {"warnings": ["message_truncated"]}
        answer["warning"] = "message_truncated"
    return answer


def own(world: World, args: Json, otherwise: str) -> Message:
    """The bot's own message that a call names, or ``otherwise`` where it is somebody else's."""
    conversation(world, args["channel"], write=False)
    message = world.find(args["channel"], str(args["ts"]))
    if message is None:
        raise Refused("message_not_found")
    if message.bot_id != BOT:
        raise Refused(otherwise)
    return message


def update(world: World, args: Json) -> Json:
    """chat.update. A finished stream keeps its rich text: only blocks that begin with it are taken."""
    message = own(world, args, "cant_update_message")
    stream = world.streams.get((message.channel, message.ts))
    if stream is not None and stream.state == "streaming":
        raise Refused("streaming_state_conflict")
    new = content(args, most=UPDATE_MOST, needed="metadata" not in args)
    if new["text"] or new["blocks"]:
        kept = [block for block in message.blocks if block["type"] == "rich_text"] if message.streamed else []
        if new["blocks"][: len(kept)] != kept:
            raise Refused("block_mismatch")
    else:
        new["text"], new["blocks"], new["markdown"] = message.text, message.blocks, message.markdown
    if "metadata" not in args:
        new["metadata"] = message.metadata
    world.edit(message, **new, sent=dict(args))
    return {"channel": message.channel, "ts": message.ts, "text": message.text, "message": message.wire()}


def delete(world: World, args: Json) -> Json:
    """chat.delete."""
    message = own(world, args, "cant_delete_message")
    world.remove(message)
    return {"channel": message.channel, "ts": message.ts}


def post_ephemeral(world: World, args: Json) -> Json:
    """chat.postEphemeral: seen by one member of the conversation."""
    channel = conversation(world, args["channel"])
    user = args["user"]
    if user not in world.users:
        raise Refused("user_not_found")
    if user not in channel.members:
        raise Refused("user_not_in_channel")
    message = world.store(
        Message(
            channel=channel.id,
            ts=world.new_ts(),
            user=BOT_USER,
            bot_id=BOT,
            thread_ts=_thread(world, channel, args),
            ephemeral_to=user,
            sent=dict(args),
            **content(args),
        )
    )
    return {"message_ts": message.ts}


def permalink(world: World, args: Json) -> Json:
    """chat.getPermalink."""
    conversation(world, args["channel"], write=False)
    message = world.find(args["channel"], str(args["message_ts"]))
    if message is None:
        raise Refused("message_not_found")
    name = message.ts.replace(".", "")
    query = f"?thread_ts={message.thread_ts}&cid={message.channel}" if message.thread_ts else ""
    return {
        "channel": message.channel,
        "permalink": f"https://local.slack.com/archives/{message.channel}/p{name}{query}",
    }


def streamed_blocks(markdown: str, blocks: list[Json]) -> list[Json]:
    """What a finished stream keeps: its text as rich text, and the blocks below."""
    return [*([rich(markdown)] if markdown else []), *blocks]
