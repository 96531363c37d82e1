"""Slack's events over HTTP: what is signed is answered, everything else refused before slack_bolt reads it."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI
from slack_sdk.signature import SignatureVerifier

from tests.every_case import every_case
from tests.slack.bots import ANSWER, QUESTION, settings_of, threads
from tests.slack.fake import Fault, LocalSlack
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer
from trainmedic.ui.channels.slack.http import is_shaped, why_refused
from trainmedic.ui.channels.slack.service import SlackService
from trainmedic.ui.context import AppContext

SECRET = "signing-secret"


def signed(body: bytes, *, at: float | None = None, secret: str = SECRET) -> dict[str, str]:
    timestamp = str(int(at if at is not None else time.time()))
    signature = SignatureVerifier(secret).generate_signature(timestamp=timestamp, body=body.decode())
    assert signature is not None
    return {
        "content-type": "application/json",
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": signature,
    }


def test_a_signed_body_is_accepted() -> None:
    assert why_refused(signed(b"{}"), b"{}", SECRET) is None
    form = b"command=%2Ftrainmedic&text=a"
    headers = {**signed(form), "content-type": "application/x-www-form-urlencoded"}
    assert why_refused(headers, form, SECRET) is None


REFUSED: dict[str, tuple[Callable[[], dict[str, str]], bytes, int]] = {
    "unsigned": (dict, b"{}", 401),
    "another secret": (lambda: signed(b"{}", secret="another"), b"{}", 401),
    "old": (lambda: signed(b"{}", at=time.time() - 400), b"{}", 401),
    "from the future": (lambda: signed(b"{}", at=time.time() + 400), b"{}", 401),
    "another body": (lambda: signed(b"{}"), b'{"more": 1}', 401),
    "a time that is no number": (lambda: {**signed(b"{}"), "x-slack-request-timestamp": "abc"}, b"{}", 401),
    "a huge time": (lambda: {**signed(b"{}"), "x-slack-request-timestamp": "9" * 400}, b"{}", 401),
    "Arabic digits": (lambda: {**signed(b"{}"), "x-slack-request-timestamp": "١٢٣"}, b"{}", 401),
    "a signature beyond ASCII": (lambda: {**signed(b"{}"), "x-slack-signature": "v0=é"}, b"{}", 401),
    "no text": (lambda: signed(b"{}"), b"\xff", 400),
    "no JSON": (lambda: signed(b"{oops"), b"{oops", 400),
    "a list": (lambda: signed(b"[1,2]"), b"[1,2]", 400),
    "deep nesting": (lambda: signed(b"[" * 200_000), b"[" * 200_000, 400),
}
"""Headers are made when the test runs: a signature is good for five minutes."""


@every_case("case", REFUSED)
def test_everything_else_is_refused(case: str) -> None:
    headers, body, status = REFUSED[case]
    found = why_refused(headers(), body, SECRET)
    assert found is not None
    assert found[0] == status


def test_a_forms_payload_is_an_object() -> None:
    form = "application/x-www-form-urlencoded"
    assert is_shaped("payload=%7B%7D", form)
    assert not is_shaped("payload=%5B1%5D", form)
    assert not is_shaped("payload=oops", form)
    assert not is_shaped("", form)


@asynccontextmanager
async def served(slack: LocalSlack, advisor: Advisor, folder: Path) -> AsyncIterator[str]:
    """The address of Slack's events on a service of its own."""
    settings = settings_of(slack, folder, slack_app_token="", slack_signing_secret=slack.world.signing_secret)
    service = SlackService(
        AppContext(settings=settings, advisor=advisor, answerer=TemplateAnswerer(advisor), executor=threads)
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(lifespan=lifespan)
    service.attach(app)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/slack/events"
    try:
        while (await slack.post(url, {"type": "url_verification", "challenge": "up"})).status != 200:
            await asyncio.sleep(0.05)
        yield url
    finally:
        server.should_exit = True
        await task
        listening.close()


def test_only_what_is_signed_is_answered_over_http_and_a_retry_is_not(
    strict: LocalSlack, advisor: Advisor, tmp_path: Path
) -> None:
    async def act() -> None:
        async with served(strict, advisor, tmp_path) as url:
            verified = await strict.post(url, {"type": "url_verification", "challenge": "local"})
            assert (verified.status, json.loads(verified.body)) == (200, {"challenge": "local"})
            wrong = await strict.post(url, {"type": "event_callback"}, secret="another")
            assert wrong.status == 401
            assert json.loads(wrong.body)["error"]["code"] == "wrong_signature"
            limited = await strict.post(url, {"type": "app_rate_limited", "minute_rate_limited": 1})
            assert limited.status == 200
            said = strict.says(f"<@U0BOT> {QUESTION}")
            assert (await strict.post(url, said.deliveries[0].payload)).status == 200
            await strict.until_said("Cause found", thread_ts=said.ts)
            await strict.until_call("chat.postMessage", ANSWER)
            again = await strict.post(url, said.deliveries[0].payload, headers={"X-Slack-Retry-Num": "1"})
            assert again.status == 200
            assert strict.count("chat.postMessage") == ANSWER
            assert (await strict.post(url, form=strict.command(QUESTION).payload)).status == 200
            await strict.until_whispered("Cause found")

    asyncio.run(act())


def test_a_service_starts_without_slack_and_finds_it_later(
    strict: LocalSlack, advisor: Advisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmedic.ui.channels.slack.service.RETRY_S", (0.05,))
    strict.fault("auth.test", Fault(error="internal_error", times=2))

    async def act() -> None:
        settings = settings_of(strict, tmp_path)
        context = AppContext(settings=settings, advisor=advisor, answerer=TemplateAnswerer(advisor), executor=threads)
        async with SlackService(context).running():
            await strict.until_connected()
            said = strict.says(f"<@U0BOT> {QUESTION}")
            await strict.until_said("Cause found", thread_ts=said.ts)
        assert strict.count("auth.test") == 3

    asyncio.run(act())


def test_a_service_goes_on_without_slack_where_the_token_is_wrong(
    strict: LocalSlack, advisor: Advisor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act() -> None:
        settings = settings_of(strict, tmp_path, slack_bot_token="xoxb-wrong")
        context = AppContext(settings=settings, advisor=advisor, answerer=TemplateAnswerer(advisor), executor=threads)
        async with SlackService(context).running():
            await strict.until_refused("invalid_auth")

    asyncio.run(act())
    assert "no Slack: Slack does not accept SLACK_BOT_TOKEN" in caplog.text
    assert "xoxb-wrong" not in caplog.text
