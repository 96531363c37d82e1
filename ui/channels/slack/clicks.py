"""The buttons under an answer: feedback, resolved, ask a human, share."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from trainmedic.kb.errors import TrainmedicError
from trainmedic.service.storage.history import Feedback
from trainmedic.ui.channels.handler import Handler
from trainmedic.ui.channels.messages import messages
from trainmedic.ui.channels.slack.calls import SlackLost, SlackRefused
from trainmedic.ui.channels.slack.destination import NOT_A_MEMBER, SlackDestination, short_reply
from trainmedic.ui.channels.slack.place import Place
from trainmedic.ui.channels.slack.review import FOLDER, write_draft
from trainmedic.ui.channels.slack.workspace import PostedAnswer, Workspace
from trainmedic.ui.present.slack import (
    FEEDBACK,
    HUMAN,
    RESOLVED,
    SHARE,
    Reply,
    packed,
    plain,
    render_answer,
    small_print,
    verdict_name,
)
from trainmedic.ui.present.slack_text import escape, link, wrapped

log = logging.getLogger("trainmedic.slack")
QUESTION = 600
"""Code points of the question in the summary for a human."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Click:
    """A button that was pressed under an answer. ``ts``: the message's timestamp, empty if only one person sees it."""

    place: Place
    answer_id: str
    up: bool
    language: str
    url: str
    ts: str
    in_thread: bool


class Clicks:
    def __init__(self, workspace: Workspace, handler: Handler) -> None:
        self._workspace, self._handler = workspace, handler

    async def handle(self, body: Mapping[str, Any]) -> None:
        """Perform the button's action; never raises. The click is acknowledged already."""
        action = (body.get("actions") or [{}])[0]
        value = value_of(action)
        click = Click(
            place=place_of(body, self._workspace.identity.team),
            answer_id=value.get("answer", ""),
            up=value.get("reaction") == "up",
            language=value.get("language") or "en",
            url=str(body.get("response_url") or ""),
            ts="" if (body.get("container") or {}).get("is_ephemeral") else clicked_ts(body),
            in_thread=in_thread(body),
        )
        actions = {FEEDBACK: self._feedback, RESOLVED: self._resolved, HUMAN: self._human, SHARE: self._share}
        act = actions.get(str(action.get("action_id")))
        if act is None:
            log.info("a click on an unknown button")
            return
        try:
            await act(click)
        except Exception as error:
            failure = self._handler.failure(error, click.language, uuid.uuid4().hex)
            await self._to(click).say(failure)

    def _to(self, click: Click, *, alone: bool = True) -> SlackDestination:
        return SlackDestination(self._workspace, click.place, alone=alone, url=click.url, language=click.language)

    async def _feedback(self, click: Click) -> None:
        reaction: Literal["up", "down"] = "up" if click.up else "down"
        await self._store(click, reaction)
        await self._to(click).say(messages(f"thanks.{reaction}", click.language))

    async def _store(self, click: Click, reaction: Literal["up", "down", "resolved"]) -> None:
        feedback = Feedback(answer_id=click.answer_id, reaction=reaction, reason="slack")
        await self._workspace.context.executor(lambda: self._workspace.context.memory.give_feedback(feedback))

    async def _resolved(self, click: Click) -> None:
        posted = await self._workspace.recall(click.answer_id)
        try:
            await self._store(click, "resolved")
        except TrainmedicError as error:  # the draft is useful even without a history
            log.warning("the feedback was not stored: %s", error.message)
        afterwards: tuple[str, ...] = ()
        permalink = ""
        if click.ts:
            afterwards, permalink = await self._afterwards(click), await self._permalink(click.place)
        folder = self._workspace.context.settings.data_dir / FOLDER
        draft = await self._workspace.context.executor(
            lambda: write_draft(folder, posted.answer, posted.question, posted.attachments, afterwards, permalink)
        )
        text = messages("resolved", click.language, user=click.place.user, draft=draft)
        await self._to(click, alone=not click.ts).say_mrkdwn(text)

    async def _afterwards(self, click: Click) -> tuple[str, ...]:
        try:
            thread = await self._workspace.thread(click.place)
        except (SlackRefused, SlackLost) as error:
            log.warning("the thread could not be read: %s", error)
            return ()
        number = next((number for number, item in enumerate(thread) if item.ts == click.ts), len(thread))
        # Only what people wrote afterwards: that is where the real fix is often named.
        return tuple(item.text for item in thread[number + 1 :] if item.text and not item.bot)

    async def _permalink(self, place: Place) -> str:
        try:
            response = await self._workspace.calls.read(
                "chat_getPermalink", channel=place.channel, message_ts=place.thread_ts
            )
        except (SlackRefused, SlackLost) as error:
            log.warning("the thread's permalink could not be read: %s", error)
            return ""
        return str(response.get("permalink") or "")

    async def _human(self, click: Click) -> None:
        posted = await self._workspace.recall(click.answer_id)
        settings, place = self._workspace.context.settings, click.place
        # The only form in which Slack notifies a user group; a plain @name is just text.
        group = f"<!subteam^{settings.slack_human_group}>" if settings.slack_human_group else ""
        asks = messages("asked_human", click.language, group=group, user=place.user).strip()
        private = place.direct or not click.ts
        public_url = settings.public_url.rstrip("/")
        address = await self._permalink(place) if settings.slack_human_channel and not private else ""
        if public_url and not address:
            address = f"{public_url}/?answer={posted.answer.id}"
        reply = summary(asks, posted, click.language, address)
        if settings.slack_human_channel:
            await self._workspace.poster.post(settings.slack_human_channel, None, [reply])
        elif not private:
            await self._workspace.poster.post(place.channel, place.thread_ts, [reply])
        await self._to(click).say(messages("human_told", click.language))

    async def _share(self, click: Click) -> None:
        posted = await self._workspace.recall(click.answer_id)
        place, poster = click.place, self._workspace.poster
        by = messages("shared", click.language, user=place.user)
        question = f"> {quoted(posted.question)}" if posted.question.strip() else ""
        heading = short_reply(f"{by}\n{question}".strip()).blocks
        first, *rest = render_answer(posted.answer, self._to(click).extras())
        replies = [*packed([*heading, *first.blocks], first.text), *rest]
        thread_ts = place.thread_ts if click.in_thread else None
        try:
            await poster.post(place.channel, thread_ts, replies)
        except SlackRefused as refused:
            if refused.error not in NOT_A_MEMBER:
                raise
            # The command's response_url may post in channels that the bot has not joined.
            options = {"response_type": "in_channel", **({"thread_ts": thread_ts} if thread_ts else {})}
            for reply in replies:
                if not await poster.respond(click.url, reply, **options):
                    raise
        await poster.delete_original(click.url)


