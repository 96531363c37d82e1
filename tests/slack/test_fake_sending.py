"""The local Slack's deliveries, through slack_bolt: envelopes, acknowledgements, redelivery, reconnects, HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from tests.slack.fake import ANN, DM, GENERAL, OTHER, PRIVATE, Delivery, Fault, LocalSlack

Heard = list[dict[str, Any]]
MODAL = {
    "type": "modal",
    "title": {"type": "plain_text", "text": "Why"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "reason",
            "label": {"type": "plain_text", "text": "Reason"},
            "element": {"type": "plain_text_input", "action_id": "text"},
        }
    ],
}


def bolt(slack: LocalSlack) -> AsyncApp:
    """An app without listeners yet."""
    client = AsyncWebClient(token=slack.bot_token, base_url=slack.api_url, retry_handlers=[])
    return AsyncApp(client=client, signing_secret=slack.signing_secret, logger=logging.getLogger("bolt"))


@asynccontextmanager
async def connected(app: AsyncApp, slack: LocalSlack) -> AsyncIterator[AsyncSocketModeHandler]:
    handler = AsyncSocketModeHandler(app, slack.app_token, ping_interval=1)
    try:
        await handler.connect_async()  # type: ignore[no-untyped-call]
        await slack.until_connected(slack.opened or 1)
        yield handler
    finally:
        await handler.close_async()  # type: ignore[no-untyped-call]


def hears(app: AsyncApp) -> Heard:
    """What the app is told, all of it acknowledged."""
    heard: Heard = []

    @app.event(re.compile(".*"))
    async def listen(body: dict[str, Any]) -> None:
        heard.append(body)

    return heard


class Raw:
    """A Socket Mode client without any manners: it acknowledges what the test tells it to."""

    def __init__(self, slack: LocalSlack, session: aiohttp.ClientSession) -> None:
        self.slack = slack
        self.session = session

    async def connect(self) -> aiohttp.ClientWebSocketResponse:
        client = AsyncWebClient(base_url=self.slack.api_url, session=self.session)
        url = (await client.apps_connections_open(app_token=self.slack.app_token))["url"]
        return await self.session.ws_connect(url)

    async def hello(self) -> tuple[aiohttp.ClientWebSocketResponse, dict[str, Any]]:
        socket = await self.connect()
        return socket, await socket.receive_json()


def raw(slack: LocalSlack, act: Callable[[Raw], Awaitable[None]]) -> None:
    async def run() -> None:
        async with aiohttp.ClientSession() as session:
            await act(Raw(slack, session))

    asyncio.run(run())


# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_mention_is_two_events_and_the_bots_answer_comes_back_to_it(strict: LocalSlack) -> None:
    async def act() -> None:
        app = bolt(strict)

        @app.event("app_mention")
        async def answer(event: dict[str, Any], client: AsyncWebClient) -> None:
            await client.chat_postMessage(channel=event["channel"], thread_ts=event["ts"], text="the loss is NaN")

        heard = hears(app)
        async with connected(app, strict):
            said = strict.says("<@U0BOT> why < & > https://a.b/c?")
            reply = await strict.until_said("NaN", thread_ts=said.ts)
            await strict.until(lambda: len(strict.deliveries) == 3 and all(each.acked for each in strict.deliveries))
        mention, message = (each.payload["event"] for each in said.deliveries)
        assert "channel_type" not in mention
        assert (message["channel_type"], mention["ts"]) == ("channel", message["ts"])
        assert said.deliveries[0].event_id != said.deliveries[1].event_id
        assert message["text"] == "<@U0BOT> why &lt; &amp; &gt; <https://a.b/c?>"
        assert message["blocks"][0]["elements"][0]["elements"][1]["text"] == " why < & > "
        assert strict.deliveries[2].payload["event"]["bot_id"] == "B0BOT"
        assert [each["event"]["ts"] for each in heard] == [said.ts], "Bolt itself drops what the bot has said"
        assert reply.thread_ts == said.ts

    asyncio.run(act())


def test_what_is_not_subscribed_or_not_permitted_is_not_delivered(strict: LocalSlack) -> None:
    def kinds(channel: str) -> list[str]:
        said = strict.says("<@U0BOT> why?", channel=channel)
        return [each.payload["event"]["type"] for each in said.deliveries]

    assert kinds(GENERAL) == ["app_mention", "message"]
    assert kinds(DM) == ["message"]
    assert kinds(OTHER) == ["app_mention"]
    strict.subscriptions.discard("app_mention")
    assert kinds(GENERAL) == ["message"]
    strict.scopes.discard("groups:history")
    assert kinds(PRIVATE) == []


def test_edits_and_deletions_are_hidden_messages(strict: LocalSlack) -> None:
    said = strict.says("one")
    edited, deleted = strict.edits(said.ts, "two"), strict.deletes(said.ts)
    assert edited is not None
    assert deleted is not None
    event = edited.payload["event"]
    assert (event["subtype"], event["hidden"], event["message"]["text"]) == ("message_changed", True, "two")
    assert event["previous_message"]["text"] == "one"
    assert deleted.payload["event"]["deleted_ts"] == said.ts


def test_a_fence_is_preformatted_and_a_typed_broadcast_is_no_ping(strict: LocalSlack) -> None:
    message = strict.says("<!channel> look\n```\na < b\nhttps://a.b\n```").message
    assert message.text == "&lt;!channel&gt; look\n```\na &lt; b\nhttps://a.b\n```"
    kinds = {each["type"]: each["elements"][0]["text"] for each in message.blocks[0]["elements"]}
    assert kinds["rich_text_preformatted"] == "a < b\nhttps://a.b"


# ── acknowledgement ──────────────────────────────────────────────────────────────────────────────────────────────────
def test_an_event_without_acknowledgement_comes_again_under_the_same_id() -> None:
    with LocalSlack(ack_within_s=0.3, retry_waits_s=(0.0, 0.0, 0.0)) as slack:

        async def act(client: Raw) -> None:
            socket, _ = await client.hello()
            delivery = slack.says("why?").deliveries[0]
            frames = [await socket.receive_json() for _ in range(3)]
            await socket.send_json({"envelope_id": frames[2]["envelope_id"]})
            await slack.until_acked(delivery)
            assert [each["retry_attempt"] for each in frames] == [0, 1, 2]
            assert [each["retry_reason"] for each in frames] == ["", "timeout", "timeout"]
            assert len({each["envelope_id"] for each in frames}) == 3
            assert len({each["payload"]["event_id"] for each in frames}) == 1
            assert [each.late for each in delivery.attempts] == [True, True, False]
            await socket.close()

        raw(slack, act)
        assert len(slack.refused("not_acknowledged", "socket")) == 2


def test_an_event_is_given_up_after_three_retries() -> None:
    with LocalSlack(ack_within_s=0.02, retry_waits_s=(0.0, 0.0, 0.0)) as slack:

        async def act(client: Raw) -> None:
            socket, _ = await client.hello()
            delivery = slack.says("why?").deliveries[0]
            await slack.until_settled(delivery)
            assert (delivery.given_up, len(delivery.attempts)) == (True, 4)
            await socket.close()

        raw(slack, act)
        slack.refused("not_acknowledged")


def test_an_acknowledgement_after_the_deadline_is_kept_as_late() -> None:
    with LocalSlack(ack_within_s=0.05, retry_waits_s=()) as slack:

        async def act(client: Raw) -> None:
            socket, _ = await client.hello()
            delivery = slack.says("why?").deliveries[0]
            frame = await socket.receive_json()
            await slack.until_settled(delivery)
            await socket.send_json({"envelope_id": frame["envelope_id"]})
            await slack.until(lambda: delivery.ack_s is not None)
            assert not delivery.acked
            assert delivery.ack_s is not None
            assert delivery.ack_s >= 0.05
            await socket.close()

        raw(slack, act)
        slack.refused("not_acknowledged")


def test_a_blocked_bot_does_not_block_the_clock_that_catches_it() -> None:
    with LocalSlack(ack_within_s=0.5, retry_waits_s=()) as slack:

        async def act() -> None:
            app = bolt(slack)
            meanwhile: list[Delivery] = []

            @app.event("app_mention")
            async def think() -> None:
                meanwhile.append(slack.opens())
                time.sleep(0.8)

            hears(app)
            async with connected(app, slack):
                slack.subscriptions.discard("message.channels")
                slack.says("<@U0BOT> why?")
                await slack.until(lambda: bool(meanwhile) and meanwhile[0].ack_s is not None)
            assert not meanwhile[0].acked
            assert meanwhile[0].ack_s is not None
            assert meanwhile[0].ack_s > 0.5

        asyncio.run(act())
        slack.refused("not_acknowledged", "socket")


def test_a_command_that_nobody_acknowledges_shows_its_user_an_error_and_does_not_come_again() -> None:
    with LocalSlack(ack_within_s=0.05) as slack:

        async def act(client: Raw) -> None:
            lost = slack.command("why?")
            await slack.until_settled(lost)
            assert lost.user_saw == "dispatch_failed", "no connection at all"
            socket, _ = await client.hello()
            late = slack.command("why?")
            await slack.until_settled(late)
            assert (late.user_saw, len(late.attempts)) == ("operation_timeout", 1)
            await socket.close()

        raw(slack, act)
        slack.refused("user_saw_an_error", "slash_commands")
        slack.refused("not_acknowledged")


def test_an_unknown_envelope_is_refused(strict: LocalSlack) -> None:
    async def act(client: Raw) -> None:
        socket, _ = await client.hello()
        await socket.send_json({"envelope_id": "mine"})
        await strict.until_refused("unknown_envelope")
        await socket.close()

    raw(strict, act)


def test_the_same_event_can_be_delivered_again_although_it_was_acknowledged(strict: LocalSlack) -> None:
    async def act() -> None:
        app = bolt(strict)
        heard = hears(app)
        async with connected(app, strict):
            delivery = strict.says("why?").deliveries[0]
            await strict.until_acked(delivery)
            strict.redeliver(delivery)
            await strict.until(lambda: len(delivery.attempts) == 2 and delivery.attempts[1].ack_s is not None)
        assert [each["event_id"] for each in heard] == [delivery.event_id] * 2, "Bolt dedupes nothing"

    asyncio.run(act())


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────────
def test_a_ticket_is_good_for_one_connection(strict: LocalSlack) -> None:
    async def act(client: Raw) -> None:
        web_client = AsyncWebClient(base_url=strict.api_url, session=client.session)
        url = (await web_client.apps_connections_open(app_token=strict.app_token))["url"]
        async with client.session.ws_connect(url) as socket:
            hello = await socket.receive_json()
            assert (hello["type"], hello["num_connections"]) == ("hello", 1)
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await client.session.ws_connect(url)

    raw(strict, act)
    strict.refused("invalid_ticket", "socket")


def test_the_eleventh_connection_is_sent_away(strict: LocalSlack) -> None:
    async def act(client: Raw) -> None:
        sockets = [(await client.hello())[0] for _ in range(10)]
        eleventh, said = await client.hello()
        assert (said["type"], said["reason"]) == ("disconnect", "too_many_websockets")
        for socket in (*sockets, eleventh):
            await socket.close()

    raw(strict, act)
    strict.refused("too_many_websockets")


@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "link_disabled"])
def test_the_client_comes_back_when_it_is_told_to_go(strict: LocalSlack, reason: Any) -> None:
    async def act() -> None:
        app = bolt(strict)
        heard = hears(app)
        async with connected(app, strict):
            strict.disconnect(reason)
            delivery = strict.says("still there?").deliveries[0]
            await strict.until_connected(2)
            await strict.until_acked(delivery)
            await strict.until(lambda: bool(heard))
        # The client answers a message and a close with a connection each: what lay on the first comes again.
        assert {each["event_id"] for each in heard} == {delivery.event_id}

    asyncio.run(act())


def test_the_client_comes_back_after_a_cut_and_a_refused_handshake(strict: LocalSlack) -> None:
    async def act() -> None:
        app = bolt(strict)
        hears(app)
        async with connected(app, strict):
            strict.refuse_links(1)
            strict.cut()
            await strict.until_connected(2)
            await strict.until_acked(strict.says("still there?").deliveries[0])

    asyncio.run(act())


def test_a_ghost_connection_swallows_payloads_until_they_come_again() -> None:
    with LocalSlack(ack_within_s=0.4, retry_waits_s=(0.0, 0.0, 0.0)) as slack:

        async def act() -> None:
            app = bolt(slack)
            hears(app)
            slack.ghosts = 1
            async with connected(app, slack):
                deliveries = [slack.says(str(number)).deliveries[0] for number in range(4)]
                await slack.until(lambda: all(each.acked for each in deliveries))
                assert any(len(each.attempts) > 1 for each in deliveries)

        asyncio.run(act())
        slack.assert_nothing_unexpected()


def test_an_unreachable_slack_is_an_error_of_opening(strict: LocalSlack) -> None:
    async def act(client: Raw) -> None:
        strict.fault("apps.connections.open", Fault(error="internal_error"))
        with pytest.raises(Exception, match="internal_error"):
            await client.connect()
        reading = AsyncWebClient(base_url=strict.api_url, session=client.session, token=strict.app_token)
        with pytest.raises(Exception, match="insecure_request"):
            await reading.api_call("apps.connections.open", http_verb="GET")
        strict.refused("insecure_request")

    raw(strict, act)


# ── commands, clicks, views ──────────────────────────────────────────────────────────────────────────────────────────
def test_a_command_is_answered_by_its_acknowledgement_and_by_its_response_url(strict: LocalSlack) -> None:
    async def act() -> None:
        app = bolt(strict)

        @app.command("/trainmedic")
        async def run(ack: Any, respond: Any, command: dict[str, str]) -> None:
            await ack(f"reading {command['text']}")
            await respond(text="done", response_type="in_channel")

        hears(app)
        async with connected(app, strict):
            delivery = strict.command("my config")
            await strict.until_whispered("reading my config", user=ANN)
            said = await strict.until_said("done", channel=GENERAL)
            await strict.until(lambda: all(each.acked for each in strict.deliveries))
        assert (delivery.user_saw, said.ephemeral_to) == (None, None)

    asyncio.run(act())


def test_a_feedback_button_is_clicked_and_a_view_opened_and_submitted(strict: LocalSlack) -> None:
    async def act() -> None:
        app = bolt(strict)
        heard: list[tuple[str, str]] = []

        @app.action("feedback")
        async def clicked(ack: Any, action: dict[str, Any], body: dict[str, Any], client: AsyncWebClient) -> None:
            await ack()
            heard.append((action["value"], body["message"]["ts"]))
            await client.views_open(trigger_id=body["trigger_id"], view={**MODAL, "callback_id": "why"})

        @app.view("why")
        async def submitted(ack: Any, view: dict[str, Any]) -> None:
            given = view["state"]["values"]["reason"]["text"]["value"]
            await (ack() if given == "wrong" else ack(response_action="errors", errors={"reason": "say more"}))

        sides = {
            f"{side}_button": {"text": {"type": "plain_text", "text": side}, "value": f"a1:{side}"}
            for side in ("positive", "negative")
        }
        element = {"type": "feedback_buttons", "action_id": "feedback", **sides}
        message = strict.bot_said("cause", blocks=[{"type": "context_actions", "elements": [element]}])
        async with connected(app, strict):
            strict.clicks(message, "feedback", positive=False)
            await strict.until(lambda: len(strict.views) == 1)
            view = strict.views[0]["id"]
            first = strict.submits(view, {"reason": {"text": "?"}})
            await strict.until_acked(first)
            assert len(strict.views) == 1, "errors keep a view open"
            await strict.until_acked(strict.submits(view, {"reason": {"text": "wrong"}}))
            await strict.until(lambda: strict.views == [])
        assert heard == [("a1:negative", message.ts)]
        assert first.attempts[0].payload["response_action"] == "errors"

    asyncio.run(act())


def test_a_shortcut_carries_the_whole_message_and_an_ephemeral_click_none(strict: LocalSlack) -> None:
    async def act() -> None:
        app = bolt(strict)
        heard: Heard = []

        @app.shortcut("diagnose")
        async def picked(ack: Any, body: dict[str, Any], client: AsyncWebClient) -> None:
            await ack()
            heard.append(body)
            button = {"type": "button", "action_id": "share", "text": {"type": "plain_text", "text": "Share"}}
            blocks = [{"type": "actions", "elements": [button]}]
            await client.chat_postEphemeral(channel=GENERAL, user=ANN, text="cause", blocks=blocks)

        @app.action("share")
        async def shared(ack: Any, body: dict[str, Any]) -> None:
            await ack()
            heard.append(body)

        root = strict.says("why?").ts
        said = strict.says("look", thread_ts=root, files=[strict.upload("a.log", "x")])
        button = {"type": "button", "action_id": "again", "text": {"type": "plain_text", "text": "Again"}}
        old = strict.bot_said("cause", thread_ts=root, blocks=[{"type": "actions", "elements": [button]}] * 2)
        assert strict.clicks(old, "again").payload["container"]["thread_ts"] == root
        hears(app)
        async with connected(app, strict):
            await strict.until_acked(strict.shortcut("diagnose", said.ts))
            whisper = await strict.until_whispered("Share")
            await strict.until_acked(strict.clicks(whisper, "share"))
            await strict.until(lambda: len(heard) == 2)
        assert heard[0]["message"]["thread_ts"] == root
        assert heard[0]["message"]["files"][0]["name"] == "a.log"
        assert "message" not in heard[1]
        assert heard[1]["container"]["is_ephemeral"] is True

    asyncio.run(act())


def test_the_home_tab_and_a_flood_are_told(strict: LocalSlack) -> None:
    opened = strict.opens().payload["event"]
    assert (opened["type"], opened["tab"], opened["channel"]) == ("app_home_opened", "messages", DM)
    assert strict.rate_limited().payload["type"] == "app_rate_limited"


# ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
class Endpoint:
    """A bot that is called by HTTP: what it got, and what it answers, one after the other."""

    def __init__(self, *answers: Callable[[], Awaitable[web.Response]]) -> None:
        self.answers = list(answers)
        self.got: list[tuple[dict[str, str], bytes]] = []

    async def take(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.read()))
        return await self.answers.pop(0)() if self.answers else web.Response()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/slack/events", self.take)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
        finally:
            await runner.cleanup()


async def plain(status: int = 200, text: str = "", **headers: str) -> web.Response:
    return web.Response(status=status, text=text, headers=headers)


def test_http_deliveries_are_signed_over_the_very_bytes_and_retried_with_their_reason() -> None:
    async def slow() -> web.Response:
        await asyncio.sleep(1.0)
        return web.Response()

    with LocalSlack(ack_within_s=0.4, retry_waits_s=(0.0, 0.0, 0.0)) as slack:

        async def act() -> None:
            endpoint = Endpoint(lambda: plain(500), slow)
            async with endpoint.listening() as url:
                slack.send_to(url)
                delivery = slack.says("为什么?").deliveries[0]
                await slack.until_acked(delivery)
            retries = [
                (headers.get("X-Slack-Retry-Num"), headers.get("X-Slack-Retry-Reason")) for headers, _ in endpoint.got
            ]
            assert retries == [(None, None), ("1", "http_error"), ("2", "http_timeout")]
            verifier = SignatureVerifier(slack.signing_secret)
            for headers, body in endpoint.got:
                assert verifier.is_valid_request(body, headers)
            assert len({json.loads(body)["event_id"] for _, body in endpoint.got}) == 1

        asyncio.run(act())
        slack.refused("http_error", "http")
        slack.refused("http_timeout", "http")


def test_an_endpoint_can_ask_not_to_be_told_again() -> None:
    with LocalSlack(retry_waits_s=(0.0, 0.0, 0.0)) as slack:

        async def act() -> None:
            endpoint = Endpoint(lambda: plain(500, **{"X-Slack-No-Retry": "1"}))
            async with endpoint.listening() as url:
                slack.send_to(url)
                delivery = slack.says("why?").deliveries[0]
                await slack.until_settled(delivery)
                assert (delivery.given_up, len(delivery.attempts)) == (True, 1)

        asyncio.run(act())
        slack.refused("http_error")


@pytest.mark.parametrize(("redirects", "acked"), [(2, True), (3, False)])
def test_two_redirects_are_followed_and_no_third(redirects: int, acked: bool) -> None:
    with LocalSlack(retry_waits_s=()) as slack:

        async def act() -> None:
            endpoint = Endpoint(*[lambda: plain(307, Location="/slack/events")] * redirects)
            async with endpoint.listening() as url:
                slack.send_to(url)
                delivery = slack.says("why?").deliveries[0]
                await slack.until_settled(delivery)
                assert delivery.acked is acked

        asyncio.run(act())
        if not acked:
            slack.refused("too_many_redirects", "http")
        slack.assert_nothing_unexpected()


def test_nobody_listening_is_a_failed_connection() -> None:
    with LocalSlack(retry_waits_s=()) as slack:

        async def act() -> None:
            async with Endpoint().listening() as url:
                pass
            slack.send_to(url)
            await slack.until_settled(slack.says("why?").deliveries[0])

        asyncio.run(act())
        slack.refused("connection_failed", "http")


def test_commands_and_clicks_come_as_forms_and_are_answered_by_the_body(strict: LocalSlack) -> None:
    async def act() -> None:
        endpoint = Endpoint(lambda: plain(text="in a moment"), lambda: plain(text='{"text": "as JSON"}'))
        async with endpoint.listening() as url:
            strict.send_to(url)
            strict.command("why?")
            await strict.until_whispered("in a moment")
            strict.command("why?")
            await strict.until_whispered("as JSON")
            await strict.until_acked(strict.interactive({"type": "block_actions", "actions": []}))
        forms = [parse_qs(body.decode()) for _, body in endpoint.got]
        assert forms[0]["text"] == ["why?"]
        assert json.loads(forms[2]["payload"][0])["type"] == "block_actions"

    asyncio.run(act())


def test_bolt_checks_what_the_driver_signs(strict: LocalSlack) -> None:
    async def act() -> None:
        app = bolt(strict)
        hears(app)

        async def take(request: web.Request) -> web.Response:
            headers: dict[str, Any] = dict(request.headers)
            answer = await app.async_dispatch(AsyncBoltRequest(body=await request.text(), headers=headers))
            return web.Response(status=answer.status, text=answer.body, content_type="application/json")

        endpoint = Endpoint()
        endpoint.take = take  # type: ignore[method-assign]
        async with endpoint.listening() as url:
            challenged = await strict.verify(url)
            assert (challenged.status, json.loads(challenged.body)) == (200, {"challenge": "local"})
            body = strict.says("why?").deliveries[0].payload
            now = strict.clock.now()
            assert (await strict.post(url, body)).status == 200
            assert (await strict.post(url, body, secret="another")).status == 401
            assert (await strict.post(url, body, at=now - 301)).status == 401
            assert (await strict.post(url, body, at=now + 302)).status == 401
            assert (await strict.post(url, body, signature=None)).status == 401
            assert (await strict.post(url, body, signature="v0=00")).status == 401
            assert (await strict.post(url, body, at="abc")).status == 500, "as known of Bolt: check before it"

    asyncio.run(act())
