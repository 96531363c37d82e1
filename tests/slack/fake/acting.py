"""What users of the local Slack do, and what reaches the bot of it. All calls return at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from tests.slack.fake.blocks import check_blocks, check_view, stored
from tests.slack.fake.chat import content
from tests.slack.fake.files import Files, SlackFile
from tests.slack.fake.payloads import (
    callback,
    changed_event,
    click_payload,
    command_payload,
    deleted_event,
    escaped,
    interaction,
    mention_event,
    message_event,
    rich_text,
)
from tests.slack.fake.sending import Courier
from tests.slack.fake.streams import end
from tests.slack.fake.values import (
    ANN,
    BOT,
    BOT_USER,
    EVENT_OF,
    GENERAL,
    HISTORY_OF,
    TEAM,
    Channel,
    Delivery,
    Json,
    Kind,
    Message,
    Refused,
    Said,
    User,
)
from tests.slack.fake.world import World


class Acts:
    """People, and the deliveries that they cause."""

    world: World
    files: Files
    courier: Courier
    deliveries: list[Delivery]
    echo: bool
    loop: asyncio.AbstractEventLoop

    # ── people, places, files ────────────────────────────────────────────────────────────────────────────────────────
    def add_user(self, name: str, *, locale: str = "en-US", channels: Sequence[str] = (GENERAL,)) -> str:
        """Somebody new; their id."""
        user = User(id=self.world.new_id("U"), name=name, locale=locale)
        self.world.users[user.id] = user
        for channel in channels:
            self.world.channels[channel].members.add(user.id)
        return user.id

    def add_channel(self, name: str, *, kind: Kind = "channel", members: Sequence[str] = (ANN, BOT_USER)) -> str:
        """A new conversation; its id."""
        made = Channel(id=self.world.new_id("C"), name=name, kind=kind, members=set(members))
        self.world.channels[made.id] = made
        return made.id

    def upload(self, name: str, content: str | bytes, **more: Any) -> SlackFile:
        """A file to be said with a message; ``more`` are the fields of `SlackFile`."""
        raw = content.encode() if isinstance(content, str) else content
        file = SlackFile(id=self.world.new_id("F"), name=name, content=raw, user=ANN, **more)
        self.files.by_id[file.id] = file
        return file

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────
    def says(
        self,
        text: str,
        *,
        channel: str = GENERAL,
        user: str = ANN,
        thread_ts: str | None = None,
        files: Sequence[SlackFile] = (),
        bot: bool = False,
        subtype: str | None = None,
    ) -> Said:
        """Somebody writes ``text`` as it is typed (``<@U0BOT>`` is a mention); ``bot``: another app does."""
        with self.world.changed:
            message = self.world.store(
                Message(
                    channel=channel,
                    ts=self.world.new_ts(),
                    user=user,
                    bot_id="B0OTHER" if bot else None,
                    text=escaped(text),
                    thread_ts=thread_ts,
                    blocks=rich_text(text),
                    files=[file.wire(self.world.base) for file in files],
                    subtype=subtype or ("file_share" if files else None),
                )
            )
            return Said(message=message, deliveries=tuple(self._told(message)))

    def _told(self, message: Message) -> Iterator[Delivery]:
        """The deliveries of a new message, as subscribed and permitted."""
        kind = self.world.kind_of(message.channel)
        if (
            kind != "im"
            and f"<@{BOT_USER}>" in message.text
            and "app_mention" in self.world.subscriptions
            and "app_mentions:read" in self.world.scopes
        ):
            yield self.event(mention_event(message))
        if self._hears(message.channel):
            yield self.event(message_event(self.world, message))

    def _hears(self, channel: str) -> bool:
        kind = self.world.kind_of(channel)
        return (
            EVENT_OF[kind] in self.world.subscriptions
            and HISTORY_OF[kind] in self.world.scopes
            and BOT_USER in self.world.channels[channel].members
        )

    def bot_said(
        self, text: str, *, blocks: Sequence[Json] = (), channel: str = GENERAL, thread_ts: str | None = None
    ) -> Message:
        """A message that an earlier release of the bot left; nothing is delivered."""
        kept = stored(check_blocks(list(blocks))) if blocks else []
        message = Message(
            channel=channel,
            ts=self.world.new_ts(),
            user=BOT_USER,
            bot_id=BOT,
            text=text,
            blocks=kept,
            thread_ts=thread_ts,
        )
        self.world.messages.append(message)
        return message

    def edits(self, ts: str, text: str) -> Delivery | None:
        """A user changes a message; the delivery where the bot hears of it."""
        message = self._existing(ts)
        before = message.wire()
        message.text, message.blocks, message.edits = escaped(text), rich_text(text), message.edits + 1
        hears = self._hears(message.channel)
        return self.event(changed_event(self.world, message, before)) if hears else None

    def deletes(self, ts: str) -> Delivery | None:
        """A user deletes a message; the delivery where the bot hears of it."""
        message = self._existing(ts)
        self.world.messages.remove(message)
        hears = self._hears(message.channel)
        return self.event(deleted_event(self.world, message, message.wire())) if hears else None

    def own_post(self, what: str, message: Message, before: Json | None) -> None:
        """The bot's own posts, edits and deletions come back to it."""
        if not self.echo or not self._hears(message.channel):
            return
        if what == "posted":
            self.event(message_event(self.world, message))
        elif what == "edited":
            self.event(changed_event(self.world, message, before or {}))
        else:
            self.event(deleted_event(self.world, message, before or {}))

    def opens(self, user: str = ANN, tab: str = "messages") -> Delivery:
        """A user opens the app's home; ``messages`` is the conversation with the bot."""
        channel = self.world.dm_of(user).id
        now = self.world.new_ts()
        return self.event({"type": "app_home_opened", "user": user, "channel": channel, "tab": tab, "event_ts": now})

    def stops(self, message_ts: str, user: str = ANN) -> Delivery:
        """A user presses Slack's own Stop button: the stream is ended first, then the bot is told."""
        message = self._existing(message_ts)
        stream = self.world.streams[message.channel, message_ts]
        end(stream, "stopped_by_user")
        return self.event(
            {
                "type": "agent_session_stopped",
                "channel": message.channel,
                "thread_ts": message.thread_ts,
                "user": user,
                "streaming_message_ts": [message_ts],
                "event_ts": self.world.new_ts(),
            }
        )

    # ── deliveries ───────────────────────────────────────────────────────────────────────────────────────────────────
    def event(self, event: Json, **outer: Any) -> Delivery:
        """Deliver any event; ``outer`` replaces keys of its outer body."""
        payload = {**callback(self.world, event), **outer}
        return self._send(Delivery(kind="events_api", payload=payload, event_id=payload["event_id"]))

    def redeliver(self, delivery: Delivery, reason: str = "timeout") -> Delivery:
        """The same payload and event id once more, in a new envelope."""
        self.loop.call_soon_threadsafe(self.courier.again, delivery, reason)
        return delivery

    def command(self, text: str, *, command: str = "/trainmedic", channel: str = GENERAL, user: str = ANN) -> Delivery:
        """A user types a slash command. What the acknowledgement says is shown."""
        payload = command_payload(self.world, command=command, text=text, channel=channel, user=user)
        delivery = Delivery(kind="slash_commands", payload=payload)
        delivery.on_ack = lambda answer: self._answered(answer, channel, user)
        return self._send(delivery)

    def _answered(self, answer: Any, channel: str, user: str) -> None:
        """Show what a command was acknowledged with."""
        if not answer:
            return
        if not isinstance(answer, dict):
            raise Refused("invalid_payload", "a command is answered with a message")
        public = answer.get("response_type") == "in_channel"
        self.world.store(
            Message(
                channel=channel,
                ts=self.world.new_ts(),
                user=BOT_USER,
                bot_id=BOT,
                ephemeral_to=None if public else user,
                sent=answer,
                **content(answer),
            )
        )

    def clicks(
        self,
        message: Message | str,
        action_id: str,
        *,
        user: str = ANN,
        positive: bool | None = None,
        option: str | None = None,
    ) -> Delivery:
        """A user clicks an element of a message; ``positive`` picks a feedback button, ``option`` a select's value."""
        if isinstance(message, str):
            message = self._existing(message)
        there = [
            (block, element)
            for block in message.blocks
            for element in [*block.get("elements", ()), *([block["accessory"]] if "accessory" in block else [])]
            if "action_id" in element
        ]
        found = [pair for pair in there if pair[1]["action_id"] == action_id]
        assert found, f"no {action_id} to click, only {[element['action_id'] for _, element in there]}"
        block, element = found[0]
        action: Json = {"type": element["type"], "action_id": action_id}
        if element["type"] == "feedback_buttons":
            assert positive is not None, "positive or negative?"
            pressed = element["positive_button" if positive else "negative_button"]
            action.update(text=pressed["text"], value=pressed["value"])
        elif "options" in element:
            chosen = [each for each in element["options"] if each["value"] == option]
            assert chosen, f"no option {option}"
            action["selected_option"] = chosen[0]
        else:
            action.update({name: element[name] for name in ("text", "value", "style") if name in element})
        return self.interactive(click_payload(self.world, message, block, action, user))

    def shortcut(self, callback_id: str, ts: str, *, user: str = ANN) -> Delivery:
        """A user picks a shortcut from a message's menu."""
        message = self._existing(ts)
        place = self.world.channels[message.channel]
        payload = {
            **interaction(self.world, "message_action", user),
            "callback_id": callback_id,
            "response_url": self.world.new_response_url(message.channel, user, ts),
            "channel": {"id": place.id, "name": "directmessage" if place.kind == "im" else place.name},
            "message": message.wire(),
            "message_ts": ts,
            "action_ts": self.world.new_ts(),
        }
        return self.interactive(payload)

    def submits(self, view_id: str, values: dict[str, dict[str, Any]] | None = None, *, user: str = ANN) -> Delivery:
        """A user submits a view: {block id: {action id: text, or the state as Slack writes it}}."""
        view = self.world.views[view_id]
        state = {
            block: {
                action: {"type": "plain_text_input", "value": value} if isinstance(value, str) else value
                for action, value in actions.items()
            }
            for block, actions in (values or {}).items()
        }
        payload = interaction(self.world, "view_submission", user)
        payload.update(view={**view, "state": {"values": state}}, response_urls=[])
        return self.interactive(payload, lambda answer: self._submitted(view, answer))

    def _submitted(self, view: Json, answer: Any) -> None:
        """What becomes of a submitted view."""
        action = answer.get("response_action") if isinstance(answer, dict) else None
        match action:
            case None:
                self.world.views.pop(view["id"], None)
            case "clear":
                self.world.views.clear()
            case "errors":
                blocks = {block.get("block_id") for block in view["blocks"]}
                if not answer.get("errors") or not set(answer["errors"]) <= blocks:
                    raise Refused("invalid_response_action", "errors name blocks of the view")
            case "update" | "push":
                new = check_view(answer.get("view"))
                same = {name: view[name] for name in ("id", "team_id", "app_id", "bot_id", "root_view_id", "hash")}
                name = view["id"] if action == "update" else self.world.new_id("V")
                self.world.views[name] = {**new, **same, "id": name}
            case _:
                raise Refused("invalid_response_action", str(action))

    def interactive(self, payload: Json, on_ack: Callable[[Any], None] | None = None) -> Delivery:
        """Deliver any interactive payload."""
        return self._send(Delivery(kind="interactive", payload=payload, on_ack=on_ack))

    def rate_limited(self) -> Delivery:
        """Tell the bot that it has had more than 30,000 deliveries in an hour."""
        minute = int(self.world.clock.now()) // 60 * 60
        payload = {"token": "legacy-token", "type": "app_rate_limited", "team_id": TEAM, "api_app_id": "A0MEDIC"}
        return self._send(Delivery(kind="events_api", payload={**payload, "minute_rate_limited": minute}))

    def _send(self, delivery: Delivery) -> Delivery:
        self.deliveries.append(delivery)
        self.loop.call_soon_threadsafe(self.courier.send, delivery)
        return delivery

    def _existing(self, ts: str) -> Message:
        found = [each for each in self.world.messages if each.ts == ts]
        assert found, f"there is no message {ts}"
        return found[0]


Reason = Literal["warning", "refresh_requested", "link_disabled", "too_many_websockets"]
