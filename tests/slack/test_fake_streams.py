"""The local Slack's streamed messages, sessions, prompts and response_urls, through slack_sdk."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook import WebhookClient

from tests.slack.fake import ANN, BEN, DM, GENERAL, Fault, LocalSlack

TO_ANN: dict[str, Any] = {"recipient_user_id": ANN, "recipient_team_id": "T0LOCAL"}
SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "below"}}


@pytest.fixture
def client(strict: LocalSlack) -> WebClient:
    return WebClient(token=strict.bot_token, base_url=strict.api_url, retry_handlers=[])


@pytest.fixture
def thread(strict: LocalSlack) -> str:
    return strict.says("why?", channel=DM).ts


def error_of(call: Any, **arguments: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        call(**arguments)
    return str(caught.value.response["error"])


def started(client: WebClient, thread: str, **more: Any) -> dict[str, Any]:
    return {"channel": DM, "ts": client.chat_startStream(channel=DM, thread_ts=thread, **more)["ts"]}


# ── the life of a stream ─────────────────────────────────────────────────────────────────────────────────────────────
def test_a_stream_grows_and_keeps_its_blocks_below(client: WebClient, strict: LocalSlack, thread: str) -> None:
    stream = started(client, thread, markdown_text="The **loss**")
    client.chat_appendStream(**stream, markdown_text=" is NaN")
    assert strict.messages()[0].shown == "The **loss** is NaN"
    kept = {"event_type": "answer", "event_payload": {"id": "a1"}}
    answer = client.chat_stopStream(**stream, markdown_text=".", blocks=[SECTION], metadata=kept)
    assert [block["type"] for block in answer["message"]["blocks"]] == ["rich_text", "section"]
    message = strict.messages()[0]
    assert (message.markdown, message.thread_ts, message.metadata) == ("The **loss** is NaN.", thread, kept)
    assert [(each["thread_ts"], each["status"]) for each in strict.statuses] == [
        (thread, "processing"),
        (thread, "active"),
    ]


def test_the_official_helper_streams_in_chunks(strict: LocalSlack, thread: str) -> None:
    async def write() -> None:
        client = AsyncWebClient(token=strict.bot_token, base_url=strict.api_url, retry_handlers=[])
        helper = await client.chat_stream(channel=DM, thread_ts=thread, buffer_size=4)
        await helper.append(markdown_text="one two")
        await helper.append(chunks=[{"type": "task_update", "id": "1", "title": "Reading", "status": "in_progress"}])
        await helper.append(markdown_text=" three")
        await helper.stop()

    asyncio.run(write())
    assert strict.messages()[0].markdown == "one two three"
    stream = strict.streams[0]
    assert (stream.mode, stream.state) == ("chunks", "stopped")
    assert stream.cards["1"]["status"] == "error", "a card that nobody settled"


def test_the_first_payload_locks_the_mode(client: WebClient, strict: LocalSlack, thread: str) -> None:
    chunk = {"type": "markdown_text", "text": "x"}
    text = started(client, thread)
    client.chat_appendStream(**text, markdown_text="x")
    assert error_of(client.chat_appendStream, **text, chunks=[chunk]) == "streaming_mode_mismatch"
    chunks = started(client, thread, chunks=[chunk])
    assert error_of(client.chat_stopStream, **chunks, markdown_text="x") == "streaming_mode_mismatch"
    client.chat_stopStream(**chunks, chunks=[])
    strict.refused("streaming_mode_mismatch", "chat.appendStream")
    strict.refused("streaming_mode_mismatch", "chat.stopStream")


def test_a_stream_in_a_channel_names_its_reader(client: WebClient, strict: LocalSlack) -> None:
    where: dict[str, Any] = {"channel": GENERAL, "thread_ts": strict.says("why?").ts}
    assert error_of(client.chat_startStream, **where) == "missing_recipient_user_id"
    assert error_of(client.chat_startStream, **where, recipient_user_id=ANN) == "missing_recipient_team_id"
    assert error_of(client.chat_startStream, **where, **{**TO_ANN, "recipient_user_id": "U9"}) == "user_not_found"
    assert client.chat_startStream(**where, **TO_ANN)["ok"]
    for error in ("missing_recipient_user_id", "missing_recipient_team_id", "user_not_found"):
        strict.refused(error, "chat.startStream")


def test_a_stream_answers_a_message_that_is_there(client: WebClient, strict: LocalSlack) -> None:
    assert error_of(client.chat_startStream, channel=DM, thread_ts="1.000001") == "invalid_thread_ts"
    strict.refused("invalid_thread_ts")


def test_a_running_stream_is_not_updated_and_a_finished_one_keeps_its_text(
    client: WebClient, strict: LocalSlack, thread: str
) -> None:
    stream = started(client, thread, markdown_text="text")
    assert error_of(client.chat_update, **stream, text="other") == "streaming_state_conflict"
    kept = client.chat_stopStream(**stream, blocks=[SECTION])["message"]["blocks"]
    assert error_of(client.chat_update, **stream, text="other") == "block_mismatch"
    assert error_of(client.chat_update, **stream, text="other", blocks=[SECTION]) == "block_mismatch"
    client.chat_update(**stream, text="text", blocks=[kept[0], {"type": "divider"}])
    assert [block["type"] for block in strict.messages()[0].blocks] == ["rich_text", "divider"]
    strict.refused("streaming_state_conflict")
    strict.refused("block_mismatch")


def test_the_stop_button_ends_a_stream_before_the_bot_hears_of_it(
    client: WebClient, strict: LocalSlack, thread: str
) -> None:
    stream = started(client, thread, markdown_text="so")
    told = strict.stops(stream["ts"]).payload["event"]
    assert (told["type"], told["streaming_message_ts"]) == ("agent_session_stopped", [stream["ts"]])
    assert error_of(client.chat_appendStream, **stream, markdown_text="x") == "stopped_by_user"
    assert error_of(client.chat_stopStream, **stream) == "stopped_by_user"
    strict.refused("stopped_by_user")


def test_an_idle_or_finished_stream_takes_nothing_more(client: WebClient, strict: LocalSlack, thread: str) -> None:
    idle, done = started(client, thread, markdown_text="x"), started(client, thread, markdown_text="x")
    client.chat_stopStream(**done)
    strict.clock.forward(301)
    for stream in (idle, done):
        assert error_of(client.chat_appendStream, **stream, markdown_text="x") == "message_not_in_streaming_state"
    strict.refused("message_not_in_streaming_state")


def test_only_the_bots_own_streams_are_written_to(client: WebClient, strict: LocalSlack, thread: str) -> None:
    assert error_of(client.chat_appendStream, channel=DM, ts=thread, markdown_text="x") == "message_not_owned_by_app"
    assert error_of(client.chat_appendStream, channel=DM, ts="1.000001", markdown_text="x") == "message_not_found"
    plain = client.chat_postMessage(channel=DM, text="x")["ts"]
    error = error_of(client.chat_appendStream, channel=DM, ts=plain, markdown_text="x")
    assert error == "message_not_in_streaming_state"
    for error in ("message_not_owned_by_app", "message_not_found", "message_not_in_streaming_state"):
        strict.refused(error)


def test_a_stream_has_the_limits_of_a_message(client: WebClient, strict: LocalSlack, thread: str) -> None:
    stream = started(client, thread)
    assert error_of(client.chat_appendStream, **stream, markdown_text="x" * 12_001) == "msg_too_long"
    client.chat_appendStream(**stream, markdown_text="x" * 12_000)
    assert error_of(client.chat_appendStream, **stream, markdown_text="x") == "msg_too_long"
    wide = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_000}}
    assert error_of(client.chat_stopStream, **stream, blocks=[wide]) == "msg_blocks_too_long"
    client.chat_stopStream(**stream)
    many = [{"type": "blocks", "blocks": [{"type": "divider"}] * 30}] * 2
    assert error_of(client.chat_startStream, channel=DM, thread_ts=thread, chunks=many) == "msg_blocks_too_many"
    for error in ("msg_too_long", "msg_blocks_too_long", "msg_blocks_too_many"):
        strict.refused(error)


@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "sparkle"},
        {"type": "markdown_text"},
        {"type": "task_update", "id": "1", "title": "x", "status": "busy"},
        {"type": "task_update", "id": "1", "title": "x" * 257, "status": "pending"},
        {"type": "plan_update"},
        {"type": "blocks", "blocks": []},
    ],
)
def test_a_wrong_chunk_is_refused(client: WebClient, strict: LocalSlack, thread: str, chunk: dict[str, Any]) -> None:
    assert error_of(client.chat_startStream, channel=DM, thread_ts=thread, chunks=[chunk]) == "invalid_chunks"
    strict.refused("invalid_chunks")


def test_an_append_without_text_and_both_modes_at_once_are_refused(
    client: WebClient, strict: LocalSlack, thread: str
) -> None:
    stream = started(client, thread)
    assert error_of(client.chat_appendStream, **stream) == "no_text"
    both = {"markdown_text": "x", "chunks": [{"type": "markdown_text", "text": "x"}]}
    assert error_of(client.chat_appendStream, **stream, **both) == "invalid_arguments"
    assert error_of(client.chat_stopStream, **stream, session_status="done") == "invalid_status"
    for error in ("no_text", "invalid_arguments", "invalid_status"):
        strict.refused(error)


def test_a_workspace_without_streaming_says_so_each_time(client: WebClient, strict: LocalSlack, thread: str) -> None:
    strict.fault("chat.startStream", Fault(error="feature_disabled", times=None))
    for _ in range(2):
        assert error_of(client.chat_startStream, channel=DM, thread_ts=thread) == "feature_disabled"
    assert strict.refusals == []


# ── sessions, prompts ────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_session_has_one_of_four_states_in_a_thread(client: WebClient, strict: LocalSlack, thread: str) -> None:
    where: dict[str, Any] = {"channel_id": DM, "thread_ts": thread}
    client.agents_sessions_setStatus(**where, status="processing")
    assert strict.statuses[-1]["status"] == "processing"
    assert error_of(client.agents_sessions_setStatus, **where, status="thinking") == "invalid_status"
    assert error_of(client.agents_sessions_setStatus, channel_id=DM, status="active") == "thread_ts_required"
    strict.subscriptions.discard("agent_session_stopped")
    warned = client.agents_sessions_setStatus(**where, status="active")["response_metadata"]["warnings"]
    assert warned == ["missing_agent_session_stopped_event_subscription"]
    client.agents_sessions_rename(**where, title="Loss is NaN")
    strict.refused("invalid_status")
    strict.refused("thread_ts_required")


def test_a_workspace_without_agent_view_has_no_sessions() -> None:
    with LocalSlack(agent_view=False) as slack:
        client = WebClient(token=slack.bot_token, base_url=slack.api_url)
        said = slack.says("why?", channel=DM)
        arguments = {"channel_id": DM, "thread_ts": said.ts, "status": "active"}
        assert error_of(client.agents_sessions_setStatus, **arguments) == "feature_disabled"
        prompts = [{"title": "NaN", "message": "why NaN?"}]
        client.assistant_threads_setSuggestedPrompts(channel_id=DM, thread_ts=said.ts, prompts=prompts)
        assert [each["prompts"] for each in slack.prompts] == [prompts]


def test_prompts_for_a_thread_are_silently_ignored_under_agent_view(
    client: WebClient, strict: LocalSlack, thread: str
) -> None:
    prompts = [{"title": "NaN", "message": "why NaN?"}]
    client.assistant_threads_setSuggestedPrompts(channel_id=DM, thread_ts=thread, prompts=prompts)
    assert strict.prompts == []
    client.assistant_threads_setSuggestedPrompts(channel_id=DM, prompts=prompts)
    assert [each["prompts"] for each in strict.prompts] == [prompts]
    ask = client.assistant_threads_setSuggestedPrompts
    assert error_of(ask, channel_id=DM, prompts=prompts * 5) == "invalid_arguments"
    assert error_of(ask, channel_id=GENERAL, prompts=prompts) == "channel_type_not_supported"
    strict.refused("invalid_arguments")
    strict.refused("channel_type_not_supported")


def test_a_thread_status_has_short_words(client: WebClient, strict: LocalSlack, thread: str) -> None:
    where: dict[str, Any] = {"channel_id": DM, "thread_ts": thread}
    client.assistant_threads_setStatus(**where, status="is reading", loading_messages=["Reading"])
    client.assistant_threads_setStatus(**where, status="")
    assert [each["status"] for each in strict.statuses] == ["is reading", ""]
    client.assistant_threads_setTitle(**where, title="Loss is NaN")
    assert strict.statuses[-1]["title"] == "Loss is NaN"
    long = {"status": "x", "loading_messages": ["x" * 51]}
    assert error_of(client.assistant_threads_setStatus, **where, **long) == "invalid_arguments"
    strict.refused("invalid_arguments")


# ── response_url ─────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_response_url_takes_five_messages(strict: LocalSlack) -> None:
    hook = WebhookClient(strict.command("why?").payload["response_url"])
    for number in range(5):
        assert hook.send(text=str(number)).status_code == 200
    sixth = hook.send(text="5")
    assert (sixth.status_code, sixth.body) == (404, "used_url")
    assert [each.text for each in strict.ephemerals(ANN)] == ["0", "1", "2", "3", "4"]
    strict.refused("used_url", "response_url")


def test_a_response_url_lives_for_half_an_hour(strict: LocalSlack) -> None:
    hook = WebhookClient(strict.command("why?").payload["response_url"])
    strict.clock.forward(1_799)
    assert hook.send(text="x").status_code == 200
    strict.clock.forward(2)
    assert (late := hook.send(text="x")).status_code == 404
    assert late.body == "expired_url"
    strict.refused("expired_url")


def test_a_response_url_answers_into_the_thread_replaces_and_deletes(strict: LocalSlack) -> None:
    root = strict.says("why?").ts
    old = strict.bot_said("old", thread_ts=root, blocks=[_button("again")])
    hook = WebhookClient(strict.clicks(old, "again", user=BEN).payload["response_url"])
    hook.send_dict({"text": "in thread", "response_type": "in_channel", "replace_original": False, "thread_ts": root})
    assert [each.text for each in strict.replies(root)] == ["old", "in thread"]
    hook.send_dict({"text": "new", "replace_original": True})
    assert strict.message(old.ts).text == "new"
    hook.send_dict({"delete_original": True})
    assert [each.text for each in strict.replies(root)] == ["in thread"]


def test_a_response_url_checks_what_it_is_given(strict: LocalSlack) -> None:
    hook = WebhookClient(strict.command("why?").payload["response_url"])
    assert hook.send(text="x", blocks=[{"type": "sparkle"}]).body == "invalid_blocks"
    strict.refused("invalid_blocks", "response_url")


def _button(name: str) -> dict[str, Any]:
    element = {"type": "button", "action_id": name, "value": "1", "text": {"type": "plain_text", "text": name}}
    return {"type": "actions", "elements": [element]}
