"""An answer that is seen to come: native streams, what replaces them, and what goes wrong with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.slack.bots import ANSWER, QUESTION, QUICK, Slowly, bot_in, settled
from tests.slack.fake import DM, GENERAL, Fault, LocalSlack, Message
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer, Section, StepView, markdown
from trainmedic.service.answering import Draft
from trainmedic.service.dialogue.request import Ask
from trainmedic.ui.channels.slack.bot import SlackBot
from trainmedic.ui.channels.slack.live import LiveAnswer, Streams
from trainmedic.ui.channels.slack.post import Place, Poster

STEP = StepView(number=1, tool="rules", what="Checked the rules again", arguments={}, result="2 fired")
FAILED_STEP = replace(STEP, number=2, what="Looked for <!channel> releases", ok=False)
Act = Callable[[SlackBot, Slowly], Awaitable[None]]


def only_answer(slack: LocalSlack, ts: str) -> Message:
    """The message that leads; what follows are its details."""
    answer, *details = (each for each in slack.replies(ts) if each.bot_id)
    assert len(details) < ANSWER
    return answer


def streamed(slack: LocalSlack) -> str:
    """All chunks that the bot has sent."""
    calls = [*slack.calls("chat.startStream"), *slack.calls("chat.appendStream")]
    return json.dumps([call.args.get("chunks") for call in calls], ensure_ascii=False)


RECEIPT = Section(kind="receipt", body="> Read: your question.", items=("Read: your question.",))


def written(text: str) -> Callable[[Answer], Answer]:
    """The answer as a model would have written it."""
    sections = (RECEIPT, Section(kind="model_text", body=text))
    return lambda answer: replace(answer, answer=markdown(sections), sections=sections, mode="llm", model="tiny")


@pytest.mark.streaming(final=written("Because of the empty mean."))
async def test_the_verdict_is_streamed_before_the_text_is_written(
    strict: LocalSlack, bot: SlackBot, answerer: Slowly
) -> None:
    said = strict.says(f"<@U0BOT> {QUESTION}")
    early = await strict.until_said("Cause found", thread_ts=said.ts, finished=False)
    assert "OpenRLHF KTO loss is NaN with --vanilla_loss" in early.shown
    await strict.until(lambda: "Writing the explanation" in streamed(strict), "the card")
    assert "Helped" not in early.shown
    answerer.go.set()
    final = await strict.until_said("Helped", thread_ts=said.ts)
    assert final.ts == early.ts
    assert "Because of the empty mean." in final.shown
    await settled(bot)
    assert only_answer(strict, said.ts).ts == early.ts
    statuses = [card["status"] for card in final.blocks if card["type"] == "task_card"]
    assert statuses == ["complete", "complete"]
    assert strict.world.statuses[-1]["status"] == "active"


class HeldPoster:
    """Takes every call, but ends the first only when told to."""

    def __init__(self) -> None:
        self.chunks: list[list[dict[str, Any]]] = []
        self.arrived, self.go = asyncio.Event(), asyncio.Event()

    async def calls(self, method: str, *, chunks: list[dict[str, Any]] | None = None, **_: Any) -> dict[str, Any]:
        self.chunks.append(chunks or [])
        self.arrived.set()
        await self.go.wait()
        return {"ts": "1.0"}


def test_a_card_that_changes_while_it_is_being_sent_is_sent_again(advisor: Advisor) -> None:
    draft = Draft(answer=advisor.ask(Ask(question=QUESTION)), sources=())

    async def act() -> list[list[dict[str, Any]]]:
        poster = HeldPoster()
        place = Place(channel="C1", thread_ts="1.0", user="U1", team="T1")
        async with aclosing(LiveAnswer(cast(Poster, poster), Streams(flush_s=QUICK), place)) as live:
            live.open("en")
            await poster.arrived.wait()
            live.begin(draft)
            poster.go.set()
            async with asyncio.timeout(10):
                while len(poster.chunks) < 2:
                    await asyncio.sleep(QUICK)
        return poster.chunks

    first, second, *_ = asyncio.run(act())
    assert [(card["id"], card["status"]) for card in first] == [("read", "in_progress")]
    assert ("read", "complete") in [(card["id"], card["status"]) for card in second if "id" in card]


@pytest.mark.streaming(
    *("an unverified claim", STEP, FAILED_STEP),
    later=(replace(STEP, number=3, what="Compared versions"),),
    final=written("a verified one"),
)
async def test_steps_of_an_investigation_are_cards_and_no_words_are_shown_before_they_are_verified(
    strict: LocalSlack, bot: SlackBot, answerer: Slowly
) -> None:
    said = strict.says(f"<@U0BOT> {QUESTION}")
    await strict.until_said("Cause found", thread_ts=said.ts, finished=False)
    await strict.until(lambda: "Checked the rules again" in streamed(strict), "the card")
    answerer.go.set()
    final = await strict.until_said("Helped", thread_ts=said.ts)
    cards = {card["title"]: card["status"] for card in final.blocks if card["type"] == "task_card"}
    assert cards["Checked the rules again"] == "complete"
    assert cards["Compared versions"] == "complete"
    assert "error" in cards.values()
    assert "an unverified claim" not in final.shown + streamed(strict)


@pytest.mark.streaming(final=written("\n\n".join(f"word{number}" for number in range(4_000))))
async def test_an_answer_longer_than_a_message_goes_on_in_the_next(
    strict: LocalSlack, bot: SlackBot, answerer: Slowly
) -> None:
    said = strict.says(f"<@U0BOT> {QUESTION}")
    await strict.until_said("Cause found", thread_ts=said.ts, finished=False)
    answerer.go.set()
    await strict.until_said("Helped", thread_ts=said.ts)
    answers = [each for each in strict.replies(said.ts) if each.bot_id]
    assert len(answers) >= 3
    shown = {word for each in answers for word in each.shown.split()}
    assert {f"word{number}" for number in range(4_000)} <= shown


@pytest.mark.streaming
async def test_without_streams_the_answer_replaces_a_first_message(
    strict: LocalSlack, bot: SlackBot, answerer: Slowly
) -> None:
    strict.fault("chat.startStream", Fault(error="feature_disabled", times=None))
    for number in (1, 2):
        answerer.go.clear()
        said = strict.says(f"<@U0BOT> {QUESTION}")
        early = await strict.until_said("Reading…", thread_ts=said.ts)
        answerer.go.set()
        final = await strict.until_said("Helped", thread_ts=said.ts)
        assert final.ts == early.ts
        await settled(bot)
        assert only_answer(strict, said.ts).ts == early.ts
        assert strict.count("chat.startStream") == 1, number  # not tried again


@pytest.mark.parametrize("error", ["message_not_in_streaming_state", "internal_error"])
@pytest.mark.streaming
async def test_a_stream_that_breaks_is_replaced_by_the_whole_answer(
    strict: LocalSlack, bot: SlackBot, answerer: Slowly, error: str
) -> None:
    strict.fault("chat.appendStream", Fault(error=error, times=None))
    strict.fault("chat.stopStream", Fault(error=error, times=None))
    said = strict.says(f"<@U0BOT> {QUESTION}")
    started = await strict.until_call("chat.startStream")
    answerer.go.set()
    final = await strict.until_said("Helped", thread_ts=said.ts)
    assert final.ts != started.answer["ts"]
    await settled(bot)
    assert only_answer(strict, said.ts).ts == final.ts


@pytest.mark.streaming(STEP, later=(replace(STEP, number=3, what="Compared versions"),))
async def test_a_limited_append_loses_no_card(strict: LocalSlack, bot: SlackBot, answerer: Slowly) -> None:
    strict.fault("chat.appendStream", Fault(status=429, retry_after=1, times=1))
    said = strict.says(f"<@U0BOT> {QUESTION}")
    early = await strict.until_said("Cause found", thread_ts=said.ts, finished=False)
    answerer.end.clear()
    answerer.go.set()
    await strict.until_call("chat.appendStream", times=2)
    answerer.end.set()
    final = await strict.until_said("Helped", thread_ts=said.ts)
    assert final.ts == early.ts
    titles = [card["title"] for card in final.blocks if card["type"] == "task_card"]
    assert titles.count("Checked the rules again") == titles.count("Compared versions") == 1


def fail(answer: Answer) -> Answer:
    raise RuntimeError(answer.id)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.streaming(final=fail)
async def test_an_answer_that_fails_on_its_way_says_so(
    strict: LocalSlack, bot: SlackBot, answerer: Slowly, native: bool
) -> None:
    if not native:
        strict.fault("chat.startStream", Fault(error="feature_disabled", times=None))
    said = strict.says(f"<@U0BOT> {QUESTION}")
    await strict.until_said("Cause found" if native else "Reading…", thread_ts=said.ts, finished=False)
    answerer.go.set()
    await strict.until_said("something went wrong on our side", thread_ts=said.ts)
    await settled(bot)
    assert [stream.state for stream in strict.streams] == (["stopped"] if native else [])
    assert len([each for each in strict.replies(said.ts) if each.bot_id]) == (2 if native else 1)


@pytest.mark.streaming
async def test_a_question_that_takes_long_to_read_is_seen_to_be_read(
    strict: LocalSlack, bot: SlackBot, answerer: Slowly
) -> None:
    answerer.start.clear()
    answerer.go.set()
    said = strict.says(f"<@U0BOT> {QUESTION}")
    started = await strict.until_call("chat.startStream")
    assert "Read the input" in json.dumps(started.args["chunks"])
    answerer.start.set()
    final = await strict.until_said("Helped", thread_ts=said.ts)
    assert final.markdown.startswith("**🔎 Cause found**")
    assert {card["status"] for card in final.blocks if card["type"] == "task_card"} == {"complete"}


@pytest.mark.streaming
async def test_the_readers_stop_button_ends_the_answer(strict: LocalSlack, bot: SlackBot, answerer: Slowly) -> None:
    said = strict.says(QUESTION, channel=DM)
    early = await strict.until_said("Cause found", thread_ts=said.ts, finished=False)
    await strict.until_acked(strict.stops(early.ts))
    await settled(bot)
    assert answerer.ended == 1
    [started] = strict.calls("chat.startStream")
    assert "recipient_user_id" not in started.args, "a direct message needs none"
    assert strict.world.statuses[-1]["status"] == "active"
    assert len([each for each in strict.replies(said.ts) if each.bot_id]) == 1


def test_an_open_stream_is_ended_at_shutdown(strict: LocalSlack, advisor: Advisor, tmp_path: Path) -> None:
    async def act() -> Message:
        async with bot_in(strict, advisor, tmp_path, answerer=Slowly(advisor), shutdown_s=0.1, flush_s=QUICK):
            said = strict.says(f"<@U0BOT> {QUESTION}")
            return await strict.until_said("Cause found", channel=GENERAL, thread_ts=said.ts, finished=False)

    early = asyncio.run(act())
    assert [stream.state for stream in strict.streams if stream.ts == early.ts] == ["stopped"]
