"""The Discord application against the platform's protocol."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.bots.fakes import FakeDiscord, served
from tests.incidents import KTO_SINGLE
from trainmedic.service.advisor import Advisor
from trainmedic.service.settings import Settings

COMMAND = KTO_SINGLE
QUESTION = f"loss is nan, why?\n```\n{COMMAND}\n```"


@pytest.fixture
def discord(monkeypatch: pytest.MonkeyPatch) -> FakeDiscord:
    monkeypatch.setattr("trainmedic.ui.bots.discord.channel.LONGEST_PAUSE_S", 0.01)
    return FakeDiscord()


def sends(discord: FakeDiscord, advisor: Advisor, *events: dict[str, Any], **settings: Any) -> list[str]:
    """The texts of the messages in the channel at the end."""

    async def acting() -> None:
        async with served(discord, advisor, **settings) as client:
            for event in events:
                headers, body = discord.request(event)
                response = await client.post("/discord/interactions", headers=headers, content=body)
                assert (response.status_code, response.json()) == (200, {"type": 5})

    asyncio.run(acting())
    return [message["content"] for message in discord.messages]


def test_a_ping_is_answered_and_whatever_is_not_discords_is_refused(discord: FakeDiscord, advisor: Advisor) -> None:
    ping = {"type": 1, "id": "p", "application_id": discord.application}

    async def acting() -> None:
        async with served(discord, advisor) as client:
            right = discord.request(ping)
            requests = [
                (right, 200, {"type": 1}),
                ((right[0], b"{}"), 401, "wrong_signature"),
                (({**right[0], "x-signature-ed25519": "no hex"}, right[1]), 401, "wrong_signature"),
                (discord.request(ping, at=time.time() - 400), 401, "too_old"),
                (FakeDiscord().request(ping), 401, "wrong_signature"),
                (({}, b"{}"), 401, "wrong_signature"),
                (discord.request({"type": 3, "token": "t", "data": {}}), 400, "unknown_interaction"),
                (discord.request([1]), 400, "malformed"),  # type: ignore[arg-type]
            ]
            for (headers, body), status, expected in requests:
                response = await client.post("/discord/interactions", headers=headers, content=body)
                shown = response.json() if status == 200 else response.json()["error"]["code"]
                assert (response.status_code, shown) == (status, expected)

    asyncio.run(acting())
    assert discord.messages == []


def test_a_command_is_answered_shortly_and_its_details_follow(discord: FakeDiscord, advisor: Advisor) -> None:
    first, *details = sends(discord, advisor, discord.command(QUESTION))
    assert "vanilla_loss" in first
    assert "```diff" in first
    assert "Reading" not in first
    assert details


def test_with_a_page_to_link_to_there_is_one_short_message(discord: FakeDiscord, advisor: Advisor) -> None:
    (text,) = sends(discord, advisor, discord.command(QUESTION), public_url="https://medic.example")
    assert "](https://medic.example/?answer=" in text
    assert len(text.partition("```diff")[0].split()) <= 120


def test_files_and_messages_are_read(discord: FakeDiscord, advisor: Advisor) -> None:
    script = {"train.sh": COMMAND.encode()}
    cases = {
        "a file": (discord.command("loss is nan, why?", script), "vanilla_loss"),
        "a message": (discord.on_message(QUESTION), "vanilla_loss"),
        "a message's file": (discord.on_message("loss 变成 nan，怎么回事？", script), "原因"),
        "an image": (discord.command("", {"a.png": b"\x89PNG"}), "a.png (image; paste the text instead)"),
        "nothing": (discord.command("", guild=False), "`/trainmedic` with what is wrong"),
    }
    for number, (event, expected) in enumerate(cases.values()):
        discord.messages.clear()
        assert expected in sends(discord, advisor, {**event, "id": f"i{number}", "token": f"t{number}"})[0]


def test_an_answer_waits_until_discord_takes_it(discord: FakeDiscord, advisor: Advisor) -> None:
    discord.early, discord.busy = 1, 1
    assert "vanilla_loss" in sends(discord, advisor, discord.command(QUESTION))[0]


def test_a_refusal_is_logged_and_ends_nothing(
    discord: FakeDiscord, advisor: Advisor, caplog: pytest.LogCaptureFixture
) -> None:
    discord.early = 9
    assert sends(discord, advisor, discord.command(QUESTION)) == []
    assert "no message could be delivered: ChannelFailed" in caplog.text


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="discord_public_key"):
        Settings(discord_public_key="abc")
