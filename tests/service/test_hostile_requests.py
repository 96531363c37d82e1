"""Requests that no client of ours sends: half characters, bodies that never come."""

from __future__ import annotations

import asyncio

import pytest
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from tests.every_case import every_case
from tests.openai_app import openai_app
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.middleware import BodyLimit
from trainmedic.service.settings import Settings

HALF = r"\ud800"
"""A lone surrogate, as JSON spells it."""
TEXT = '{"type": "text", "text": "loss is nan"}'
BODIES = (
    ("/v1/chat/completions", f'{{"messages": [{{"role": "user", "content": [{TEXT}, {{"type": "{HALF}"}}]}}]}}'),
    ("/v1/chat/completions", f'{{"messages": [{{"role": "{HALF}", "content": "x"}}]}}'),
    ("/v1/chat/completions", f'{{"messages": [{{"role": "user", "content": "nan {HALF}"}}], "model": "{HALF}"}}'),
    ("/v1/chat/completions", f'{{"messages": [{{"role": "user", "content": "nan", "{HALF}": "{HALF}"}}]}}'),
    ("/v1/ask", f'{{"question": "loss {HALF} is nan"}}'),
    ("/v1/ask", f'{{"question": "nan", "{HALF}": 1}}'),
    ("/v1/ask", f'{{"question": "nan", "conversation_id": "{HALF}"}}'),
    ("/v1/ask", f'{{"question": "nan", "language": "{HALF}"}}'),
    ("/v1/ask", f'{{"attachments": [{{"name": "{HALF}", "content": "{HALF}"}}]}}'),
    ("/v1/ask", f'{{"attachments": [{{"name": "a", "content": "{HALF}", "encoding": "base64"}}]}}'),
    ("/v1/check", f'{{"attachments": [{{"name": "{HALF}.yaml", "content": "lr: {HALF}"}}]}}'),
    ("/v1/search", f'{{"query": "{HALF}", "filters": {{"framework": "{HALF}"}}}}'),
    ("/v1/audit", f'{{"attachments": [{{"name": "a.txt", "content": "torch==2.1.0{HALF}"}}]}}'),
    ("/v1/diff", f'{{"good": [], "bad": [{{"name": "{HALF}", "content": "{HALF}"}}]}}'),
    ("/v1/messages/explain", f'{{"message": "ValueError: {HALF}"}}'),
    ("/v1/feedback", f'{{"answer_id": "{HALF}", "reaction": "{HALF}", "comment": "{HALF}"}}'),
)


@pytest.fixture(scope="module")
def client(knowledge_advisor: Advisor) -> TestClient:
    return TestClient(openai_app(knowledge_advisor, Settings()), raise_server_exceptions=False)


@every_case(("path", "body"), BODIES)
def test_half_a_character_is_never_our_fault(client: TestClient, path: str, body: str) -> None:
    response = client.post(path, content=body.encode(), headers={"content-type": "application/json"})
    assert response.status_code < 500, response.text
    assert response.text


async def read_body(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@every_case("before", [0, 3])
def test_a_body_that_does_not_come_is_not_waited_for(before: int) -> None:
    chunks = [{"type": "http.request", "body": b"x", "more_body": True}] * before
    sent: list[Message] = []

    async def receive() -> Message:
        if chunks:
            return chunks.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [], "state": {"trace_id": "t"}}
    asyncio.run(BodyLimit(read_body, max_bytes=100, timeout_s=0.05)(scope, receive, send))
    assert sent[0]["status"] == 408


def test_a_body_that_comes_in_time_is_read() -> None:
    chunks = [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        return chunks.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [], "state": {"trace_id": "t"}}
    asyncio.run(BodyLimit(read_body, max_bytes=100, timeout_s=0.05)(scope, receive, send))
    assert sent[0]["status"] == 200