def summary(asks: str, posted: PostedAnswer, language: str, address: str = "") -> Reply:
    """The hand-over to a human: question, verdict, candidates, missing facts."""
    answer = posted.answer
    colon = "：" if language == "zh" else ": "
    lines = [f"{messages('summary.question', language)}{colon}{quoted(posted.question)}"]
    lines.append(f"{messages('summary.verdict', language)}{colon}{verdict_name(answer)}")
    causes = [f"{escape(cause.title)} ({cause.confidence})" for cause in answer.causes[:3]]
    if causes:
        lines.append(f"{messages('summary.causes', language)}{colon}{'; '.join(causes)}")
    missing = [escape(item.ask) for item in answer.missing[:3]]
    if missing:
        lines.append(f"{messages('summary.missing', language)}{colon}{' '.join(missing)}")
    if address:
        lines.append(link(address, messages("summary.where", language)))
    body = "\n".join(lines)
    return Reply(text=asks, blocks=(*short_reply(asks).blocks, *small_print([p for p in wrapped(body, 900)])))


def quoted(question: str) -> str:
    """The beginning of a question on one line of mrkdwn. The text is masked already."""
    text = plain(question)
    return escape(text if len(text) <= QUESTION else text[: QUESTION - 1] + "…")


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


def clicked_ts(body: Mapping[str, Any]) -> str:
    return str((body.get("message") or {}).get("ts") or (body.get("container") or {}).get("message_ts") or "")


def in_thread(body: Mapping[str, Any]) -> bool:
    return bool((body.get("message") or {}).get("thread_ts") or (body.get("container") or {}).get("thread_ts"))
