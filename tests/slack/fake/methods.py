"""The Web API methods that the bot calls: what they do, which rate and scope they have, what they refuse.

Limits and errors are those of Slack's method reference. Not in it: a card that is still in progress when its stream
stops is shown as an error.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from tests.slack.fake.blocks import ALL_TEXT, MARKDOWN_TOTAL, check_blocks, check_metadata, rich, stored
from tests.slack.fake.model import (
    BOT,
    BOT_USER,
    HISTORY_SCOPES,
    TEAM,
    Channel,
    Json,
    Message,
    Refused,
    Stream,
    block_texts,
)
from tests.slack.fake.workspace import Workspace

TEXT_MOST = 40_000
UPDATE_MOST = 4_000
CARD_STATES = ("pending", "in_progress", "complete", "error")
CARD_TITLE = 256
SESSION_STATES = ("active", "processing", "suspended", "closed")
BURST, BURST_S = 5, 5.0
"""Messages that a channel takes at once; on average it takes one a second."""

Run = Callable[[Workspace, Json], Json]


@dataclass(frozen=True, slots=True)
class Method:
    run: Run
    per_minute: int
    scope: str
    required: tuple[str, ...]


METHODS: dict[str, Method] = {}


def method(name: str, *required: str, per_minute: int = 100, scope: str = "chat:write") -> Callable[[Run], Run]:
    """Register a function as the Web API method of this name."""

    def register(run: Run) -> Run:
        METHODS[name] = Method(run, per_minute, scope, required)
        return run

    return register


def permit(workspace: Workspace, name: str, args: Json) -> Method:
    """The method if this call of it is allowed. Raises `Refused`; the error ``ratelimited`` has ``wait_s``."""
    called = METHODS.get(name)
    if called is None:
        raise Refused("unknown_method")
    if called.scope and called.scope not in workspace.scopes:
        raise missing_scope(workspace, called.scope)
    for field in called.required:
        if args.get(field) in (None, ""):
            raise Refused("invalid_arguments", f"missing required field: {field}")
    if name == "chat.postMessage":
        wait_s = workspace.wait_s(f"{name} {args['channel']}", BURST, BURST_S)
    else:
        wait_s = workspace.wait_s(name, called.per_minute, 60.0)
    if wait_s:
        raise Refused("ratelimited", wait_s=wait_s)
    return called


def missing_scope(workspace: Workspace, scope: str) -> Refused:
    return Refused("missing_scope", needed=scope, provided=",".join(sorted(workspace.scopes)))


def content(args: Json, *, most: int = TEXT_MOST) -> Json:
    """The checked text, blocks, Markdown and metadata of a call: fields of a `Message`."""
    text, blocks = str(args.get("text") or ""), check_blocks(args.get("blocks") or [])
    if not text and not blocks:
        raise Refused("no_text")
    if len(text) > most:
        raise Refused("msg_too_long")
    return {
        "text": text,
        "blocks": stored(blocks),
        "markdown": "\n".join(block["text"] for block in blocks if block["type"] == "markdown"),
        "metadata": check_metadata(args.get("metadata")),
    }


def root_of(workspace: Workspace, channel: Channel, thread_ts: object) -> str | None:
    """The root of the thread that a call answers to."""
    if thread_ts is None:
        return None
    parent = workspace.find(channel.id, thread_ts)
    if parent is None:
        raise Refused("thread_not_found")
    return parent.thread_ts or parent.ts


def own(workspace: Workspace, args: Json, otherwise: str) -> Message:
    """The bot's message that a call names; the refusal ``otherwise`` if it is somebody else's."""
    message = workspace.find(workspace.joined(args["channel"]).id, args["ts"])
    if message is None:
        raise Refused("message_not_found")
    if message.bot_id != BOT:
        raise Refused(otherwise)
    return message


@method("auth.test", scope="")
def auth_test(workspace: Workspace, args: Json) -> Json:
    names = {"url": "https://local.slack.com/", "team": "Local", "user": "trainmedic"}
    return {**names, "team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT, "is_enterprise_install": False}


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────
@method("chat.postMessage", "channel")
def post_message(workspace: Workspace, args: Json) -> Json:
    channel = workspace.joined(args["channel"])
    thread_ts = root_of(workspace, channel, args.get("thread_ts"))
    message = workspace.write(channel.id, args, content(args), thread_ts=thread_ts)
    return {"channel": channel.id, "ts": message.ts, "message": message.wire()}


@method("chat.update", "channel", "ts", per_minute=50)
def update(workspace: Workspace, args: Json) -> Json:
    message = own(workspace, args, "cant_update_message")
    if message.ts in workspace.streams:
        streaming = workspace.streams[message.ts].state == "streaming"
        raise Refused("streaming_state_conflict" if streaming else "block_mismatch")
    updated = content(args, most=UPDATE_MOST)
    if "metadata" not in args:
        del updated["metadata"]
    workspace.edit(message, updated, args)
    return {"channel": message.channel, "ts": message.ts, "message": message.wire()}


@method("chat.delete", "channel", "ts", per_minute=50)
def delete(workspace: Workspace, args: Json) -> Json:
    message = own(workspace, args, "cant_delete_message")
    workspace.remove(message)
    return {"channel": message.channel, "ts": message.ts}


@method("chat.postEphemeral", "channel", "user")
def post_ephemeral(workspace: Workspace, args: Json) -> Json:
    channel = workspace.joined(args["channel"])
    if args["user"] not in channel.members:
        raise Refused("user_not_in_channel")
    thread_ts = root_of(workspace, channel, args.get("thread_ts"))
    message = workspace.write(channel.id, args, content(args), thread_ts=thread_ts, ephemeral_to=args["user"])
    return {"message_ts": message.ts}


@method("chat.getPermalink", "channel", "message_ts", per_minute=1000, scope="")
def permalink(workspace: Workspace, args: Json) -> Json:
    message = workspace.find(workspace.joined(args["channel"]).id, args["message_ts"])
    if message is None:
        raise Refused("message_not_found")
    name = message.ts.replace(".", "")
    return {
        "channel": message.channel,
        "permalink": f"https://local.slack.com/archives/{message.channel}/p{name}",
    }


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def add_chunks(stream: Stream, args: Json) -> None:
    """Add a call's chunks to a stream. Raises `Refused` and leaves the stream as it was."""
    if "markdown_text" in args:
        raise Refused("streaming_mode_mismatch")
    chunks = args.get("chunks") or []
    for chunk in chunks:
        if not is_chunk(chunk):
            raise Refused("invalid_chunks", f"invalid chunk of type {chunk.get('type')} [json-pointer:/chunks]")
    text = stream.text + "".join(chunk["text"] for chunk in chunks if chunk["type"] == "markdown_text")
    if len(text) > MARKDOWN_TOTAL:
        raise Refused("msg_too_long")
    stream.text = text
    for chunk in chunks:
        if chunk["type"] == "task_update":
            stream.cards[chunk["id"]] = {**stream.cards.get(chunk["id"], {}), **chunk}


