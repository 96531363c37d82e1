"""Streamed messages: chat.startStream, appendStream, stopStream and the sessions' state.

Known of the real one, but not in its reference: the first payload locks a stream to ``markdown_text`` or ``chunks``;
an idle stream ends by itself; a card that is still in progress at the stop is shown as an error.
"""

from __future__ import annotations

from typing import Any, Literal

from tests.slack.fake.blocks import ALL_TEXT, CARD_STATES, MARKDOWN_TOTAL, MESSAGE_BLOCKS, check_blocks, check_metadata
from tests.slack.fake.chat import conversation, own, streamed_blocks
from tests.slack.fake.values import BOT, BOT_USER, Json, Message, Refused, texts
from tests.slack.fake.world import STREAM_IDLE_S, Stream, World

Mode = Literal["markdown_text", "chunks"]
SESSION = ("active", "processing", "suspended", "closed")


def _chunk(chunk: Any) -> Json:
    """One chunk, or a refusal."""
    if not isinstance(chunk, dict):
        raise Refused("invalid_chunks", "must be an object [json-pointer:/chunks]")
    match chunk.get("type"):
        case "markdown_text":
            fine = isinstance(chunk.get("text"), str)
        case "task_update":
            title = chunk.get("title")
            fine = isinstance(chunk.get("id"), str) and isinstance(title, str) and 0 < len(title) <= 256
            fine = fine and chunk.get("status") in CARD_STATES
            sources = chunk.get("sources") or []
            fine = fine and all(isinstance(each, dict) and each.get("url") and each.get("text") for each in sources)
        case "plan_update":
            fine = isinstance(chunk.get("title"), str)
        case "blocks":
            fine = isinstance(chunk.get("blocks"), list) and 1 <= len(chunk["blocks"]) <= MESSAGE_BLOCKS
        case _:
            fine = False
    if not fine:
        raise Refused("invalid_chunks", f"invalid chunk of type {chunk.get('type')} [json-pointer:/chunks]")
    return chunk


def _payload(args: Json) -> tuple[Mode | None, list[Json]]:
    """The mode of a call and its content as chunks."""
    markdown, chunks = args.get("markdown_text"), args.get("chunks")
    if markdown is not None and chunks is not None:
        raise Refused("invalid_arguments", "markdown_text and chunks exclude each other")
    if markdown is not None:
        if not isinstance(markdown, str):
            raise Refused("invalid_arguments", "markdown_text must be a string")
        found: list[Json] = [{"type": "markdown_text", "text": markdown}]
    elif chunks is not None:
        if not isinstance(chunks, list):
            raise Refused("invalid_chunks", "must be a list [json-pointer:/chunks]")
        found = [_chunk(chunk) for chunk in chunks]
    else:
        return None, []
    if sum(len(chunk["text"]) for chunk in found if chunk["type"] == "markdown_text") > MARKDOWN_TOTAL:
        raise Refused("msg_too_long")
    if not any(chunk.get("text") != "" for chunk in found):
        return None, []
    return ("markdown_text" if markdown is not None else "chunks"), found


def _take(world: World, stream: Stream, mode: Mode | None, chunks: list[Json]) -> None:
    """Add to a stream, or refuse and leave it as it was."""
    if mode is not None and stream.mode not in (None, mode):
        raise Refused("streaming_mode_mismatch")
    blocks = [block for chunk in chunks if chunk["type"] == "blocks" for block in check_blocks(chunk["blocks"])]
    if len(stream.blocks) + len(blocks) > MESSAGE_BLOCKS:
        raise Refused("msg_blocks_too_many")
    pieces = [chunk["text"] for chunk in chunks if chunk["type"] == "markdown_text"]
    if len("".join(stream.pieces)) + len("".join(pieces)) > MARKDOWN_TOTAL:
        raise Refused("msg_too_long")
    stream.mode = mode or stream.mode
    stream.pieces.extend(pieces)
    stream.blocks.extend(blocks)
    for chunk in chunks:
        if chunk["type"] == "task_update":
            stream.cards[chunk["id"]] = {**stream.cards.get(chunk["id"], {}), **chunk}
        elif chunk["type"] == "plan_update":
            stream.title = chunk["title"]
    stream.written_at = world.clock.now()


def start(world: World, args: Json) -> Json:
    """chat.startStream."""
    channel = conversation(world, args["channel"])
    parent = world.find(channel.id, str(args.get("thread_ts")))
    if parent is None:
        raise Refused("invalid_thread_ts")
    if channel.kind != "im":
        for name in ("recipient_user_id", "recipient_team_id"):
            if not args.get(name):
                raise Refused(f"missing_{name}")
        if args["recipient_user_id"] not in world.users:
            raise Refused("user_not_found")
    if args.get("task_display_mode", "timeline") not in ("timeline", "plan"):
        raise Refused("invalid_arguments", "unknown task_display_mode")
    mode, chunks = _payload(args)
    stream = Stream(channel=channel.id, ts=world.new_ts())
    _take(world, stream, mode, chunks)
    world.streams[channel.id, stream.ts] = stream
    text = "".join(stream.pieces)
    root = parent.thread_ts or parent.ts
    world.store(
        Message(
            channel=channel.id,
            ts=stream.ts,
            user=BOT_USER,
            bot_id=BOT,
            thread_ts=root,
            text=text,
            markdown=text,
            blocks=streamed_blocks(text, []),
            streamed=True,
            sent=dict(args),
        )
    )
    set_session(world, channel.id, root, "processing")
    return {"channel": channel.id, "ts": stream.ts}


