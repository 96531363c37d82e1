"""The other methods: conversations, users, files, reactions, views, auth."""

from __future__ import annotations

import base64
from typing import Any

from tests.slack.fake.blocks import check_view
from tests.slack.fake.chat import conversation
from tests.slack.fake.values import BOT, BOT_USER, HISTORY_OF, TEAM, Channel, Json, Message, Refused
from tests.slack.fake.world import World

PAGE_MOST = 1000


def auth_test(world: World, args: Json) -> Json:
    """auth.test."""
    return {
        "url": "https://local.slack.com/",
        "team": "Local",
        "user": "trainmedic",
        "team_id": TEAM,
        "user_id": BOT_USER,
        "bot_id": BOT,
        "is_enterprise_install": False,
    }


def _readable(world: World, name: Any, scopes: dict[str, str]) -> Channel:
    """A channel that the bot may read with the scope of its kind."""
    channel = world.channels.get(name) if isinstance(name, str) else None
    if channel is None:
        raise Refused("channel_not_found")
    needed = scopes[channel.kind]
    if needed not in world.scopes:
        raise Refused("missing_scope", needed=needed, provided=",".join(sorted(world.scopes)))
    return conversation(world, name, write=False)


def _number(args: Json, name: str, default: int) -> int:
    try:
        value = int(args.get(name, default))
    except (TypeError, ValueError):
        raise Refused("invalid_arguments", f"{name} must be an integer") from None
    if not 1 <= value <= PAGE_MOST:
        raise Refused("invalid_limit")
    return value


def _page(found: list[Message], args: Json, default: int) -> tuple[list[Message], str]:
    """One page, and the cursor of the next one (empty at the end)."""
    limit = _number(args, "limit", default)
    try:
        start = int(base64.b64decode(args["cursor"], validate=True).split(b":")[1]) if args.get("cursor") else 0
    except (ValueError, IndexError):
        raise Refused("invalid_cursor") from None
    cursor = base64.b64encode(b"next:%d" % (start + limit)).decode() if start + limit < len(found) else ""
    return found[start : start + limit], cursor


def _between(found: list[Message], args: Json) -> list[Message]:
    oldest, latest = float(args.get("oldest") or 0), float(args.get("latest") or "inf")
    inclusive = str(args.get("inclusive", "0")) in ("1", "true", "True")
    return [
        each for each in found if oldest < float(each.ts) < latest or (inclusive and float(each.ts) in (oldest, latest))
    ]


def replies(world: World, args: Json) -> Json:
    """conversations.replies: a thread by any of its messages. The parent comes again on every further page."""
    channel = _readable(world, args["channel"], HISTORY_OF)
    found = world.thread(channel.id, str(args["ts"]))
    if not found:
        raise Refused("thread_not_found")
    parent, rest = found[0], _between(found[1:], args)
    page, cursor = _page([parent, *rest], args, PAGE_MOST)
    if args.get("cursor"):
        page = [parent, *page]
    with_metadata = str(args.get("include_all_metadata", "0")) in ("1", "true", "True")
    wired = [message.wire() for message in page]
    for body in wired:
        if not with_metadata:
            body.pop("metadata", None)
        if body["ts"] == parent.ts and len(found) > 1:
            body.update(reply_count=len(found) - 1, thread_ts=parent.ts, latest_reply=found[-1].ts)
        elif body["ts"] != parent.ts:
            body["parent_user_id"] = parent.user
    answer: Json = {"messages": wired, "has_more": bool(cursor)}
    if cursor:
        answer["response_metadata"] = {"next_cursor": cursor}
    return answer


def history(world: World, args: Json) -> Json:
    """conversations.history: the newest first, replies left out."""
    channel = _readable(world, args["channel"], HISTORY_OF)
    found = [
        each
        for each in reversed(world.messages)
        if each.channel == channel.id
        and each.ephemeral_to is None
        and (each.thread_ts in (None, each.ts) or each.subtype == "thread_broadcast")
    ]
    page, cursor = _page(_between(found, args), args, 100)
    answer: Json = {"messages": [message.wire() for message in page], "has_more": bool(cursor)}
    if cursor:
        answer["response_metadata"] = {"next_cursor": cursor}
    return answer