def is_chunk(chunk: Json) -> bool:
    if chunk.get("type") == "markdown_text":
        return isinstance(chunk.get("text"), str)
    title = chunk.get("title")
    return (
        chunk.get("type") == "task_update"
        and isinstance(chunk.get("id"), str)
        and isinstance(title, str)
        and 0 < len(title) <= CARD_TITLE
        and chunk.get("status") in CARD_STATES
    )


def stream_content(stream: Stream, below: list[Json]) -> Json:
    """What a stream's message shows now: fields of a `Message`."""
    cards = [
        {"type": "task_card", "task_id": id, "title": card["title"], "status": card["status"]}
        for id, card in stream.cards.items()
    ]
    text = [rich(stream.text)] if stream.text else []
    return {"text": stream.text, "markdown": stream.text, "blocks": [*cards, *text, *stored(below)]}


def open_stream(workspace: Workspace, args: Json) -> tuple[Stream, Message]:
    message = own(workspace, args, "message_not_owned_by_app")
    stream = workspace.streams.get(message.ts)
    if stream is None or stream.state == "stopped":
        raise Refused("message_not_in_streaming_state")
    if stream.state == "stopped_by_user":
        raise Refused("stopped_by_user")
    return stream, message


@method("chat.startStream", "channel", "thread_ts", per_minute=20)
def start_stream(workspace: Workspace, args: Json) -> Json:
    channel = workspace.joined(args["channel"])
    root = root_of(workspace, channel, args["thread_ts"])
    if channel.kind != "im":
        for name in ("recipient_user_id", "recipient_team_id"):
            if not args.get(name):
                raise Refused(f"missing_{name}")
    stream = Stream(channel=channel.id, ts="")
    add_chunks(stream, args)
    message = workspace.write(channel.id, args, stream_content(stream, []), thread_ts=root)
    stream.ts = message.ts
    workspace.streams[message.ts] = stream
    return {"channel": channel.id, "ts": message.ts}


