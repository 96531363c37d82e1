"""What the buttons under an answer do: feedback, resolved, ask a human, share."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping
from typing import Any

from trainmedic.kb.errors import TrainmedicError
from trainmedic.service.storage.history import Feedback
from trainmedic.ui.present.slack import (
    FEEDBACK,
    HUMAN,
    RESOLVED,
    SHARE,
    VERDICTS,
    Reply,
    packed,
    plain,
    render_answer,
    small_print,
)
from trainmedic.ui.present.slack_text import escape, link, wrapped
from trainmedic.ui.slack.calls import SlackLost, SlackRefused
from trainmedic.ui.slack.gather import Place
from trainmedic.ui.slack.memory import PostedAnswer
from trainmedic.ui.slack.messages import messages
from trainmedic.ui.slack.question_handler import QuestionHandler, said
from trainmedic.ui.slack.review import FOLDER, write_draft

log = logging.getLogger("trainmedic.slack")
QUESTION = 600
"""Characters of the question in the summary for a human."""


class Clicks:
    """Handles clicks on the buttons of answers."""

    def __init__(self, desk: QuestionHandler) -> None:
        self._desk = desk
        self._tools = desk.tools

    async def handle(self, body: Mapping[str, Any]) -> None:
        """Do what the button says; never raises. The click was acknowledged already."""
        action = (body.get("actions") or [{}])[0]
        place, url = place_of(body, self._tools.identity.team), str(body.get("response_url") or "")
        named = value_of(action)
        language = str(named.get("language") or "en")
        alone = bool((body.get("container") or {}).get("is_ephemeral"))
        trace_id = uuid.uuid4().hex
        try:
            match action.get("action_id"):
                case known if known == FEEDBACK:
                    await self._feedback(place, named, language, url)
                case known if known == RESOLVED:
                    await self._resolved(place, named, language, url, since="" if alone else clicked_ts(body))
                case known if known == HUMAN:
                    await self._human(place, named, language, url, alone=alone)
                case known if known == SHARE:
                    await self._share(place, named, language, url, in_thread=in_thread(body))
                case _:
                    log.info("a click on a button that is no longer known")
        except Exception as error:
            await self._desk.failed(place, error, language, trace_id, url=url, alone=True)

    async def _feedback(self, place: Place, named: Mapping[str, str], language: str, url: str) -> None:
        reaction = "up" if named.get("reaction") == "up" else "down"
        await self._store(named, reaction)
        await self._desk.say(place, messages(f"thanks.{reaction}", language), url=url, alone=True)

    async def _store(self, named: Mapping[str, str], reaction: str) -> None:
        feedback = Feedback(answer_id=named.get("answer", ""), reaction=reaction, reason="slack")
        await self._tools.context.executor(lambda: self._tools.context.advisor.give_feedback(feedback))

    async def _resolved(self, place: Place, named: Mapping[str, str], language: str, url: str, *, since: str) -> None:
        """``since`` is the message clicked on; empty where only its reader sees it."""
        posted = await self._desk.recall(named.get("answer", ""))
        try:
            await self._store(named, "resolved")
        except TrainmedicError as error:  # without a history the draft is worth writing all the same
            log.warning("the feedback was not stored: %s", error.message)
        afterwards: tuple[str, ...] = ()
        permalink = ""
        if since:
            afterwards, permalink = await self._afterwards(place, since), await self._permalink(place)
        folder = self._tools.context.settings.data_dir / FOLDER
        draft = await self._tools.context.executor(
            lambda: write_draft(folder, posted.answer, posted.question, posted.attachments, afterwards, permalink)
        )
        text = messages("resolved", language, user=place.user, draft=draft)
        await self._desk.say(place, text, url=url, alone=not since)

    async def _afterwards(self, place: Place, since: str) -> tuple[str, ...]:
        """What people wrote in the thread after the answer."""
        try:
            thread = await self._tools.gatherer.thread(place)
        except (SlackRefused, SlackLost) as error:
            log.warning("the thread could not be read: %s", error)
            return ()
        number = next((number for number, item in enumerate(thread) if item.ts == since), len(thread))
        return tuple(item.text for item in thread[number + 1 :] if item.text and not item.bot)

    async def _permalink(self, place: Place) -> str:
        try:
            found = await self._tools.calls.read("chat_getPermalink", channel=place.channel, message_ts=place.thread_ts)
        except (SlackRefused, SlackLost) as error:
            log.warning("no address of the thread: %s", error)
            return ""
        return str(found.get("permalink") or "")

    async def _human(self, place: Place, named: Mapping[str, str], language: str, url: str, *, alone: bool) -> None:
        posted = await self._desk.recall(named.get("answer", ""))
        settings = self._tools.context.settings
        group = f"<!subteam^{settings.slack_human_group}>" if settings.slack_human_group else ""
        asks = messages("asked_human", language, group=group, user=place.user).strip()
        private = place.direct or alone
        public_url = settings.public_url.rstrip("/")
        address = await self._permalink(place) if settings.slack_human_channel and not private else ""
        if public_url and not address:
            address = f"{public_url}/?answer={posted.answer.id}"
        reply = summary(asks, posted, language, address)
        if settings.slack_human_channel:
            await self._tools.poster.post(settings.slack_human_channel, None, [reply])
        elif not private:
            await self._tools.poster.post(place.channel, place.thread_ts, [reply])
        await self._desk.say(place, messages("human_told", language), url=url, alone=True)

    async def _share(self, place: Place, named: Mapping[str, str], language: str, url: str, *, in_thread: bool) -> None:
        posted = await self._desk.recall(named.get("answer", ""))
        by = messages("shared", language, user=place.user)
        question = f"> {quoted(posted.question)}" if posted.question.strip() else ""
        heading = Reply(text=by, blocks=(said(f"{by}\n{question}".strip()).blocks[0],))
        first, *rest = render_answer(posted.answer, self._desk.extras(place))
        replies = [*packed([*heading.blocks, *first.blocks], first.text), *rest]
        thread_ts = place.thread_ts if in_thread else None
        try:
            await self._tools.poster.post(place.channel, thread_ts, replies)
        except SlackRefused as refused:
            if refused.error not in ("not_in_channel", "channel_not_found"):
                raise
            # The address of the command may post where the bot may not.
            options = {"response_type": "in_channel", **({"thread_ts": thread_ts} if thread_ts else {})}
            for reply in replies:
                if not await self._tools.poster.respond(url, reply, **options):
                    raise
        await self._tools.poster.take_away(url)


def summary(asks: str, posted: PostedAnswer, language: str, address: str = "") -> Reply:
    """What a human needs to take over: the question, the verdict, the candidates, what is not known."""
    answer = posted.answer
    colon = "：" if language == "zh" else ": "
    lines = [f"{messages('summary.question', language)}{colon}{quoted(posted.question)}"]
    lines.append(f"{messages('summary.verdict', language)}{colon}{VERDICTS[answer.verdict].get(language)}")
    causes = [f"{escape(cause.title)} ({cause.confidence})" for cause in answer.causes[:3]]
    if causes:
        lines.append(f"{messages('summary.causes', language)}{colon}{'; '.join(causes)}")
    missing = [escape(item.ask) for item in answer.missing[:3]]
    if missing:
        lines.append(f"{messages('summary.missing', language)}{colon}{' '.join(missing)}")
    if address:
        lines.append(link(address, messages("summary.where", language)))
    body = "\n".join(lines)
    return Reply(text=asks, blocks=(*said(asks).blocks, *small_print([p for p in wrapped(body, 900)])))


def quoted(question: str) -> str:
    """The beginning of a question on one line, for mrkdwn. It is masked already; mentions in it are only characters."""
    text = plain(question)
    return escape(text if len(text) <= QUESTION else text[: QUESTION - 1] + "…")


def value_of(action: Mapping[str, Any]) -> Mapping[str, str]:
    """What our button carries; nothing where it is not ours."""
    try:
        value = json.loads(str(action.get("value") or "{}"))
    except ValueError:
        return {}
    return {str(name): str(item) for name, item in value.items()} if isinstance(value, dict) else {}


def place_of(body: Mapping[str, Any], team: str) -> Place:
    """Where a click or a shortcut happened."""
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
    """The message that was clicked on."""
    return str((body.get("message") or {}).get("ts") or (body.get("container") or {}).get("message_ts") or "")


def in_thread(body: Mapping[str, Any]) -> bool:
    """Whether the message clicked on stands in a thread."""
    return bool((body.get("message") or {}).get("thread_ts") or (body.get("container") or {}).get("thread_ts"))
