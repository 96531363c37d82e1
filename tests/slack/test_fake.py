"""The local Slack against slack_sdk: its stores, its limits, and each of its refusals once."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from http.client import RemoteDisconnected
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import ConnectionErrorRetryHandler

from tests.slack.fake import ANN, BEN, DM, GENERAL, OTHER, PRIVATE, Fault, LocalSlack
from tests.slack.fake.fixtures import judged

Blocks = list[dict[str, Any]]


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def button(**more: Any) -> Blocks:
    element = {"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "b"}, **more}
    return [{"type": "actions", "elements": [element]}]


def feedback(value: str = "1:up") -> Blocks:
    sides: dict[str, Any] = {
        f"{side}_button": {"text": {"type": "plain_text", "text": side}, "value": value if side == "positive" else "no"}
        for side in ("positive", "negative")
    }
    element = {"type": "feedback_buttons", "action_id": "feedback", **sides}
    return [{"type": "context_actions", "block_id": "f", "elements": [element]}]


def client_of(slack: LocalSlack, token: str | None = None) -> WebClient:
    return WebClient(token=slack.bot_token if token is None else token, base_url=slack.api_url, retry_handlers=[])


@pytest.fixture
def client(strict: LocalSlack) -> WebClient:
    return client_of(strict)


def refused(call: Callable[..., Any], *args: Any, **more: Any) -> SlackApiError:
    with pytest.raises(SlackApiError) as caught:
        call(*args, **more)
    return caught.value


# ── tokens, scopes, encodings ────────────────────────────────────────────────────────────────────────────────────────
def test_every_answer_names_the_scopes(client: WebClient, strict: LocalSlack) -> None:
    strict.scopes.discard("files:read")
    answer = client.auth_test()
    assert answer["bot_id"] == "B0BOT"
    granted = answer.headers["x-oauth-scopes"].split(",")
    assert "chat:write" in granted
    assert "files:read" not in granted


def test_tokens_are_checked_for_kind_and_value(strict: LocalSlack) -> None:
    assert refused(client_of(strict, "xoxb-wrong").auth_test).response["error"] == "invalid_auth"
    assert refused(client_of(strict, "").auth_test).response["error"] == "not_authed"
    assert refused(client_of(strict, strict.app_token).auth_test).response["error"] == "not_allowed_token_type"
    wrong = client_of(strict)
    assert refused(wrong.apps_connections_open, app_token=strict.bot_token).response["error"] == (
        "not_allowed_token_type"
    )
    for error in ("invalid_auth", "not_authed", "not_allowed_token_type"):
        strict.refused(error)


def test_a_missing_scope_is_named_with_what_there_is(client: WebClient, strict: LocalSlack) -> None:
    strict.scopes.discard("chat:write")
    error = refused(client.chat_postMessage, channel=GENERAL, text="hello").response
    assert (error["error"], error["needed"]) == ("missing_scope", "chat:write")
    assert "im:history" in error["provided"]
    strict.refused("missing_scope", "chat.postMessage")


def test_a_reading_method_does_not_look_into_json(client: WebClient, strict: LocalSlack) -> None:
    said = strict.says("hello")
    error = refused(client.api_call, "conversations.replies", json={"channel": GENERAL, "ts": said.ts}).response
    assert error["error"] == "invalid_arguments"
    assert error["response_metadata"]["messages"] == ["[ERROR] missing required field: channel"]
    strict.refused("invalid_arguments")
    assert client.api_call("conversations.replies", data={"channel": GENERAL, "ts": said.ts})["messages"]


def test_unknown_arguments_are_ignored_and_unknown_methods_are_not(client: WebClient, strict: LocalSlack) -> None:
    assert client.chat_postMessage(channel=GENERAL, text="hello", team_id="T0LOCAL", sparkle=1)["ok"]
    assert refused(client.api_call, "chat.sing").response["error"] == "unknown_method"
    strict.refused("unknown_method")


# ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_timestamps_only_grow_even_where_the_clock_does_not(client: WebClient, strict: LocalSlack) -> None:
    written = [strict.says(str(number)).ts for number in range(50)]
    strict.clock.forward(-60)
    written += [strict.says(str(number)).ts for number in range(50)]
    assert written == sorted(set(written))
    assert all(len(ts.partition(".")[2]) == 6 for ts in written)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"channel": "C0NOWHERE", "text": "x"}, "channel_not_found"),
        ({"channel": OTHER, "text": "x"}, "not_in_channel"),
        ({"channel": GENERAL}, "no_text"),
        ({"channel": GENERAL, "markdown_text": "x", "text": "x"}, "markdown_text_conflict"),
        ({"channel": GENERAL, "markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"channel": GENERAL, "text": "x", "thread_ts": "1.000001"}, "thread_not_found"),
        ({"channel": GENERAL, "text": "x", "metadata": {"event_type": "a", "event_payload": None}}, "metadata"),
        (
            {"channel": GENERAL, "text": "x", "metadata": {"event_type": "a", "event_payload": {"b": "c" * 17_000}}},
            "big",
        ),
    ],
)
def test_a_message_that_slack_does_not_take(
    client: WebClient, strict: LocalSlack, arguments: dict[str, Any], error: str
) -> None:
    error = {"metadata": "invalid_metadata_format", "big": "metadata_too_large"}.get(error, error)
    assert refused(client.chat_postMessage, **arguments).response["error"] == error
    strict.refused(error, "chat.postMessage")
    assert strict.messages() == []


def test_an_archived_channel_and_a_closed_messages_tab_take_nothing(client: WebClient, strict: LocalSlack) -> None:
    strict.world.channels[PRIVATE].archived = True
    strict.world.messages_tab = False
    assert refused(client.chat_postMessage, channel=PRIVATE, text="x").response["error"] == "is_archived"
    assert refused(client.chat_postMessage, channel=DM, text="x").response["error"] == "messages_tab_disabled"
    strict.refused("is_archived")
    strict.refused("messages_tab_disabled")


def test_a_text_past_forty_thousand_characters_is_cut_and_said_to_be(client: WebClient, strict: LocalSlack) -> None:
    answer = client.chat_postMessage(channel=GENERAL, text="x" * 40_001)
    assert answer["response_metadata"]["warnings"] == ["message_truncated"]
    assert len(strict.messages()[0].text) == 40_000


def test_only_own_messages_are_updated_and_deleted(client: WebClient, strict: LocalSlack) -> None:
    theirs, own = strict.says("hello").ts, client.chat_postMessage(channel=GENERAL, text="one")["ts"]
    assert refused(client.chat_update, channel=GENERAL, ts=theirs, text="x").response["error"] == "cant_update_message"
    assert refused(client.chat_delete, channel=GENERAL, ts=theirs).response["error"] == "cant_delete_message"
    assert refused(client.chat_update, channel=GENERAL, ts="1.000001", text="x").response["error"] == (
        "message_not_found"
    )
    assert refused(client.chat_update, channel=GENERAL, ts=own, text="x" * 4_001).response["error"] == "msg_too_long"
    client.chat_update(channel=GENERAL, ts=own, text="two")
    assert [(each.text, each.edits) for each in strict.messages()] == [("two", 1)]
    client.chat_delete(channel=GENERAL, ts=own)
    assert strict.messages() == []
    for error in ("cant_update_message", "cant_delete_message", "message_not_found", "msg_too_long"):
        strict.refused(error)


def test_a_message_to_a_person_goes_to_their_conversation(client: WebClient, strict: LocalSlack) -> None:
    assert client.chat_postMessage(channel=ANN, text="hello")["channel"] == DM
    assert client.chat_postMessage(channel=BEN, text="hello")["channel"] not in (DM, GENERAL)


def test_blocks_and_metadata_may_come_as_text_in_a_form(client: WebClient, strict: LocalSlack) -> None:
    kept = {"event_type": "answer", "event_payload": {"id": "a1"}}
    form = {"channel": GENERAL, "text": "x", "blocks": json.dumps([section("y")]), "metadata": json.dumps(kept)}
    client.api_call("chat.postMessage", data=form)
    message = strict.messages()[0]
    assert (message.shown, message.metadata, strict.calls()[0].encoding) == ("y", kept, "form")


def test_an_update_keeps_the_metadata_that_it_does_not_name(client: WebClient, strict: LocalSlack) -> None:
    kept = {"event_type": "answer", "event_payload": {"id": "a1"}}
    posted = client.chat_postMessage(channel=GENERAL, text="one", metadata=kept)
    client.chat_update(channel=GENERAL, ts=posted["ts"], text="two")
    assert strict.messages()[0].metadata == kept


def test_an_ephemeral_message_is_for_one_member_and_never_read_again(client: WebClient, strict: LocalSlack) -> None:
    said = strict.says("hello")
    ts = client.chat_postEphemeral(channel=GENERAL, user=ANN, text="only you", thread_ts=said.ts)["message_ts"]
    assert [each.shown for each in strict.ephemerals(ANN)] == ["only you"]
    assert len(client.conversations_replies(channel=GENERAL, ts=said.ts)["messages"]) == 1
    assert refused(client.chat_update, channel=GENERAL, ts=ts, text="x").response["error"] == "message_not_found"
    error = refused(client.chat_postEphemeral, channel=PRIVATE, user=BEN, text="x").response["error"]
    assert error == "user_not_in_channel"
    assert (
        refused(client.chat_postEphemeral, channel=GENERAL, user="U9", text="x").response["error"] == "user_not_found"
    )
    for error in ("message_not_found", "user_not_in_channel", "user_not_found"):
        strict.refused(error)


def test_a_permalink_names_the_thread(client: WebClient, strict: LocalSlack) -> None:
    said = strict.says("hello")
    reply = client.chat_postMessage(channel=GENERAL, text="hi", thread_ts=said.ts)
    link = client.chat_getPermalink(channel=GENERAL, message_ts=reply["ts"])["permalink"]
    assert link.endswith(f"/p{reply['ts'].replace('.', '')}?thread_ts={said.ts}&cid={GENERAL}")


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("blocks", "pointer"),
    [
        ([section("x")] * 51, "no more than 50 items allowed [json-pointer:/blocks]"),
        ([section("x" * 3001)], "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"),
        ([section("")], "must be more than 0 characters [json-pointer:/blocks/0/text/text]"),
        ([{"type": "section"}], "missing required field: text [json-pointer:/blocks/0]"),
        (
            [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}],
            "must be less than 151 characters [json-pointer:/blocks/0/text/text]",
        ),
        (
            [{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}],
            "must be plain_text [json-pointer:/blocks/0/text/type]",
        ),
        (
            button(text={"type": "plain_text", "text": "x" * 76}),
            "must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]",
        ),
        (
            button(value="x" * 2001),
            "must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]",
        ),
        (button(url="x" * 3001), "must be less than 3001 characters [json-pointer:/blocks/0/elements/0/url]"),
        (button(style="loud"), "must be one of primary, danger [json-pointer:/blocks/0/elements/0/style]"),
        (
            button(confirm={"title": {"type": "plain_text", "text": "x" * 101}}),
            "must be less than 101 characters [json-pointer:/blocks/0/elements/0/confirm/title/text]",
        ),
        (
            [{"type": "actions", "elements": button()[0]["elements"] * 2}],
            "`action_id` a already exists [json-pointer:/blocks/0/elements/1/action_id]",
        ),
        ([{"type": "context", "elements": []}], "must contain at least 1 item [json-pointer:/blocks/0/elements]"),
        (
            [{"type": "context", "elements": [{"type": "mrkdwn", "text": "x"}] * 11}],
            "no more than 10 items allowed [json-pointer:/blocks/0/elements]",
        ),
        (
            feedback("x" * 2001),
            "must be less than 2001 characters [json-pointer:/blocks/0/elements/0/positive_button/value]",
        ),
        (
            [{"type": "section", "block_id": "b" * 256, "text": {"type": "mrkdwn", "text": "x"}}],
            "must be less than 256 characters [json-pointer:/blocks/0/block_id]",
        ),
        ([{"type": "divider", "block_id": "b"}] * 2, "`block_id` values must be unique [json-pointer:/blocks]"),
        ([{"type": "sparkle"}], "unsupported type: sparkle [json-pointer:/blocks/0/type]"),
        (
            [{"type": "table", "rows": [[{"type": "raw_text", "text": "x"}]] * 101}],
            "no more than 100 items allowed [json-pointer:/blocks/0/rows]",
        ),
        (
            [{"type": "actions", "elements": [{"type": "overflow", "action_id": "o", "options": []}]}],
            "must contain at least 1 item [json-pointer:/blocks/0/elements/0/options]",
        ),
    ],
)
def test_blocks_past_a_limit_are_refused_with_a_pointer(
    client: WebClient, strict: LocalSlack, blocks: Blocks, pointer: str
) -> None:
    error = refused(client.chat_postMessage, channel=GENERAL, text="x", blocks=blocks).response
    assert error["error"] == "invalid_blocks"
    assert f"[ERROR] {pointer}" in error["response_metadata"]["messages"]
    strict.refused("invalid_blocks")


@pytest.mark.parametrize(
    ("blocks", "error"),
    [
        ([{"type": "markdown", "text": "x" * 6_001}] * 2, "msg_too_long"),
        ([section("x" * 3_000)] * 5, "msg_blocks_too_long"),
        ("{oops", "invalid_blocks_format"),
    ],
)
def test_blocks_have_a_size_all_together(client: WebClient, strict: LocalSlack, blocks: Any, error: str) -> None:
    assert refused(client.chat_postMessage, channel=GENERAL, text="x", blocks=blocks).response["error"] == error
    strict.refused(error)


def test_a_message_at_every_limit_is_taken(client: WebClient, strict: LocalSlack) -> None:
    blocks: Blocks = [{"type": "divider"}] * 44
    blocks += [section("x" * 3_000)] * 3
    blocks += [{"type": "header", "text": {"type": "plain_text", "text": "x" * 150}}]
    blocks += [*button(value="x" * 2_000), *feedback("x" * 2_000)]
    assert client.chat_postMessage(channel=GENERAL, text="x", blocks=blocks)["ok"]


def test_a_markdown_block_is_kept_as_rich_text_only(client: WebClient, strict: LocalSlack) -> None:
    block = {"type": "markdown", "block_id": "mine", "text": "**bold**"}
    client.chat_postMessage(channel=GENERAL, text="bold", blocks=[block])
    kept = strict.messages()[0]
    assert [each["type"] for each in kept.blocks] == ["rich_text"]
    assert "block_id" not in kept.blocks[0]
    assert kept.markdown == kept.shown == "**bold**"


# ── threads ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_thread_is_read_in_pages_from_any_of_its_messages(client: WebClient, strict: LocalSlack) -> None:
    root = strict.says("root").ts
    said = [strict.says(f"reply {number}", thread_ts=root).ts for number in range(5)]
    pages = [page["messages"] for page in client.conversations_replies(channel=GENERAL, ts=said[2], limit=2)]
    assert [[each["ts"] for each in page] for page in pages] == [
        [root, said[0]],
        [root, said[1], said[2]],
        [root, said[3], said[4]],
    ]
    assert pages[0][0]["reply_count"] == 5
    assert pages[0][1]["parent_user_id"] == ANN
    after = client.conversations_replies(channel=GENERAL, ts=root, oldest=said[2])["messages"]
    assert [each["ts"] for each in after] == [root, *said[3:]]


def test_a_thread_that_may_not_or_cannot_be_read(client: WebClient, strict: LocalSlack) -> None:
    said = strict.says("hello", channel=PRIVATE)
    strict.scopes.discard("groups:history")
    error = refused(client.conversations_replies, channel=PRIVATE, ts=said.ts).response
    assert (error["error"], error["needed"]) == ("missing_scope", "groups:history")
    for arguments, expected in (
        ({"channel": GENERAL, "ts": "1.000001"}, "thread_not_found"),
        ({"channel": OTHER, "ts": said.ts}, "not_in_channel"),
        ({"channel": "C9", "ts": said.ts}, "channel_not_found"),
        ({"channel": GENERAL, "ts": strict.says("x").ts, "limit": 1001}, "invalid_limit"),
        ({"channel": GENERAL, "ts": strict.says("x").ts, "cursor": "oops"}, "invalid_cursor"),
    ):
        assert refused(client.conversations_replies, **arguments).response["error"] == expected
        strict.refused(expected)
    strict.refused("missing_scope")


def test_history_has_no_replies_and_users_have_a_locale(client: WebClient, strict: LocalSlack) -> None:
    root = strict.says("root").ts
    strict.says("reply", thread_ts=root)
    assert [each["ts"] for each in client.conversations_history(channel=GENERAL)["messages"]] == [root]
    wei = strict.add_user("wei", locale="zh-CN")
    assert client.users_info(user=wei, include_locale=True)["user"]["locale"] == "zh-CN"
    assert "locale" not in client.users_info(user=wei)["user"]
    assert client.conversations_info(channel=GENERAL)["channel"]["name"] == "general"
    assert client.conversations_open(users=ANN)["channel"]["id"] == DM


def test_a_reaction_is_added_once_to_a_message_that_is_there(client: WebClient, strict: LocalSlack) -> None:
    said = strict.says("hello")
    client.reactions_add(channel=GENERAL, name="eyes", timestamp=said.ts)
    assert strict.reactions == [(GENERAL, said.ts, "eyes")]
    again = refused(client.reactions_add, channel=GENERAL, name="eyes", timestamp=said.ts)
    assert again.response["error"] == "already_reacted"
    client.reactions_remove(channel=GENERAL, name="eyes", timestamp=said.ts)
    gone = refused(client.reactions_remove, channel=GENERAL, name="eyes", timestamp=said.ts)
    assert gone.response["error"] == "no_reaction"
    strict.refused("already_reacted")
    strict.refused("no_reaction")


# ── faults and rates ─────────────────────────────────────────────────────────────────────────────────────────────────
def test_faults_come_one_after_the_other_and_end(client: WebClient, strict: LocalSlack) -> None:
    strict.fault("chat.postMessage", Fault(status=429, retry_after=7))
    strict.fault("chat.postMessage", Fault(error="fatal_error", times=2))
    error = refused(client.chat_postMessage, channel=GENERAL, text="x").response
    assert (error.status_code, error["error"], error.headers["Retry-After"]) == (429, "ratelimited", "7")
    for _ in range(2):
        assert refused(client.chat_postMessage, channel=GENERAL, text="x").response["error"] == "fatal_error"
    assert client.chat_postMessage(channel=GENERAL, text="x")["ok"]
    assert [call.error for call in strict.calls("chat.postMessage")] == [
        "ratelimited",
        "fatal_error",
        "fatal_error",
        None,
    ]


def test_a_server_error_is_a_page_and_not_json(client: WebClient, strict: LocalSlack) -> None:
    strict.fault("auth.test", Fault(status=503, times=None))
    error = refused(client.auth_test)
    assert error.response.status_code == 503
    strict.heal("auth.test")
    assert client.auth_test()["ok"]


def test_an_answer_dropped_after_storing_doubles_the_message_of_a_client_that_retries(strict: LocalSlack) -> None:
    eager = WebClient(
        token=strict.bot_token, base_url=strict.api_url, retry_handlers=[ConnectionErrorRetryHandler(max_retry_count=1)]
    )
    strict.fault("chat.postMessage", Fault(drop="after"))
    eager.chat_postMessage(channel=GENERAL, text="once?")
    assert [each.text for each in strict.messages()] == ["once?", "once?"]


def test_a_call_dropped_before_has_no_effect(client: WebClient, strict: LocalSlack) -> None:
    strict.fault("chat.postMessage", Fault(drop="before", latency_s=0.01))
    with pytest.raises((RemoteDisconnected, ConnectionError)):
        client.chat_postMessage(channel=GENERAL, text="never")
    assert strict.messages() == []


def test_the_twenty_first_stream_of_a_minute_has_to_wait(client: WebClient, strict: LocalSlack) -> None:
    said = strict.says("hello", channel=DM)
    for _ in range(20):
        client.chat_startStream(channel=DM, thread_ts=said.ts)
    error = refused(client.chat_startStream, channel=DM, thread_ts=said.ts).response
    assert error.status_code == 429
    assert 55 <= int(error.headers["Retry-After"]) <= 61
    assert strict.rates("chat.startStream") == 20
    strict.clock.forward(61)
    assert client.chat_startStream(channel=DM, thread_ts=said.ts)["ok"]
    strict.refused("ratelimited", "chat.startStream")


def test_a_channel_takes_a_short_burst_and_then_a_message_a_second(client: WebClient, strict: LocalSlack) -> None:
    for number in range(5):
        client.chat_postMessage(channel=GENERAL, text=str(number))
    assert refused(client.chat_postMessage, channel=GENERAL, text="5").response["error"] == "ratelimited"
    assert client.chat_postMessage(channel=PRIVATE, text="another channel")["ok"]
    strict.refused("ratelimited", "chat.postMessage")


# ── views ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def modal(**more: Any) -> dict[str, Any]:
    return {"type": "modal", "title": {"type": "plain_text", "text": "Why"}, "blocks": [section("x")], **more}


def test_a_trigger_opens_one_view_within_three_seconds(client: WebClient, strict: LocalSlack) -> None:
    first, second = strict.world.new_trigger(), strict.world.new_trigger()
    view = client.views_open(trigger_id=first, view=modal())["view"]
    assert refused(client.views_open, trigger_id=first, view=modal()).response["error"] == "exchanged_trigger_id"
    strict.clock.forward(3.1)
    assert refused(client.views_open, trigger_id=second, view=modal()).response["error"] == "expired_trigger_id"
    assert refused(client.views_open, trigger_id="mine", view=modal()).response["error"] == "invalid_trigger_id"
    for error in ("exchanged_trigger_id", "expired_trigger_id", "invalid_trigger_id"):
        strict.refused(error)
    client.views_update(view_id=view["id"], view=modal(callback_id="new"), hash=view["hash"])
    assert [each.get("callback_id") for each in strict.views] == ["new"]
    stale = refused(client.views_update, view_id=view["id"], view=modal(), hash=view["hash"])
    assert stale.response["error"] == "hash_conflict"
    assert refused(client.views_update, view_id="V9", view=modal()).response["error"] == "not_found"
    strict.refused("hash_conflict")
    strict.refused("not_found")


def test_three_views_lie_on_each_other_and_no_fourth(client: WebClient, strict: LocalSlack) -> None:
    client.views_open(trigger_id=strict.world.new_trigger(), view=modal())
    for _ in range(2):
        client.views_push(trigger_id=strict.world.new_trigger(), view=modal())
    error = refused(client.views_push, trigger_id=strict.world.new_trigger(), view=modal()).response["error"]
    assert error == "push_limit_reached"
    strict.refused(error)


@pytest.mark.parametrize(
    "view",
    [
        modal(title={"type": "plain_text", "text": "x" * 25}),
        modal(private_metadata="x" * 3_001),
        modal(callback_id="x" * 256),
        modal(blocks=[]),
        modal(blocks=[section("x")] * 101),
        modal(blocks=feedback()),
        modal(type="home"),
    ],
)
def test_a_view_past_a_limit_is_refused(client: WebClient, strict: LocalSlack, view: dict[str, Any]) -> None:
    error = refused(client.views_open, trigger_id=strict.world.new_trigger(), view=view).response
    assert error["error"] == "invalid_arguments"
    assert error["response_metadata"]["messages"]
    strict.refused("invalid_arguments", "views.open")


def test_a_view_that_weighs_too_much_is_refused(client: WebClient, strict: LocalSlack) -> None:
    heavy = modal(blocks=[section("x" * 3_000)] * 90)
    assert refused(client.views_open, trigger_id="t", view=heavy).response["error"] == "view_too_large"
    strict.refused("view_too_large")


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def download(url: str, token: str | None) -> tuple[str, bytes]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.headers["Content-Type"], answer.read()


def test_a_file_is_sent_to_the_token_that_may_read_it(client: WebClient, strict: LocalSlack) -> None:
    file = strict.upload("train 日志.log", "step 1 loss nan\n", repeat=3, claims=4)
    told = strict.says("look", files=[file]).message.wire()
    assert told["subtype"] == "file_share"
    assert told["files"][0]["size"] == 4
    kind, body = download(told["files"][0]["url_private_download"], strict.bot_token)
    assert (kind, body) == ("text/plain", b"step 1 loss nan\n" * 3)
    assert strict.downloads == [(file.id, 200)]
    assert client.files_info(file=file.id)["file"]["name"] == "train 日志.log"


def test_a_slow_body_outlasts_a_reader_without_patience(strict: LocalSlack) -> None:
    file = strict.upload("a.log", b"x" * 8_192, pause_s=5.0)
    request = urllib.request.Request(
        file.wire(strict.url)["url_private"], headers={"Authorization": f"Bearer {strict.bot_token}"}
    )
    with urllib.request.urlopen(request, timeout=0.2) as answer, pytest.raises(TimeoutError):
        answer.read()
    assert strict.downloads == [(file.id, 200)]


@pytest.mark.parametrize("lost", ["token", "scope"])
def test_a_file_without_permission_is_a_login_page_with_200(strict: LocalSlack, lost: str) -> None:
    file = strict.upload("a.log", "secret")
    if lost == "scope":
        strict.scopes.discard("files:read")
    kind, body = download(file.wire(strict.url)["url_private"], strict.bot_token if lost == "scope" else None)
    assert kind.startswith("text/html")
    assert body.startswith(b"<!DOCTYPE html>")
    assert b"secret" not in body
    strict.refused("login_page", "files")


def test_files_info_names_the_missing_scope(client: WebClient, strict: LocalSlack) -> None:
    file = strict.upload("a.log", "x", access="check_file_info")
    assert file.wire(strict.url) == {"id": file.id, "file_access": "check_file_info"}
    assert client.files_info(file=file.id)["file"]["url_private"]
    strict.scopes.discard("files:read")
    assert refused(client.files_info, file=file.id).response["needed"] == "files:read"
    strict.refused("missing_scope", "files.info")


def test_a_client_that_takes_its_token_along_to_another_host_is_found_out(strict: LocalSlack) -> None:
    file = strict.upload("a.log", "x", elsewhere=True)
    download(file.wire(strict.url)["url_private"], strict.bot_token)
    assert strict.leaks == [f"Bearer {strict.bot_token}"]
    strict.refused("token_leaked")


def test_a_deleted_file_has_nothing_but_its_id(client: WebClient, strict: LocalSlack) -> None:
    file = strict.upload("a.log", "x", mode="tombstone")
    assert file.wire(strict.url) == {"id": file.id, "mode": "tombstone"}
    assert refused(client.files_info, file=file.id).response["error"] == "file_deleted"
    assert refused(client.files_info, file="F9").response["error"] == "file_not_found"
    strict.refused("file_deleted")
    strict.refused("file_not_found")


# ── strictness ───────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_refusal_that_no_test_asserts_fails_it(slack: LocalSlack) -> None:
    with pytest.raises(AssertionError, match=r"chat\.postMessage: channel_not_found"), judged(slack):
        refused(client_of(slack).chat_postMessage, channel="C9", text="x")
    with pytest.raises(AssertionError, match="nothing was refused with no_text"):
        slack.refused("no_text")
    with judged(slack):
        slack.refused("channel_not_found")
