"""The buttons under an answer, end to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.slack.bots import QUESTION, bot_in
from tests.slack.fake import ANN, BEN, DM, GENERAL, LocalSlack, Message
from trainmedic.kb.pages.case import load_cases
from trainmedic.service.advisor import Advisor
from trainmedic.service.storage.history import Feedback
from trainmedic.ui.channels.seen import SeenEvents
from trainmedic.ui.channels.slack.bot import SlackBot
from trainmedic.ui.channels.slack.post import ChannelPace

TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"
FEEDBACK, RESOLVED, HUMAN = "trainmedic_feedback", "trainmedic_resolved", "trainmedic_human"


async def answered(slack: LocalSlack, text: str = QUESTION, **more: Any) -> Message:
    said = slack.says(f"<@U0BOT> {text}", **more)
    return await slack.until_said("Helped", thread_ts=said.ts)


def feedback_on(advisor: Advisor, bot: SlackBot) -> Feedback | None:
    assert advisor.memory.history is not None
    [answer_id] = bot.workspace.posted
    return advisor.memory.history.feedback(answer_id)


async def test_feedback_is_stored_and_the_last_word_counts(strict: LocalSlack, bot: SlackBot, advisor: Advisor) -> None:
    answer = await answered(strict)
    await strict.until_acked(strict.clicks(answer, FEEDBACK, positive=True))
    await strict.until_whispered("Thank you, noted", user=ANN)
    stored = feedback_on(advisor, bot)
    assert stored is not None
    assert stored.reaction == "up"
    strict.clicks(answer, FEEDBACK, user=BEN, positive=False)
    await strict.until_whispered("Say in the thread", user=BEN)
    stored = feedback_on(advisor, bot)
    assert stored is not None
    assert stored.reaction == "down"


def test_feedback_under_a_streamed_answer_of_a_former_process_is_stored(
    strict: LocalSlack, with_bot: Callable[..., None], advisor: Advisor
) -> None:
    kept: list[Message] = []

    async def ask(bot: SlackBot) -> None:
        kept.append(await answered(strict))

    async def click(bot: SlackBot) -> None:
        await strict.until_connected(2)
        strict.clicks(kept[0], RESOLVED)
        await strict.until_said("marked this as resolved")

    with_bot(ask)
    with_bot(click)


async def test_feedback_on_an_answer_nobody_knows_is_told_so(strict: LocalSlack, bot: SlackBot) -> None:
    answer = await answered(strict)
    history = bot.context.advisor.memory.history
    assert history is not None
    block = next(block for block in answer.blocks if block["type"] == "context_actions")
    block["elements"][0]["positive_button"]["value"] = '{"answer": "gone", "reaction": "up", "language": "zh"}'
    await strict.until_acked(strict.clicks(answer, FEEDBACK, positive=True))
    told = await strict.until_whispered("no answer 'gone'")
    assert "跟踪编号" in told.shown


def test_resolved_writes_a_draft_case_for_review(
    strict: LocalSlack, with_bot: Callable[..., None], advisor: Advisor, tmp_path: Path
) -> None:
    async def act(bot: SlackBot) -> None:
        said = strict.says(f"<@U0BOT> HF_TOKEN={TOKEN} {QUESTION}")
        answer = await strict.until_said("Helped", thread_ts=said.ts)
        strict.says(f"removing the flag did it, token={TOKEN}", user=BEN, thread_ts=said.ts)
        for _ in range(2):  # a second click writes the same draft again
            await strict.until_acked(strict.clicks(answer, RESOLVED, user=BEN))
        await strict.until(
            lambda: len([m for m in strict.replies(said.ts) if "marked this as resolved" in m.shown]) == 2, "both"
        )
        stored = feedback_on(advisor, bot)
        assert stored is not None
        assert stored.reaction == "resolved"

    with_bot(act)
    [page] = (tmp_path / "review").glob("*.md")
    text = page.read_text(encoding="utf-8")
    assert "status: draft" in text
    assert "removing the flag did it" in text
    assert "--vanilla_loss" in text
    assert "openrlhf-kto-vanilla-loss-nan" in text
    assert "local.slack.com/archives" in text
    assert TOKEN not in text
    assert f"id: {page.stem}\n" in text


def test_a_draft_is_a_page_that_the_loader_reads_and_no_user_sees(
    strict: LocalSlack, with_bot: Callable[..., None], tmp_path: Path
) -> None:
    async def act(bot: SlackBot) -> None:
        answer = await answered(strict)
        strict.clicks(answer, RESOLVED)
        await strict.until_said("waits for review")

    with_bot(act)
    folder = tmp_path / "pages"
    (folder / "cases" / "openrlhf").mkdir(parents=True)
    [page] = (tmp_path / "review").glob("*.md")
    (folder / "cases" / "openrlhf" / page.name).write_bytes(page.read_bytes())
    cases = load_cases((folder,))
    assert [failure for failure in cases.failures if page.stem in failure.page] == []
    [draft] = [case for case in cases.cases if case.id == page.stem]
    assert draft.status == "draft"
    assert draft not in cases.published


@pytest.mark.bot(slack_human_group="S0HELP")
async def test_a_human_is_asked_in_the_thread_with_a_summary(strict: LocalSlack, bot: SlackBot) -> None:
    answer = await answered(strict, f"KTO loss <!channel> is NaN {QUESTION}")
    await strict.until_acked(strict.clicks(answer, HUMAN))
    summary = await strict.until_said("asks for a person", thread_ts=answer.thread_ts)
    assert "<!subteam^S0HELP> <@U0ANN>" in summary.shown
    assert "Question: KTO loss" in summary.shown
    assert "<!channel>" not in summary.shown
    assert "Candidates: OpenRLHF KTO loss is NaN with --vanilla_loss (high)" in summary.shown
    await strict.until_whispered("A person has been asked")


@pytest.mark.bot(slack_human_channel=GENERAL, public_url="https://tm.example/")
async def test_from_a_private_conversation_a_human_is_asked_in_the_channel_for_that(
    strict: LocalSlack, bot: SlackBot
) -> None:
    said = strict.says(QUESTION, channel=DM)
    answer = await strict.until_said("Ask a human", thread_ts=said.ts)
    strict.clicks(answer, HUMAN)
    summary = await strict.until_said("asks for a person", channel=GENERAL)
    assert "https://tm.example/?answer=" in summary.sent["blocks"][-1]["elements"][-1]["text"]
    await strict.until_whispered("A person has been asked")


@pytest.mark.bot(slack_human_group="S0HELP")
async def test_the_button_for_a_human_is_drawn_only_where_one_can_be_asked(strict: LocalSlack, bot: SlackBot) -> None:
    said = strict.says(QUESTION, channel=DM)
    assert "Ask a human" not in (await strict.until_said("Helped", thread_ts=said.ts)).shown
    assert "Ask a human" in (await answered(strict)).shown


def test_without_a_history_feedback_is_refused_politely_but_the_draft_is_written(
    strict: LocalSlack, knowledge_advisor: Advisor, tmp_path: Path
) -> None:
    async def act() -> None:
        async with bot_in(strict, knowledge_advisor, tmp_path):
            answer = await answered(strict)
            strict.clicks(answer, FEEDBACK, positive=True)
            await strict.until_whispered("no history is kept")
            strict.clicks(answer, RESOLVED)
            await strict.until_said("waits for review")

    asyncio.run(act())


def test_messages_in_one_channel_are_spaced_after_a_short_burst() -> None:
    now = 100.0
    pace = ChannelPace(lambda: now)
    assert [pace.wait_s("C1") for _ in range(5)] == [0.0, 0.0, 0.0, 1.0, 2.0]
    assert pace.wait_s("C2") == 0.0
    now = 103.0
    assert [pace.wait_s("C1") for _ in range(2)] == [0.0, 1.0]
    now = 200.0
    assert [pace.wait_s("C1") for _ in range(4)] == [0.0, 0.0, 0.0, 1.0]


def test_what_is_remembered_is_bounded() -> None:
    events = SeenEvents(2)
    assert events.claim("a", "b")
    assert not events.claim("c", "a")
    assert events.claim("d")
    assert events.claim("b")  # long ago
