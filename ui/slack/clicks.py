"""The buttons under an answer: feedback, resolved, ask a human, share."""

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
    Reply,
    packed,
    plain,
    render_answer,
    small_print,
    verdict_name,
)
from trainmedic.ui.present.slack_text import escape, link, wrapped
from trainmedic.ui.slack.calls import SlackLost, SlackRefused
from trainmedic.ui.slack.gather import Place
from trainmedic.ui.slack.memory import PostedAnswer
from trainmedic.ui.slack.messages import messages
from trainmedic.ui.slack.question_handler import QuestionHandler, short_reply
from trainmedic.ui.slack.review import FOLDER, write_draft

log = logging.getLogger("trainmedic.slack")
QUESTION = 600
"""Code points of the question in the summary for a human."""


class Clicks:
    def __init__(self, questions: QuestionHandler) -> None:
        self._questions = questions
        self._workspace = questions.workspace

    async def handle(self, body: Mapping[str, Any]) -> None:
        """Perform the button's action; never raises. The click is acknowledged already."""
        action = (body.get("actions") or [{}])[0]
        place, url = place_of(body, self._workspace.identity.team), str(body.get("response_url") or "")
        value = value_of(action)
        language = str(value.get("language") or "en")
        alone = bool((body.get("container") or {}).get("is_ephemeral"))
        trace_id = uuid.uuid4().hex
        try:
            match action.get("action_id"):
                case known if known == FEEDBACK:
                    await self._feedback(place, value, language, url)
                case known if known == RESOLVED:
                    await self._resolved(place, value, language, url, since="" if alone else clicked_ts(body))
                case known if known == HUMAN:
                    await self._human(place, value, language, url, alone=alone)
                case known if known == SHARE:
                    await self._share(place, value, language, url, in_thread=in_thread(body))
                case _:
                    log.info("a click on an unknown button")
        except Exception as error:
            await self._questions.failed(place, error, language, trace_id, url=url, alone=True)

    async def _feedback(self, place: Place, value: Mapping[str, str], language: str, url: str) -> None:
        reaction = "up" if value.get("reaction") == "up" else "down"
        await self._store(value, reaction)
        await self._questions.say(place, messages(f"thanks.{reaction}", language), url=url, alone=True)

    async def _store(self, value: Mapping[str, str], reaction: str) -> None:
        feedback = Feedback(answer_id=value.get("answer", ""), reaction=reaction, reason="slack")
        await self._workspace.context.executor(lambda: self._workspace.context.memory.give_feedback(feedback))

    async def _resolved(self, place: Place, value: Mapping[str, str], language: str, url: str, *, since: str) -> None:
        """``since`` is the clicked message's timestamp; empty for an ephemeral one."""
        posted = await self._questions.recall(value.get("answer", ""))
        try:
            await self._store(value, "resolved")
        except TrainmedicError as error:  # the draft is useful even without a history
            log.warning("the feedback was not stored: %s", error.message)
        afterwards: tuple[str, ...] = ()
        permalink = ""
        if since:
            afterwards, permalink = await self._afterwards(place, since), await self._permalink(place)
        folder = self._workspace.context.settings.data_dir / FOLDER
        draft = await self._workspace.context.executor(
            lambda: write_draft(folder, posted.answer, posted.question, posted.attachments, afterwards, permalink)
        )
        text = messages("resolved", language, user=place.user, draft=draft)
        await self._questions.say(place, text, url=url, alone=not since)

    async def _afterwards(self, place: Place, since: str) -> tuple[str, ...]:
        try:
            thread = await self._workspace.gatherer.thread(place)
        except (SlackRefused, SlackLost) as error:
            log.warning("the thread could not be read: %s", error)
            return ()
        number = next((number for number, item in enumerate(thread) if item.ts == since), len(thread))
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

    async def _human(self, place: Place, value: Mapping[str, str], language: str, url: str, *, alone: bool) -> None:
        posted = await self._questions.recall(value.get("answer", ""))
        settings = self._workspace.context.settings
        # The only form in which Slack notifies a user group; a plain @name is just text.
        group = f"<!subteam^{settings.slack_human_group}>" if settings.slack_human_group else ""
        asks = messages("asked_human", language, group=group, user=place.user).strip()
        private = place.direct or alone
        public_url = settings.public_url.rstrip("/")
        address = await self._permalink(place) if settings.slack_human_channel and not private else ""
        if public_url and not address:
            address = f"{public_url}/?answer={posted.answer.id}"
        reply = summary(asks, posted, language, address)
        if settings.slack_human_channel:
            await self._workspace.poster.post(settings.slack_human_channel, None, [reply])
        elif not private:
            await self._workspace.poster.post(place.channel, place.thread_ts, [reply])
        await self._questions.say(place, messages("human_told", language), url=url, alone=True)

    async def _share(self, place: Place, value: Mapping[str, str], language: str, url: str, *, in_thread: bool) -> None:
        posted = await self._questions.recall(value.get("answer", ""))
        by = messages("shared", language, user=place.user)
        question = f"> {quoted(posted.question)}" if posted.question.strip() else ""
        heading = Reply(text=by, blocks=(short_reply(f"{by}\n{question}".strip()).blocks[0],))
        first, *rest = render_answer(posted.answer, self._questions.extras(place))
        replies = [*packed([*heading.blocks, *first.blocks], first.text), *rest]
        thread_ts = place.thread_ts if in_thread else None
        try:
            await self._workspace.poster.post(place.channel, thread_ts, replies)
        except SlackRefused as refused:
            if refused.error not in ("not_in_channel", "channel_not_found"):
                raise
            # The command's response_url may post in channels that the bot has not joined.
            options = {"response_type": "in_channel", **({"thread_ts": thread_ts} if thread_ts else {})}
            for reply in replies:
                if not await self._workspace.poster.respond(url, reply, **options):
                    raise
        await self._workspace.poster.delete_original(url)


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