def _running(world: World, args: Json) -> tuple[Stream, Message]:
    """The stream of a call, or why nothing can be written to it."""
    message = own(world, args, "message_not_owned_by_app")
    stream = world.streams.get((message.channel, message.ts))
    if stream is None:
        raise Refused("message_not_in_streaming_state")
    if stream.state == "streaming" and world.clock.now() - stream.written_at > STREAM_IDLE_S:
        stream.state = "expired"
    if stream.state == "stopped_by_user":
        raise Refused("stopped_by_user")
    if stream.state != "streaming":
        raise Refused("message_not_in_streaming_state")
    return stream, message


def _content(stream: Stream, below: list[Json]) -> Json:
    """What the stream's message shows now: the fields of a `Message`."""
    text = "".join(stream.pieces)
    cards = [
        {"type": "task_card", "task_id": name, "title": card["title"], "status": card["status"]}
        for name, card in stream.cards.items()
    ]
    return {"text": text, "markdown": text, "blocks": [*cards, *streamed_blocks(text, [*stream.blocks, *below])]}


def append(world: World, args: Json) -> Json:
    """chat.appendStream."""
    stream, message = _running(world, args)
    mode, chunks = _payload(args)
    if mode is None:
        raise Refused("no_text")
    _take(world, stream, mode, chunks)
    for name, value in _content(stream, []).items():
        setattr(message, name, value)
    return {"channel": stream.channel, "ts": stream.ts}


def stop(world: World, args: Json) -> Json:
    """chat.stopStream. Answers the whole message."""
    stream, message = _running(world, args)
    mode, chunks = _payload(args)
    below = check_blocks(args["blocks"]) if args.get("blocks") else []
    metadata = check_metadata(args.get("metadata"))
    status = args.get("session_status", "active")
    if status not in SESSION:
        raise Refused("invalid_status")
    text = len("".join(stream.pieces)) + sum(len(chunk.get("text", "")) for chunk in chunks)
    if text + sum(len(piece) for piece in texts(below)) > ALL_TEXT:
        raise Refused("msg_blocks_too_long")
    _take(world, stream, mode, chunks)
    end(stream, "stopped")
    world.edit(message, **_content(stream, below), metadata=metadata, sent={**message.sent, **args})
    set_session(world, stream.channel, message.thread_ts, status)
    return {"channel": stream.channel, "ts": stream.ts, "message": message.wire()}


def end(stream: Stream, state: Literal["stopped", "stopped_by_user"]) -> None:
    """End a stream; cards that nobody settled are shown as errors."""
    stream.state = state
    for card in stream.cards.values():
        if card["status"] == "in_progress":
            card["status"] = "error"


def set_session(world: World, channel: str, thread_ts: str | None, status: str) -> None:
    """Keep the state of a conversation's session."""
    world.statuses.append({"channel_id": channel, "thread_ts": thread_ts, "status": status, "by": "session"})
    world.notify()


def session_status(world: World, args: Json) -> Json:
    """agents.sessions.setStatus."""
    if not world.agent_view:
        raise Refused("feature_disabled")
    channel = conversation(world, args["channel_id"])
    if args["status"] not in SESSION:
        raise Refused("invalid_status")
    thread = args.get("thread_ts")
    if not thread:
        raise Refused("thread_ts_required")
    if world.find(channel.id, str(thread)) is None:
        raise Refused("thread_not_found")
    if len(str(args.get("title") or "")) > 200:
        raise Refused("invalid_arguments", "title must be less than 201 characters")
    set_session(world, channel.id, str(thread), args["status"])
    if "agent_session_stopped" not in world.subscriptions:
        return {"response_metadata": {"warnings": ["missing_agent_session_stopped_event_subscription"]}}
    return {}


def rename_session(world: World, args: Json) -> Json:
    """agents.sessions.rename."""
    conversation(world, args["channel_id"])
    if not 1 <= len(str(args["title"])) <= 200:
        raise Refused("invalid_arguments", "title must be 1 to 200 characters")
    world.statuses.append({**args, "by": "rename"})
    return {}


def thread_status(world: World, args: Json) -> Json:
    """assistant.threads.setStatus: words while the bot works; an empty one ends it."""
    channel = conversation(world, args["channel_id"])
    if world.find(channel.id, str(args["thread_ts"])) is None:
        raise Refused("thread_not_found")
    loading = args.get("loading_messages")
    if loading is not None and (
        not isinstance(loading, list) or not 1 <= len(loading) <= 10 or any(len(str(each)) > 50 for each in loading)
    ):
        raise Refused("invalid_arguments", "loading_messages: 1 to 10 of at most 50 characters")
    world.statuses.append({**args, "by": "assistant"})
    world.notify()
    return {}


def thread_title(world: World, args: Json) -> Json:
    """assistant.threads.setTitle."""
    channel = conversation(world, args["channel_id"])
    if world.find(channel.id, str(args["thread_ts"])) is None:
        raise Refused("thread_not_found")
    world.statuses.append({**args, "by": "title"})
    world.notify()
    return {}


def suggested_prompts(world: World, args: Json) -> Json:
    """assistant.threads.setSuggestedPrompts. Under agent_view a call that names a thread does nothing, and says ok."""
    channel = conversation(world, args["channel_id"])
    if channel.kind != "im":
        raise Refused("channel_type_not_supported")
    prompts = args["prompts"]
    if not isinstance(prompts, list) or not 1 <= len(prompts) <= 4:
        raise Refused("invalid_arguments", "prompts: 1 to 4 of them")
    for prompt in prompts:
        if not isinstance(prompt, dict) or not prompt.get("title") or not prompt.get("message"):
            raise Refused("invalid_arguments", "a prompt has a title and a message")
    (world.ignored if world.agent_view and args.get("thread_ts") else world.prompts).append(dict(args))
    world.notify()
    return {}