def info(world: World, args: Json) -> Json:
    """conversations.info."""
    reads = {"im": "im:read", "channel": "channels:read", "group": "groups:read", "mpim": "mpim:read"}
    channel = world.channels.get(args["channel"])
    if channel is None:
        raise Refused("channel_not_found")
    if reads[channel.kind] not in world.scopes:
        raise Refused("missing_scope", needed=reads[channel.kind], provided=",".join(sorted(world.scopes)))
    body: Json = {"id": channel.id, "is_im": channel.kind == "im", "is_private": channel.kind != "channel"}
    if channel.kind != "im":
        body["name"] = channel.name
    return {"channel": {**body, "is_archived": channel.archived, "is_member": BOT_USER in channel.members}}


def open_conversation(world: World, args: Json) -> Json:
    """conversations.open with one user."""
    user = str(args.get("users") or "")
    if user not in world.users:
        raise Refused("user_not_found")
    return {"channel": {"id": world.dm_of(user).id}}


def user_info(world: World, args: Json) -> Json:
    """users.info, with the locale where it is asked for."""
    user = world.users.get(args["user"])
    if user is None:
        raise Refused("user_not_found")
    body: Json = {"id": user.id, "team_id": TEAM, "name": user.name, "is_bot": user.bot, "deleted": False}
    if str(args.get("include_locale", "0")) in ("1", "true", "True"):
        body["locale"] = user.locale
    return {"user": {**body, "profile": {"display_name": user.name}}}


def _reaction(world: World, args: Json) -> tuple[str, str, str]:
    conversation(world, args["channel"], write=False)
    if world.find(args["channel"], str(args["timestamp"])) is None:
        raise Refused("message_not_found")
    return args["channel"], str(args["timestamp"]), args["name"]


def add_reaction(world: World, args: Json) -> Json:
    """reactions.add."""
    reaction = _reaction(world, args)
    if ":" in reaction[2]:
        raise Refused("invalid_name")
    if reaction in world.reactions:
        raise Refused("already_reacted")
    world.reactions.append(reaction)
    world.notify()
    return {}


def remove_reaction(world: World, args: Json) -> Json:
    """reactions.remove."""
    reaction = _reaction(world, args)
    if reaction not in world.reactions:
        raise Refused("no_reaction")
    world.reactions.remove(reaction)
    world.notify()
    return {}


def _kept_view(world: World, view: Json, root: str | None = None) -> Json:
    name = world.new_id("V")
    kept = {**view, "id": name, "team_id": TEAM, "hash": world.new_id("h"), "app_id": "A0MEDIC", "bot_id": BOT}
    kept["root_view_id"] = root or name
    world.views[name] = kept
    world.notify()
    return kept


def open_view(world: World, args: Json) -> Json:
    """views.open: a trigger id is good once, for three seconds."""
    view = check_view(args["view"])
    world.use_trigger(args.get("trigger_id"))
    return {"view": _kept_view(world, view)}


def push_view(world: World, args: Json) -> Json:
    """views.push: at most three views on each other."""
    view = check_view(args["view"])
    world.use_trigger(args.get("trigger_id"))
    if not world.views:
        raise Refused("not_found")
    root = list(world.views.values())[-1]["root_view_id"]
    if sum(1 for each in world.views.values() if each["root_view_id"] == root) >= 3:
        raise Refused("push_limit_reached")
    return {"view": _kept_view(world, view, root)}


def update_view(world: World, args: Json) -> Json:
    """views.update by view_id or external_id; with a hash only where nobody changed it since."""
    view = check_view(args["view"])
    kept = world.views.get(str(args.get("view_id")))
    for each in world.views.values():
        if args.get("external_id") and each.get("external_id") == args["external_id"]:
            kept = each
    if kept is None:
        raise Refused("not_found")
    if args.get("hash") and args["hash"] != kept["hash"]:
        raise Refused("hash_conflict")
    same = {name: kept[name] for name in ("id", "team_id", "app_id", "bot_id", "root_view_id")}
    world.views[kept["id"]] = {**view, **same, "hash": world.new_id("h")}
    world.notify()
    return {"view": world.views[kept["id"]]}
