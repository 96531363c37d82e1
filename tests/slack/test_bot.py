"""The bot end to end: a real slack_bolt app over real sockets against the local Slack."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.slack.bots import ANSWER, COMMAND, QUESTION, Failing, Slowly, bot_in, settled
from tests.slack.fake import ANN, BEN, DM, GENERAL, OTHER, PRIVATE, Fault, LocalSlack
from trainmedic.kb.errors import TrainmedicError
from trainmedic.service.advisor import Advisor
from trainmedic.ui.channels.slack.bot import SlackBot
from trainmedic.ui.channels.slack.scopes import SlackLogin, SlackUnavailable

TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"


# ── mentions and threads ─────────────────────────────────────────────────────────────────────────────────────────────
async def test_a_mention_is_answered_in_its_thread(strict: LocalSlack, bot: SlackBot) -> None:
    said = strict.says(f"<@U0BOT> {QUESTION}")
    reply = await strict.until_said("Cause found", thread_ts=said.ts)
    for part in ("confidence: high", "--vanilla_loss", "Fix", "Helped", "Mark resolved", "Read:"):
        assert part in reply.shown
    assert "Ruled out" not in reply.shown
    await strict.until_said("Ruled out", thread_ts=said.ts)
    assert reply.sent["unfurl_links"] is False
    for delivery in said.deliveries:
        await strict.until_acked(delivery)
    await settled(bot)
    assert len(strict.replies(said.ts)) == ANSWER  # app_mention and message.channels are one sentence


async def test_what_stood_in_the_thread_before_is_evidence(strict: LocalSlack, bot: SlackBot) -> None:
    root = strict.says("my KTO loss is NaN from the first step")
    strict.says(f"this is what she runs:\n```{COMMAND}```", user=BEN, thread_ts=root.ts)
    strict.says("<@U0BOT> why?", thread_ts=root.ts)
    reply = await strict.until_said("Cause found", thread_ts=root.ts)
    assert "thread-2" in reply.shown  # the place of the evidence: the thread's second message


async def test_a_mention_without_words_diagnoses_its_thread(strict: LocalSlack, bot: SlackBot) -> None:
    root = strict.says(QUESTION)
    strict.says("<@U0BOT>", user=BEN, thread_ts=root.ts)
    await strict.until_said("Cause found", thread_ts=root.ts)


async def test_an_alert_of_another_bot_is_evidence_but_no_question(strict: LocalSlack, bot: SlackBot) -> None:
    alert = strict.says(f"job failed: loss is nan <@U0BOT>\n```{COMMAND}```", bot=True)
    for delivery in alert.deliveries:
        await strict.until_acked(delivery)
    await settled(bot)
    assert strict.replies(alert.ts) == []
    strict.says("<@U0BOT> why is the loss nan?", thread_ts=alert.ts)
    await strict.until_said("Cause found", thread_ts=alert.ts)


async def test_a_reply_to_what_was_asked_back_needs_no_mention(
    strict: LocalSlack, bot: SlackBot, advisor: Advisor
) -> None:
    said = strict.says("<@U0BOT> the loss of my KTO run is NaN")
    await strict.until_said("One more fact is needed", thread_ts=said.ts)
    await settled(bot)
    other = strict.says("same here", user=BEN, thread_ts=said.ts)
    for delivery in other.deliveries:
        await strict.until_acked(delivery)
    await settled(bot)
    assert len([each for each in strict.replies(said.ts) if each.bot_id]) == ANSWER  # Ben was not asked
    strict.says(f"```{COMMAND}```", thread_ts=said.ts)
    await strict.until_said("Cause found", thread_ts=said.ts)
    place = bot.workspace.incoming(said.message.wire())
    assert place.text == "the loss of my KTO run is NaN"


def test_a_thread_is_one_conversation_and_its_name_cannot_be_guessed(
    strict: LocalSlack, with_bot: Callable[..., None], advisor: Advisor
) -> None:
    answerer = Slowly(advisor)
    answerer.go.set()

    async def act(bot: SlackBot) -> None:
        said = strict.says("<@U0BOT> loss is NaN")
        await strict.until_said("", thread_ts=said.ts)
        await settled(bot)
        strict.says("<@U0BOT> and now?", thread_ts=said.ts)
        while len(answerer.asked) < 2:
            await asyncio.sleep(0.005)
        first, second = (ask.conversation_id or "" for ask in answerer.asked)
        assert first == second
        assert first.startswith("slack-")
        assert said.ts not in first
        assert "and now?" in answerer.asked[1].question
        assert "loss is NaN" not in answerer.asked[1].question  # the history has it
        await settled(bot)

    with_bot(act, answerer=answerer)


def test_a_thread_that_may_not_be_read_is_answered_from_the_mention_with_a_note(
    strict: LocalSlack, with_bot: Callable[..., None]
) -> None:
    strict.world.scopes.discard("channels:history")

    async def act(bot: SlackBot) -> None:
        root = strict.says("my loss is NaN")
        strict.says(f"<@U0BOT> {QUESTION}", thread_ts=root.ts)
        reply = await strict.until_said("Cause found", thread_ts=root.ts)
        assert "missing_scope channels:history" in reply.shown
        strict.refused("missing_scope", "conversations.replies")

    with_bot(act)


def test_a_long_thread_is_read_over_all_its_pages(
    strict: LocalSlack, with_bot: Callable[..., None], advisor: Advisor
) -> None:
    answerer = Slowly(advisor)
    answerer.go.set()

    async def act(bot: SlackBot) -> None:
        root = strict.says("my loss is NaN")
        for number in range(230):
            strict.stored(f"idea {number}", user=BEN, thread_ts=root.ts)
        strict.says("<@U0BOT> why?", thread_ts=root.ts)
        reply = await strict.until_said("", thread_ts=root.ts)
        assert strict.count("conversations.replies") == 2
        assert len(answerer.asked[0].attachments) == 40
        assert "more than 40 files" in reply.shown

    with_bot(act, answerer=answerer)


# ── direct messages and the app's own view ───────────────────────────────────────────────────────────────────────────
async def test_a_direct_message_is_answered_in_its_own_thread(strict: LocalSlack, bot: SlackBot) -> None:
    said = strict.says(QUESTION, channel=DM)
    await strict.until_said("Cause found", channel=DM, thread_ts=said.ts)
    further = strict.says("thanks, and does lowering the learning rate help?", channel=DM, thread_ts=said.ts)
    await strict.until(lambda: len([m for m in strict.replies(said.ts) if m.bot_id]) == 2, "a second answer")
    for delivery in further.deliveries:
        await strict.until_acked(delivery)


# ── what must not be answered ────────────────────────────────────────────────────────────────────────────────────────
async def test_edits_deletions_and_the_bots_own_words_are_acknowledged_and_not_answered(
    strict: LocalSlack, bot: SlackBot
) -> None:
    said = strict.says("<@U0BOT> help me with a NaN loss")
    await strict.until_said("", thread_ts=said.ts)
    await settled(bot)
    edited, deleted = strict.edits(said.ts, "<@U0BOT> never mind"), strict.deletes(said.ts)
    for delivery in (edited, deleted, *strict.deliveries):
        assert delivery is not None
        await strict.until_acked(delivery)
    await settled(bot)
    assert strict.count("chat.postMessage") == ANSWER


async def test_a_redelivered_event_is_answered_once(strict: LocalSlack, bot: SlackBot) -> None:
    said = strict.says(f"<@U0BOT> {QUESTION}")
    await strict.until_said("Cause found", thread_ts=said.ts)
    strict.redeliver(said.deliveries[0])
    await strict.until(lambda: len(said.deliveries[0].attempts) == 2, "a second delivery")
    await strict.until(lambda: said.deliveries[0].attempts[1].ack_s is not None, "its acknowledgement")
    await settled(bot)
    assert strict.count("chat.postMessage") == ANSWER


async def test_unknown_events_and_buttons_are_acknowledged_and_an_empty_mention_is_told_what_to_do(
    strict: LocalSlack, bot: SlackBot
) -> None:
    empty = strict.says("<@U0BOT>")
    await strict.until_said("Diagnose this", thread_ts=empty.ts)
    said = strict.says(f"<@U0BOT> {QUESTION}")
    old = await strict.until_said("Helped", thread_ts=said.ts)
    old.blocks[-1]["elements"][0]["action_id"] = "old_one"
    deliveries = [
        strict.event({"type": "channel_archive", "channel": GENERAL}),
        strict.event({"type": "app_context_changed", "context": {}}),
        strict.clicks(old, "old_one"),
    ]
    for delivery in deliveries:
        await strict.until_acked(delivery)


def test_many_questions_at_once_are_all_acknowledged_in_time(
    strict: LocalSlack, with_bot: Callable[..., None], advisor: Advisor
) -> None:
    answerer = Slowly(advisor)

    async def act(bot: SlackBot) -> None:
        places = [strict.add_channel(f"team-{number}") for number in range(10)]
        said = [strict.says(f"<@U0BOT> question {n}: loss is NaN", channel=places[n % 10]) for n in range(20)]
        for each in said:
            for delivery in each.deliveries:
                await strict.until_acked(delivery)
        assert not any(strict.replies(each.ts) for each in said)
        assert len(answerer.asked) <= 16
        bot.workspace.streams.unsupported.add("channel")  # too many at once for this test
        answerer.go.set()
        await settled(bot)
        assert all(strict.replies(each.ts) for each in said)
        assert max(delivery.ack_s or 9 for each in said for delivery in each.deliveries) < 3

    with_bot(act, answerer=answerer)


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────
async def test_the_command_answers_its_asker_alone(strict: LocalSlack, bot: SlackBot) -> None:
    await strict.until_acked(strict.command(f"KTO loss is NaN: {COMMAND}", channel=OTHER))
    await strict.until_whispered("Cause found", user=ANN)
    assert strict.messages() == []


@pytest.mark.parametrize(("asked", "told"), [("", "mention me"), ("帮助", "提及我")])
async def test_the_commands_help_speaks_both_languages(
    strict: LocalSlack, bot: SlackBot, asked: str, told: str
) -> None:
    await strict.until_acked(strict.command(asked))
    await strict.until_whispered(told)


# ── the message shortcut ─────────────────────────────────────────────────────────────────────────────────────────────
async def test_the_shortcut_diagnoses_a_message_in_its_thread(strict: LocalSlack, bot: SlackBot) -> None:
    said = strict.says(QUESTION, user=BEN)
    await strict.until_acked(strict.shortcut("trainmedic_diagnose", said.ts))
    await strict.until_said("Cause found", thread_ts=said.ts)


async def test_the_shortcut_answers_its_user_alone_where_the_bot_was_not_invited(
    strict: LocalSlack, bot: SlackBot
) -> None:
    said = strict.says(QUESTION, channel=OTHER)
    strict.shortcut("trainmedic_diagnose", said.ts)
    told = await strict.until_whispered("Cause found")
    assert "I am not in this channel" in told.shown
    await strict.until_refused("not_in_channel", "chat.postMessage")
    await settled(bot)


# ── settings of channels ─────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.bot(slack_channels={GENERAL: {"quiet": True}, PRIVATE: {"language": "zh"}})
async def test_a_channel_can_have_a_language_and_a_quiet_one_hears_nothing_that_is_not_grounded(
    strict: LocalSlack, bot: SlackBot
) -> None:
    said = strict.says("<@U0BOT> loss is weird")
    await strict.until_whispered("does not cover this well enough", user=ANN)
    await settled(bot)
    assert strict.replies(said.ts) == []
    for channel, found in ((GENERAL, "Cause found"), (PRIVATE, "已找到原因")):
        asked = strict.says(f"<@U0BOT> {QUESTION}", channel=channel)
        await strict.until_said(found, thread_ts=asked.ts)


@pytest.mark.bot(slack_channels={GENERAL: {"answers": "all"}})
async def test_a_channel_can_be_answered_without_mentions_but_only_with_a_grounded_answer(
    strict: LocalSlack, bot: SlackBot
) -> None:
    chat = strict.says("who is in for lunch?")
    for delivery in chat.deliveries:
        await strict.until_acked(delivery)
    said = strict.says(QUESTION)
    await strict.until_said("Cause found", thread_ts=said.ts)
    await settled(bot)
    assert strict.replies(chat.ts) == []
    assert strict.ephemerals() == []


# ── what is pasted ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_nobody_is_pinged_by_what_was_pasted(strict: LocalSlack, bot: SlackBot) -> None:
    command = COMMAND.replace("--learning_rate 5e-7", "--note '<!channel> <@U0BEN> <#C0GENERAL>'")
    said = strict.says(f"<@U0BOT> KTO loss is NaN & <b>\n```{command}```")
    reply = await strict.until_said("Cause found", thread_ts=said.ts)
    sent = json.dumps(reply.sent)
    for ping in ("<!channel", "<@U0BEN", "<#C0GENERAL"):
        assert ping not in sent


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────
class Unavailable(TrainmedicError):
    """An error of ours with a hint."""

    code = "test"
    kind = "unavailable"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unavailable("the index is being built", hint="ask again in a minute"), "the index is being built. ask again"),
        (RuntimeError(f"secret inside: {TOKEN}"), "something went wrong on our side"),
    ],
)
def test_a_failure_is_told_with_a_trace_id(
    strict: LocalSlack,
    with_bot: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    told: str,
) -> None:
    async def act(bot: SlackBot) -> None:
        said = strict.says("<@U0BOT> loss is NaN")
        reply = await strict.until_said(told, thread_ts=said.ts)
        trace_id = reply.shown.rpartition("Trace id: `")[2].rstrip("`")
        assert len(trace_id) == 32
        assert trace_id in caplog.text
        assert TOKEN not in caplog.text
        assert TOKEN not in reply.shown

    with_bot(act, answerer=Failing(error))


async def test_a_rate_limit_is_waited_out(strict: LocalSlack, bot: SlackBot) -> None:
    strict.fault("chat.postMessage", Fault(status=429, retry_after=1, times=1))
    started = time.monotonic()
    said = strict.says(f"<@U0BOT> {QUESTION}")
    await strict.until_said("Cause found", thread_ts=said.ts)
    assert time.monotonic() - started >= 1.0
    await settled(bot)
    assert strict.count("chat.postMessage") == ANSWER + 1


async def test_a_post_that_never_arrived_is_posted_again(strict: LocalSlack, bot: SlackBot) -> None:
    for fault in (Fault(drop=True), Fault(status=503)):
        strict.fault("chat.postMessage", fault)
        said = strict.says(f"<@U0BOT> {QUESTION}")
        await strict.until_said("Cause found", thread_ts=said.ts)


async def test_an_answer_that_cannot_be_posted_is_told_to_the_asker_alone(strict: LocalSlack, bot: SlackBot) -> None:
    strict.fault("chat.postMessage", Fault(error="restricted_action", times=None))
    strict.says(f"<@U0BOT> {QUESTION}")
    await strict.until_whispered("Slack: restricted_action", user=ANN)


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("how", ["warning", "cut"])
async def test_a_lost_connection_is_made_again(strict: LocalSlack, bot: SlackBot, how: str) -> None:
    strict.disconnect(how)
    await strict.until_connected(2)
    said = strict.says(f"<@U0BOT> {QUESTION}")
    await strict.until_said("Cause found", thread_ts=said.ts)


def test_shutdown_answers_what_was_taken_on(
    strict: LocalSlack, advisor: Advisor, tmp_path: Path, with_bot: Callable[..., None]
) -> None:
    answerer = Slowly(advisor)
    said = ""

    async def act(bot: SlackBot) -> None:
        nonlocal said
        said = strict.says("<@U0BOT> loss is NaN").ts
        while not answerer.asked:
            await asyncio.sleep(0.005)
        asyncio.get_running_loop().call_later(0.1, answerer.go.set)

    with_bot(act, answerer=answerer)
    assert strict.replies(said)
    assert answerer.ended == 1


def test_a_wrong_token_is_named(
    strict: LocalSlack, advisor: Advisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(**more: Any) -> None:
        async with bot_in(strict, advisor, tmp_path, **more):
            raise AssertionError("it started")

    with pytest.raises(SlackLogin, match=r"SLACK_BOT_TOKEN \(invalid_auth\)"):
        asyncio.run(start(slack_bot_token="xoxb-wrong"))
    with pytest.raises(SlackLogin, match=r"SLACK_APP_TOKEN \(invalid_auth\)"):
        asyncio.run(start(slack_app_token="xapp-wrong"))
    monkeypatch.setattr("trainmedic.ui.channels.slack.bot.API", "http://127.0.0.1:9/api/")
    with pytest.raises(SlackUnavailable, match="Slack cannot be reached"):
        asyncio.run(start())
    strict.refused("invalid_auth")
