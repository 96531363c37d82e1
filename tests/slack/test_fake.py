"""Facts of Slack's protocol that the bot relies on, and that the fake therefore has to show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from tests.slack.fake import ANN, BEN, DM, GENERAL, OTHER, Fault, LocalSlack

SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_000}}
BUTTON = {"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "x"}}


def markdown(length: int) -> dict[str, Any]:
    return {"type": "markdown", "text": "x" * length}


def actions(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "actions", "elements": list(elements)}


@pytest.fixture
def client(strict: LocalSlack) -> WebClient:
    return WebClient(token=strict.bot_token, base_url=strict.api_url, retry_handlers=[])


@pytest.fixture
def error_of(strict: LocalSlack) -> Callable[..., str]:
    """Calls a method that is to be refused; the error, which is expected then."""

    def call(method: Callable[..., Any], **arguments: Any) -> str:
        with pytest.raises(SlackApiError) as caught:
            method(**arguments)
        error = str(caught.value.response["error"])
        strict.refused(error)
        return error

    return call


def test_a_missing_scope_is_named(client: WebClient, strict: LocalSlack, error_of: Callable[..., str]) -> None:
    strict.scopes.discard("chat:write")
    assert "chat:write" not in client.auth_test().headers["x-oauth-scopes"]
    assert error_of(client.chat_postMessage, channel=GENERAL, text="hello") == "missing_scope"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"channel": OTHER}, "not_in_channel"),
        ({"channel": "C0NONE"}, "channel_not_found"),
        ({"text": ""}, "no_text"),
        ({"thread_ts": "1.000001"}, "thread_not_found"),
        ({"blocks": [SECTION] * 51}, "invalid_blocks"),
        ({"blocks": [{**SECTION, "text": {"type": "mrkdwn", "text": "x" * 3_001}}]}, "invalid_blocks"),
        ({"blocks": [{"type": "sparkle"}]}, "invalid_blocks"),
        ({"blocks": [actions({**BUTTON, "value": "x" * 2_001})]}, "invalid_blocks"),
        ({"blocks": [actions(BUTTON, BUTTON)]}, "invalid_blocks"),
        ({"blocks": [actions({"type": "sparkle"})]}, "invalid_blocks"),
        ({"blocks": [markdown(6_001)] * 2}, "msg_too_long"),
        ({"blocks": [SECTION] * 5}, "msg_blocks_too_long"),
    ],
)
def test_a_message_that_slack_refuses(
    client: WebClient, error_of: Callable[..., str], arguments: dict[str, Any], error: str
) -> None:
    assert error_of(client.chat_postMessage, **{"channel": GENERAL, "text": "hello", **arguments}) == error


def test_a_message_at_every_limit_is_accepted_and_its_markdown_stored_as_rich_text(
    client: WebClient, strict: LocalSlack
) -> None:
    blocks: list[dict[str, Any]] = [{"type": "divider"}] * 45
    blocks += [SECTION, actions({**BUTTON, "value": "x" * 2_000}), markdown(9_000)]
    assert client.chat_postMessage(channel=GENERAL, text="x", blocks=blocks)["ok"]
    assert strict.messages()[0].blocks[-1]["type"] == "rich_text"


def test_only_own_messages_are_changed_with_at_most_four_thousand_characters(
    client: WebClient, strict: LocalSlack, error_of: Callable[..., str]
) -> None:
    said, own = strict.says("hello"), client.chat_postMessage(channel=GENERAL, text="hello")["ts"]
    assert error_of(client.chat_update, channel=GENERAL, ts=said.ts, text="x") == "cant_update_message"
    assert error_of(client.chat_delete, channel=GENERAL, ts=said.ts) == "cant_delete_message"
    assert error_of(client.chat_update, channel=GENERAL, ts=own, text="x" * 4_001) == "msg_too_long"
    assert error_of(client.chat_postEphemeral, channel=DM, user=BEN, text="x") == "user_not_in_channel"


def test_a_channel_accepts_five_messages_at_once(
    client: WebClient, strict: LocalSlack, error_of: Callable[..., str]
) -> None:
    for _ in range(5):
        client.chat_postMessage(channel=GENERAL, text="hello")
    assert error_of(client.chat_postMessage, channel=GENERAL, text="hello") == "ratelimited"
    assert client.chat_postMessage(channel=DM, text="hello")["ok"]


def test_twenty_streams_are_started_a_minute(client: WebClient, strict: LocalSlack, error_of: Any) -> None:
    thread = strict.says("why?", channel=DM).ts
    for _ in range(20):
        client.chat_startStream(channel=DM, thread_ts=thread)
    assert error_of(client.chat_startStream, channel=DM, thread_ts=thread) == "ratelimited"


def test_a_stream_in_a_channel_names_its_reader(client: WebClient, strict: LocalSlack, error_of: Any) -> None:
    said = strict.says("why?")
    arguments: dict[str, Any] = {"channel": GENERAL, "thread_ts": said.ts, "recipient_user_id": ANN}
    assert error_of(client.chat_startStream, **arguments) == "missing_recipient_team_id"
    assert client.chat_startStream(**arguments, recipient_team_id="T0LOCAL")["ok"]


def test_a_stream_ends_once_and_its_open_cards_become_errors(
    client: WebClient, strict: LocalSlack, error_of: Any
) -> None:
    thread = strict.says("why?", channel=DM).ts
    card = {"type": "task_update", "id": "1", "title": "Reading", "status": "in_progress"}
    stream: dict[str, Any] = {
        "channel": DM,
        "ts": client.chat_startStream(channel=DM, thread_ts=thread, chunks=[card])["ts"],
    }
    assert error_of(client.chat_update, **stream, text="x") == "streaming_state_conflict"
    assert error_of(client.chat_appendStream, **stream, markdown_text="x") == "streaming_mode_mismatch"
    client.chat_stopStream(**stream, chunks=[{"type": "markdown_text", "text": "done"}])
    assert error_of(client.chat_stopStream, **stream) == "message_not_in_streaming_state"
    assert [block.get("status") for block in strict.message(stream["ts"]).blocks] == ["error", None]


def test_the_stop_button_ends_a_stream_before_the_bot_hears_of_it(
    client: WebClient, strict: LocalSlack, error_of: Any
) -> None:
    thread = strict.says("why?", channel=DM).ts
    ts = client.chat_startStream(channel=DM, thread_ts=thread)["ts"]
    strict.stops(ts)
    chunks = [{"type": "markdown_text", "text": "x"}]
    assert error_of(client.chat_appendStream, channel=DM, ts=ts, chunks=chunks) == "stopped_by_user"


def test_a_thread_is_read_in_pages_from_any_of_its_messages(client: WebClient, strict: LocalSlack) -> None:
    root = strict.stored("root", user=ANN)
    replies = [strict.stored(f"reply {number}", user=BEN, thread_ts=root.ts) for number in range(4)]
    first = client.conversations_replies(channel=GENERAL, ts=replies[2].ts, limit=3)
    cursor = first["response_metadata"]["next_cursor"]
    second = client.conversations_replies(channel=GENERAL, ts=root.ts, limit=3, cursor=cursor)
    assert [message["text"] for message in first["messages"]] == ["root", "reply 0", "reply 1"]
    assert [message["text"] for message in second["messages"]] == ["root", "reply 2", "reply 3"]
    assert not second["has_more"]


def test_a_mention_in_a_channel_is_two_events(strict: LocalSlack) -> None:
    said = strict.says("<@U0BOT> is <b> NaN?")
    assert [delivery.payload["event"]["type"] for delivery in said.deliveries] == ["app_mention", "message"]
    assert said.message.text == "<@U0BOT> is &lt;b&gt; NaN?"


def test_a_response_url_accepts_five_messages(strict: LocalSlack) -> None:
    async def post() -> list[int]:
        url = strict.world.new_response_url(GENERAL, ANN)
        async with aiohttp.ClientSession() as session:
            return [(await session.post(url, json={"text": "x"})).status for _ in range(6)]

    assert asyncio.run(post()) == [200] * 5 + [404]
    strict.refused("used_url")


def test_a_message_may_be_stored_although_its_call_had_no_answer(strict: LocalSlack, client: WebClient) -> None:
    strict.fault("chat.postMessage", Fault(drop="after"))
    with pytest.raises(OSError):
        client.chat_postMessage(channel=GENERAL, text="hello")
    assert len(strict.messages()) == 1


def test_a_refusal_that_no_test_asserts_fails_it(client: WebClient) -> None:
    with LocalSlack() as slack:
        stranger = WebClient(token="xoxb-wrong", base_url=slack.api_url)
        with pytest.raises(SlackApiError, match="invalid_auth"):
            stranger.auth_test()
        with pytest.raises(AssertionError, match="invalid_auth"):
            slack.assert_nothing_unexpected()
