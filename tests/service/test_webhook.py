"""The webhook against receivers that answer, refuse, are slow, hang up or are not there."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.incidents import INCIDENTS, KTO_SINGLE
from trainmedic.kb.errors import InvalidSettings
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, final_answer, run_inline
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.observers.destination import NotDelivered, Notice, destination, signature
from trainmedic.service.observers.webhook import RetryPolicy, Webhook, webhook_of
from trainmedic.service.settings import Settings, effective, load_settings
from trainmedic.service.storage.history import Feedback
from trainmedic.service.storage.memory import Memory

SECRET = "a-shared-secret"
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"
ENOUGH_S = 10.0
QUICK = RetryPolicy(timeout_s=5.0, first_delay_s=0.01, farewell_s=5.0)


class Receiver(ThreadingHTTPServer):
    """Answers with the scripted statuses in turn, then with 204. ``hold`` keeps it from answering."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, statuses: list[int]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses = statuses
        self.headers_sent: dict[str, str] = {}
        self.hold: threading.Event | None = None
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.arrived = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    def wait_for(self, count: int) -> None:
        """Until so many requests have come."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.got) >= count, ENOUGH_S), f"{len(self.got)} requests came"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error here."""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


class Handler(BaseHTTPRequestHandler):
    """Notes one request."""

    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.arrived:
            self.server.got.append((dict(self.headers.items()), body))
            status = self.server.statuses.pop(0) if self.server.statuses else 204
            self.server.arrived.notify_all()
        if self.server.hold is not None:
            self.server.hold.wait(ENOUGH_S)
        if status == 0:  # hang up
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        for name, value in self.server.headers_sent.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to the terminal."""


@pytest.fixture
def receive() -> Iterator[Callable[..., Receiver]]:
    started: list[Receiver] = []

    def start(*statuses: int) -> Receiver:
        receiver = Receiver(list(statuses))
        threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        started.append(receiver)
        return receiver

    yield start
    for receiver in started:
        if receiver.hold is not None:
            receiver.hold.set()
        receiver.shutdown()
        receiver.server_close()


def observed(advisor: Advisor, webhook: Webhook) -> Advisor:
    return Advisor(advisor.knowledge, advisor.read, Memory(advisor.memory.history, (webhook,)))


def asked(advisor: Advisor, webhook: Webhook, *questions: str, until: Callable[[], None] = lambda: None) -> list[str]:
    """The ids of the answers to ``questions``, all asked while the webhook runs; ``until`` is waited for."""

    async def ask() -> list[str]:
        answerer = TemplateAnswerer(observed(advisor, webhook))
        async with webhook.running():
            answers = [await final_answer(answerer.stream(Ask(question=q), "", run_inline)) for q in questions]
            await asyncio.to_thread(until)
        return [answer.id for answer in answers]

    return asyncio.run(ask())


def test_an_answer_is_told_with_its_verdict_its_causes_and_a_link(
    advisor: Advisor, receive: Callable[..., Receiver]
) -> None:
    receiver = receive()
    webhook = Webhook(receiver.url, public_url="https://medic.example/", policy=QUICK)
    incident = INCIDENTS[0]

    async def ask() -> Any:
        async with webhook.running():
            request = Ask(question=incident.en, attachments=incident.files)
            return await final_answer(TemplateAnswerer(observed(advisor, webhook)).stream(request, "", run_inline))

    answer = asyncio.run(ask())
    (told,) = receiver.bodies
    assert list(told) == ["event", "answer_id", "verdict", "causes", "link", "at"]
    assert (told["event"], told["answer_id"], told["verdict"]) == ("answered", answer.id, incident.verdict)
    assert told["causes"][0] == {
        "case_id": answer.causes[0].case_id,
        "title": answer.causes[0].title,
        "confidence": answer.causes[0].confidence,
    }
    assert told["link"] == f"https://medic.example/?answer={answer.id}"
    assert told["at"].endswith("+00:00")
    assert receiver.got[0][0]["X-Trainmedic-Event"] == "answered"


def apprised(receiver: Receiver) -> str:
    """The receiver as a service that apprise knows, which asks for redirects to be followed."""
    return f"{receiver.url.replace('http:', 'json:')}?redirect=yes"


def test_a_service_that_apprise_knows_is_told_in_words_that_mention_nobody(receive: Callable[..., Receiver]) -> None:
    receiver = receive()
    told = Notice(event="resolved", body={}, title="<!channel>", text="**KTO @everyone <at id=all>** · a@b.c")
    destination(apprised(receiver)).send(told)
    (body,) = receiver.bodies
    assert (body["type"], body["title"]) == ("success", "<\u200b!channel>")
    assert "@\u200beveryone <\u200bat id=all>** · a@b.c" in body["message"]


def test_no_redirect_is_followed_for_apprise_either(receive: Callable[..., Receiver]) -> None:
    elsewhere, receiver = receive(), receive(307)
    receiver.headers_sent = {"Location": elsewhere.url}
    with pytest.raises(NotDelivered):
        destination(apprised(receiver)).send(Notice(event="answered", body={}, title="t", text="x"))
    assert elsewhere.got == []


def test_nothing_more_is_sent_about_an_answer_that_was_deleted(
    advisor: Advisor, receive: Callable[..., Receiver]
) -> None:
    receiver = receive()
    receiver.hold = threading.Event()
    webhook = Webhook(receiver.url, policy=QUICK)
    answers = [advisor.ask(Ask(question=question)) for question in ("loss is nan", "oom", "slow")]

    async def use() -> None:
        async with webhook.running():
            for answer in answers:
                webhook.on_answer(answer)
            await asyncio.to_thread(receiver.wait_for, 1)
            webhook.on_deletion({answer.id for answer in answers[:2]})
            assert receiver.hold is not None
            receiver.hold.set()
            await asyncio.to_thread(receiver.wait_for, 2)

    asyncio.run(use())
    assert [told["answer_id"] for told in receiver.bodies] == [answers[0].id, answers[2].id]


def test_a_receiver_can_check_the_signature_over_timestamp_and_body(
    advisor: Advisor, receive: Callable[..., Receiver]
) -> None:
    receiver = receive()
    before = int(time.time())
    asked(advisor, Webhook(receiver.url, SECRET, policy=QUICK), "loss is nan")
    headers, body = receiver.got[0]
    stamp, digest = (part.partition("=")[2] for part in headers["X-Trainmedic-Signature"].split(","))
    assert before <= int(stamp) <= time.time()
    assert digest == hmac.new(SECRET.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert signature("another", int(stamp), body) != headers["X-Trainmedic-Signature"]
    assert signature(SECRET, int(stamp) + 1, body) != headers["X-Trainmedic-Signature"]


def test_nothing_that_was_pasted_is_sent(advisor: Advisor, receive: Callable[..., Receiver]) -> None:
    receiver = receive()
    webhook = Webhook(receiver.url, SECRET, policy=QUICK)
    script = KTO_SINGLE.replace("--bf16", f"--hf_token {TOKEN} --run_name our-unreleased-model")

    async def ask() -> None:
        request = Ask(
            question="why is our-unreleased-model nan", attachments=(Attachment(name="plan-x.sh", content=script),)
        )
        async with webhook.running():
            await final_answer(TemplateAnswerer(observed(advisor, webhook)).stream(request, "", run_inline))

    asyncio.run(ask())
    for private in (TOKEN, "unreleased", "plan-x"):
        assert private.encode() not in receiver.got[0][1]


@pytest.mark.parametrize("status", [500, 503, 429, 408, 0])
def test_what_may_go_well_later_is_sent_again_as_the_same_delivery(
    advisor: Advisor, receive: Callable[..., Receiver], status: int
) -> None:
    receiver = receive(status, status)
    webhook = Webhook(receiver.url, SECRET, policy=QUICK)
    (id,) = asked(advisor, webhook, "loss is nan", until=lambda: receiver.wait_for(3))
    assert [told["answer_id"] for told in receiver.bodies] == [id] * 3
    assert len({headers["X-Trainmedic-Delivery"] for headers, _ in receiver.got}) == 1
    assert (webhook.delivered, webhook.dropped) == (1, 0)


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 410])
def test_what_is_refused_for_good_is_sent_once_and_followed_nowhere(
    advisor: Advisor, receive: Callable[..., Receiver], status: int
) -> None:
    elsewhere = receive()
    receiver = receive(status)
    receiver.headers_sent = {"Location": elsewhere.url}
    webhook = Webhook(receiver.url, policy=QUICK)
    first, second = asked(advisor, webhook, "loss is nan", "oom", until=lambda: receiver.wait_for(2))
    assert [told["answer_id"] for told in receiver.bodies] == [first, second]
    assert elsewhere.got == []
    assert (webhook.delivered, webhook.dropped) == (1, 1)


def test_after_enough_attempts_it_is_given_up_and_said_without_the_address(
    advisor: Advisor, receive: Callable[..., Receiver], caplog: pytest.LogCaptureFixture
) -> None:
    receiver = receive(*[500] * 3)
    policy = RetryPolicy(first_delay_s=0.01, attempts=3, farewell_s=5.0)
    webhook = Webhook(f"{receiver.url}?token=very-secret", policy=policy)
    with caplog.at_level(logging.WARNING, "trainmedic.webhook"):
        asked(advisor, webhook, "loss is nan", "oom", until=lambda: receiver.wait_for(4))
    assert (webhook.delivered, webhook.dropped) == (1, 1)
    assert "HTTP 500" in caplog.text
    assert "very-secret" not in caplog.text


def test_a_receiver_that_says_when_is_asked_no_sooner(advisor: Advisor, receive: Callable[..., Receiver]) -> None:
    receiver = receive(429)
    receiver.headers_sent = {"Retry-After": "1"}
    webhook = Webhook(receiver.url, policy=QUICK)
    started = time.monotonic()
    asked(advisor, webhook, "loss is nan", until=lambda: receiver.wait_for(2))
    assert time.monotonic() - started >= 0.9


def test_a_receiver_that_is_not_there_changes_no_answer(advisor: Advisor) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    webhook = Webhook(url, policy=RetryPolicy(first_delay_s=30.0, farewell_s=5.0))
    assert len(asked(advisor, webhook, "loss is nan", "oom")) == 2
    assert (webhook.delivered, webhook.dropped) == (0, 2)


def test_a_receiver_that_never_answers_delays_no_answer_and_not_the_end(
    advisor: Advisor, receive: Callable[..., Receiver]
) -> None:
    receiver = receive()
    receiver.hold = threading.Event()
    webhook = Webhook(receiver.url, policy=RetryPolicy(timeout_s=60.0, farewell_s=0.05))
    assert len(asked(advisor, webhook, "a", "loss is nan", "oom", until=lambda: receiver.wait_for(1))) == 3
    assert not receiver.hold.is_set()  # it has answered nothing up to here
    assert (webhook.delivered, webhook.dropped) == (0, 3)


def test_more_events_than_may_wait_are_dropped_and_counted(advisor: Advisor, receive: Callable[..., Receiver]) -> None:
    receiver = receive()
    receiver.hold = threading.Event()
    webhook = Webhook(receiver.url, policy=RetryPolicy(queue=2, farewell_s=0.05))
    asked(advisor, webhook, "a", "b", "c", "d", "e", until=lambda: receiver.wait_for(1))
    assert webhook.dropped == 5  # three found no room, two were still waiting for the first
    assert len(receiver.got) == 1


def test_a_solved_question_is_told_once_from_any_thread(advisor: Advisor, receive: Callable[..., Receiver]) -> None:
    receiver = receive()
    webhook = Webhook(receiver.url, policy=QUICK)
    telling = observed(advisor, webhook)

    async def use() -> str:
        async with webhook.running():
            answer = await final_answer(TemplateAnswerer(telling).stream(Ask(question="loss is nan"), "", run_inline))
            for reaction in ("up", "resolved", "resolved"):
                feedback = Feedback(answer_id=answer.id, reaction=reaction, comment=f"it was {TOKEN}")
                await asyncio.to_thread(telling.memory.give_feedback, feedback)
            await asyncio.to_thread(receiver.wait_for, 2)
            return answer.id

    id = asyncio.run(use())
    answered, resolved = receiver.bodies
    assert (answered["event"], resolved["event"]) == ("answered", "resolved")
    assert resolved["answer_id"] == id
    assert resolved["verdict"] == answered["verdict"]
    assert resolved["causes"] == answered["causes"]


def test_an_answer_that_is_left_before_its_end_is_not_told(advisor: Advisor, receive: Callable[..., Receiver]) -> None:
    receiver = receive()
    webhook = Webhook(receiver.url, policy=QUICK)

    async def leave() -> None:
        async with webhook.running():
            parts = TemplateAnswerer(observed(advisor, webhook)).stream(Ask(question="loss is nan"), "", run_inline)
            await anext(parts)
            await parts.aclose()

    asyncio.run(leave())
    assert receiver.got == []


@pytest.mark.parametrize("url", ["ftp://a/b", "hooks.example/x", "http://", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused_at_start(url: str) -> None:
    with pytest.raises(InvalidSettings):
        webhook_of(Settings.model_validate({"webhook_url": url}))


def test_the_settings_name_the_webhook_and_show_neither_address_nor_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    assert webhook_of(Settings()) is None
    monkeypatch.setenv("TRAINMEDIC_WEBHOOK_URL", "https://hooks.example/T0/very-secret")
    monkeypatch.setenv("TRAINMEDIC_WEBHOOK_SECRET", SECRET)
    settings = load_settings()
    assert webhook_of(settings) is not None
    assert "very-secret" not in str(effective(settings))
    assert SECRET not in str(effective(settings))
