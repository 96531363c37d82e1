"""The buttons under an answer, end to end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.slack.bots import QUESTION, bot_in
from tests.slack.fake import ANN, BEN, LocalSlack, Message
from trainmedic.service.advisor import Advisor
from trainmedic.ui.channels.seen import SeenEvents
from trainmedic.ui.channels.slack.bot import SlackBot

FEEDBACK, RESOLVED = "trainmedic_feedback", "trainmedic_resolved"


async def answered(slack: LocalSlack, text: str = QUESTION, **more: Any) -> Message:
    said = slack.says(f"<@U0BOT> {text}", **more)
    return await slack.until_said("Helped", thread_ts=said.ts)


def reaction_to(answer: Message, advisor: Advisor) -> str:
    assert advisor.memory.history is not None
    block = next(block for block in answer.sent["blocks"] if block["type"] == "actions")
    stored = advisor.memory.history.feedback(json.loads(block["elements"][0]["value"])["answer"])
    assert stored is not None
    return stored.reaction


async def test_feedback_is_stored_and_the_last_word_counts(strict: LocalSlack, bot: SlackBot, advisor: Advisor) -> None:
    answer = await answered(strict)
    await strict.until_acked(strict.clicks(answer, FEEDBACK, positive=True))
    await strict.until_whispered("Thank you, noted", user=ANN)
    assert reaction_to(answer, advisor) == "up"
    strict.clicks(answer, FEEDBACK, user=BEN, positive=False)
    await strict.until_whispered("Say in the thread", user=BEN)
    assert reaction_to(answer, advisor) == "down"
    strict.clicks(answer, RESOLVED, user=BEN)
    await strict.until_whispered("Marked as resolved", user=BEN)
    assert reaction_to(answer, advisor) == "resolved"


def test_feedback_on_an_answer_of_a_former_process_is_stored(
    strict: LocalSlack, with_bot: Callable[..., None], advisor: Advisor
) -> None:
    kept: list[Message] = []

    async def ask(bot: SlackBot) -> None:
        kept.append(await answered(strict))

    async def click(bot: SlackBot) -> None:
        await strict.until_connected(2)
        strict.clicks(kept[0], RESOLVED)
        await strict.until_whispered("Marked as resolved")

    with_bot(ask)
    with_bot(click)
    assert reaction_to(kept[0], advisor) == "resolved"


async def test_feedback_on_an_unknown_answer_is_refused_in_the_buttons_language(
    strict: LocalSlack, bot: SlackBot
) -> None:
    answer = await answered(strict)
    block = next(block for block in answer.blocks if block["type"] == "context_actions")
    block["elements"][0]["positive_button"]["value"] = '{"answer": "gone", "reaction": "up", "language": "zh"}'
    await strict.until_acked(strict.clicks(answer, FEEDBACK, positive=True))
    told = await strict.until_whispered("no answer 'gone'")
    assert "跟踪编号" in told.shown


def test_without_a_history_feedback_is_refused_politely(
    strict: LocalSlack, knowledge_advisor: Advisor, tmp_path: Path
) -> None:
    async def act() -> None:
        async with bot_in(strict, knowledge_advisor, tmp_path):
            strict.clicks(await answered(strict), FEEDBACK, positive=True)
            await strict.until_whispered("no history is kept")

    asyncio.run(act())


def test_what_is_remembered_is_bounded() -> None:
    events = SeenEvents(2)
    assert events.claim("a", "b")
    assert not events.claim("c", "a")
    assert events.claim("d")
    assert events.claim("b")  # long ago