@method("chat.appendStream", "channel", "ts")
def append_stream(workspace: Workspace, args: Json) -> Json:
    stream, message = open_stream(workspace, args)
    add_chunks(stream, args)
    if not args.get("chunks"):
        raise Refused("no_text")
    for name, value in stream_content(stream, []).items():
        setattr(message, name, value)
    return {"channel": stream.channel, "ts": stream.ts}


@method("chat.stopStream", "channel", "ts", per_minute=20)
def stop_stream(workspace: Workspace, args: Json) -> Json:
    stream, message = open_stream(workspace, args)
    below = check_blocks(args.get("blocks") or [])
    added = [*below, *(chunk for chunk in args.get("chunks") or () if chunk.get("type") == "markdown_text")]
    if len(stream.text) + sum(len(text) for text in block_texts(added)) > ALL_TEXT:
        raise Refused("msg_blocks_too_long")
    add_chunks(stream, args)
    stream.end("stopped")
    workspace.edit(message, stream_content(stream, below), {**message.sent, **args})
    set_status(workspace, message, "active")
    return {"channel": stream.channel, "ts": stream.ts, "message": message.wire()}


def set_status(workspace: Workspace, message: Message, status: str) -> None:
    workspace.statuses.append({"channel_id": message.channel, "thread_ts": message.thread_ts, "status": status})


@method("agents.sessions.setStatus", "channel_id", "thread_ts", "status", per_minute=50)
def session_status(workspace: Workspace, args: Json) -> Json:
    channel = workspace.joined(args["channel_id"])
    if args["status"] not in SESSION_STATES:
        raise Refused("invalid_status")
    if workspace.find(channel.id, args["thread_ts"]) is None:
        raise Refused("thread_not_found")
    workspace.statuses.append(dict(args))
    return {}


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────
@method("conversations.replies", "channel", "ts", per_minute=50, scope="")
def replies(workspace: Workspace, args: Json) -> Json:
    """A thread in pages; the parent comes again on each."""
    channel = workspace.channels.get(args["channel"])
    if channel is None:
        raise Refused("channel_not_found")
    scope = HISTORY_SCOPES[channel.kind]
    if scope not in workspace.scopes:
        raise missing_scope(workspace, scope)
    messages = workspace.thread(workspace.joined(channel.id).id, args["ts"])
    if not messages:
        raise Refused("thread_not_found")
    start, limit = int(base64.b64decode(args.get("cursor") or "") or 0), int(args.get("limit", 1000))
    page = messages[start : start + limit]
    parent = messages[0]
    wired = [message.wire() for message in (page if page[0] is parent else [parent, *page])]
    for body in wired:
        if args.get("include_all_metadata") not in ("1", True, "true"):
            body.pop("metadata", None)
    more = start + limit < len(messages)
    cursor = base64.b64encode(str(start + limit).encode()).decode() if more else ""
    return {"messages": wired, "has_more": more, "response_metadata": {"next_cursor": cursor}}
