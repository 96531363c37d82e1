"""A local Slack on loopback, with real sockets, in a thread and an event loop of its own.

    with LocalSlack() as slack:                     # or the fixture `strict` (tests/slack/fake/fixtures.py)
        client = AsyncWebClient(token=slack.bot_token, base_url=slack.api_url)
        ... start the bot with slack.app_token (Socket Mode) or slack.send_to("http://127.0.0.1:8000/slack/events") ...
        await slack.until_connected()
        said = slack.says("<@U0BOT> why is my loss NaN?")               # a user's message, its events are delivered
        reply = await slack.until_said("learning rate", thread_ts=said.ts)
        slack.clicks(reply, "feedback", positive=True)

Who and where (`LocalSlack` knows more by `add_user`, `add_channel`): ``ANN``, ``BEN`` are people; ``GENERAL`` is a
channel with the bot, ``OTHER`` one without it, ``PRIVATE`` a private one with it, ``DM`` Ann's conversation with it.

**What users do** (plain calls, they return at once)::

    says(text, channel=GENERAL, user=ANN, thread_ts=None, files=(), bot=False, subtype=None) -> Said
        Said: .ts .message .deliveries (app_mention and/or message, as subscribed and permitted)
    edits(ts, text) · deletes(ts) · opens(user=ANN, tab="messages") · event({...}) -> Delivery (any event)
    command(text, command="/trainmedic", channel=GENERAL, user=ANN) -> Delivery
    clicks(message, action_id, user=ANN, positive=None) -> Delivery      message: a Message or its ts, ephemeral too
    shortcut(callback_id, ts, user=ANN) -> Delivery · submits(view_id, values) -> Delivery
    interactive(payload) -> Delivery (any payload) · bot_said(text, blocks=…) -> Message   an old post, to click on
    stops(message_ts, user=ANN)                                          Slack's own Stop button on a stream
    upload(name, content, ..., see `files.SlackFile`) -> SlackFile       then says(..., files=[it])
    redeliver(delivery, reason="timeout")                                 the same event id in a new envelope

**What is to be seen**::

    messages(channel=None, thread_ts=None) -> list[Message]   text, blocks, markdown, .shown (all that a reader sees)
    ephemerals() · replies(ts) · message(ts) · calls(method=None) -> list[Call] · count(method)
    deliveries, streams, views, statuses, prompts, reactions, downloads, leaks, connections, opened, rates(method)
    Delivery: .event_id .attempts (.ack_s, .retry_attempt, .payload) .acked .ack_s .user_saw

**Waiting** (`PATIENCE_S` at most; woken by each change, nothing is polled; ``wait`` is the blocking twin)::

    await until(lambda: ..., "what") · until_connected(times=1) · until_acked(delivery) · until_settled(delivery)
    await until_said(part, channel=None, thread_ts=None, finished=True) -> Message · until_whispered(part, user=None)
    await until_call(method, times=1) -> Call · until_refused(error, method=None) · wait(lambda: ..., "what")

**What can go wrong**::

    scopes.discard("files:read") · subscriptions.discard("message.im") · clock.forward(1800) · rate_limited()
    fault("chat.postMessage", Fault(status=429, retry_after=2, times=1)) · heal(method)
        Fault: latency_s, status (429; 500 and others: HTML), retry_after, error (any), drop ("before"/"after" storing)
    disconnect("warning"|"refresh_requested"|"link_disabled") · cut() (no closing handshake) · refuse_links(times)
    ghosts = 1 (a half-open connection swallows every other payload) · LocalSlack(tiers=False) (no rate limits)
    LocalSlack(ack_within_s=3.0, retry_waits_s=(0, 60, 300), agent_view=True, echo=True)   echo: the bot's own posts
        come back to it as events, as in the real one
    world.messages_tab = False · world.channels[OTHER].archived = True

**HTTP instead of Socket Mode**: ``send_to(url)`` sends every delivery signed to this address, with Slack's retries;
``await post(url, body, form=…, secret=…, at=…, signature=…, headers=…) -> HttpReply`` sends one request as told
(wrong secret, old or future time, no signature); ``await verify(url)`` sends the challenge.

**Strictness**: each refusal is kept in ``refusals`` (Web API errors that no fault asked for, dead response_urls, login
pages, late acknowledgements, what a user saw fail). ``refused(error, method=None) -> list[Refusal]`` asserts that there
was one and marks it as expected; the fixture ``strict`` fails the test at its end where one is left.
"""

from __future__ import annotations

from tests.slack.fake.files import SlackFile
from tests.slack.fake.local import LocalSlack
from tests.slack.fake.values import (
    ANN,
    BEN,
    DM,
    GENERAL,
    OTHER,
    PATIENCE_S,
    PRIVATE,
    Call,
    Delivery,
    Fault,
    HttpReply,
    Message,
    Refusal,
    Said,
)

__all__ = [
    "ANN",
    "BEN",
    "DM",
    "GENERAL",
    "OTHER",
    "PATIENCE_S",
    "PRIVATE",
    "Call",
    "Delivery",
    "Fault",
    "HttpReply",
    "LocalSlack",
    "Message",
    "Refusal",
    "Said",
    "SlackFile",
]
