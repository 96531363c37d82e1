"""What stands before the routes: keys, the bound on the body, the deadline, the slots, the trace id."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.every_case import every_case
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import MAX_ATTACHMENTS, Ask
from trainmedic.service.pipeline import Draft
from trainmedic.service.settings import MEBIBYTE, Settings

KEY = "correct-horse-battery-staple"
GUARDED = ("/v1/cases", "/v1/rules", "/metrics", "/openapi.json")
OPEN = ("/livez", "/readyz", "/version")


def keyed(advisor: Advisor) -> TestClient:
    return TestClient(create_app(advisor, Settings.model_validate({"api_keys": f"other-key, {KEY}"})))


# --- names ----------------------------------------------------------------------------------------------------------


@every_case("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[::1", "a@b.example"])
def test_a_service_without_keys_is_not_read_under_a_name_that_anybody_can_point_at_it(
    advisor: Advisor, host: str
) -> None:
    client = TestClient(create_app(advisor, Settings()))
    for path in ("/v1/cases", "/openapi.json", "/metrics", "/"):
        response = client.get(path, headers={"host": host})
        assert response.status_code == 421
        assert response.json()["error"]["code"] == "wrong_host"
    assert client.post("/v1/ask", headers={"host": host}, json={"question": "loss is nan"}).status_code == 421
    assert client.get("/livez", headers={"host": host}).status_code == 200


@every_case("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "10.0.0.7:80", "box", "a.localhost", ""])
def test_its_own_names_open_it_without_keys(advisor: Advisor, host: str) -> None:
    client = TestClient(create_app(advisor, Settings()))
    assert client.get("/v1/cases", headers={"host": host}).status_code == 200


def test_the_public_name_opens_it_and_with_keys_any_name_does(advisor: Advisor) -> None:
    public = Settings.model_validate({"public_url": "https://Medic.example.org/"})
    elsewhere = {"host": "medic.example.org"}
    assert TestClient(create_app(advisor, public)).get("/v1/cases", headers=elsewhere).status_code == 200
    response = keyed(advisor).get("/v1/cases", headers={**elsewhere, "authorization": f"Bearer {KEY}"})
    assert response.status_code == 200


def test_no_page_of_the_api_runs_scripts_of_another_site(advisor: Advisor) -> None:
    client = TestClient(create_app(advisor, Settings()))
    assert [client.get(path).status_code for path in ("/docs", "/redoc")] == [404, 404]


# --- keys -----------------------------------------------------------------------------------------------------------


@every_case("path", GUARDED)
@every_case(
    "header",
    [
        None, "", "Bearer", "Bearer ", f"Basic {KEY}", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", KEY,
        f"Bearer other-key, {KEY}",
    ],
)  # fmt: skip
def test_without_a_valid_key_nothing_is_served(advisor: Advisor, path: str, header: str | None) -> None:
    response = keyed(advisor).get(path, headers={} if header is None else {"authorization": header})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["error"]["code"] == "unauthorized"
    assert response.json()["error"]["trace_id"] == response.headers["x-trace-id"]
    assert KEY not in response.text


@every_case("path", GUARDED)
@every_case("header", [f"Bearer {KEY}", f"bearer {KEY}", f"BEARER  {KEY} ", "Bearer other-key"])
def test_any_of_the_keys_opens_every_route(advisor: Advisor, path: str, header: str) -> None:
    assert keyed(advisor).get(path, headers={"authorization": header}).status_code == 200


@every_case("path", OPEN)
def test_health_needs_no_key(advisor: Advisor, path: str) -> None:
    assert keyed(advisor).get(path).status_code == 200


def test_without_a_key_a_post_is_refused_before_its_body_is_read(advisor: Advisor) -> None:
    app = create_app(advisor, Settings.model_validate({"api_keys": KEY}))
    sent, read = asyncio.run(raw_post(app, [b"x" * 1000] * 3, headers=[]))
    assert sent[0]["status"] == 401
    assert read == 0


# --- the bound on the body ------------------------------------------------------------------------------------------


async def raw_post(
    app: FastAPI, chunks: list[bytes], headers: list[tuple[bytes, bytes]]
) -> tuple[list[dict[str, Any]], int]:
    """POST /v1/ask in chunks, straight to the application; what it sent, and how many chunks it read."""
    sent: list[dict[str, Any]] = []
    read = 0

    async def receive() -> dict[str, Any]:
        nonlocal read
        if read == len(chunks):
            await asyncio.sleep(3600)
        read += 1
        return {"type": "http.request", "body": chunks[read - 1], "more_body": read < len(chunks)}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/ask",
        "raw_path": b"/v1/ask",
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "headers": [(b"content-type", b"application/json"), *headers],
    }
    await app(scope, receive, send)
    return sent, read


@pytest.fixture
def small(advisor: Advisor, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    monkeypatch.setattr("trainmedic.service.api.middleware.MAX_REQUEST", MEBIBYTE)
    return create_app(advisor, Settings())


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read(small: FastAPI) -> None:
    sent, read = asyncio.run(raw_post(small, [b"{}"], [(b"content-length", str(MEBIBYTE + 1).encode())]))
    assert sent[0]["status"] == 413
    assert b'"code":"too_large"' in sent[1]["body"]
    assert read == 0


@pytest.mark.parametrize("length", [None, b"10", b"nonsense", b"-5"])
def test_a_body_that_turns_out_too_large_is_refused_and_not_read_on(small: FastAPI, length: bytes | None) -> None:
    chunks = [b'{"question": "', *[b"x" * 100_000] * 30, b'"}']
    sent, read = asyncio.run(raw_post(small, chunks, [] if length is None else [(b"content-length", length)]))
    assert [m["status"] for m in sent if m["type"] == "http.response.start"] == [413]
    assert b'"code":"too_large"' in b"".join(m.get("body", b"") for m in sent)
    assert any(name == b"x-trace-id" for name, _ in sent[0]["headers"])
    assert read == 12


def test_a_body_at_the_bound_is_answered(small: FastAPI) -> None:
    frame = b'{"question": "loss is nan %s"}'
    text = b"x " * ((MEBIBYTE - len(frame)) // 2)
    client = TestClient(small)
    response = client.post("/v1/ask", content=frame % text, headers={"content-type": "application/json"})
    assert response.status_code == 200
    over = client.post("/v1/ask", content=frame % (text + b"x" * 64), headers={"content-type": "application/json"})
    assert over.status_code == 413
    assert over.json()["error"]["trace_id"] == over.headers["x-trace-id"]


def test_too_many_attachments_are_refused(advisor: Advisor) -> None:
    client = TestClient(create_app(advisor, Settings()))
    attachments = [{"name": f"{n}.txt", "content": "x"} for n in range(MAX_ATTACHMENTS + 1)]
    for path in ("/v1/ask", "/v1/check"):
        response = client.post(path, json={"attachments": attachments})
        assert response.status_code == 413
        assert response.json()["error"]["code"] == "too_large"
        assert client.post(path, json={"attachments": attachments[:-1]}).status_code == 200


# --- trace ids ------------------------------------------------------------------------------------------------------


def test_every_request_has_a_trace_id_of_its_own_that_the_answer_bears(advisor: Advisor) -> None:
    client = TestClient(create_app(advisor, Settings()))
    given = {"x-trace-id": "chosen-by-the-client"}
    responses = [client.post("/v1/ask", json={"question": "loss is nan"}, headers=given) for _ in range(2)]
    for response in responses:
        assert response.headers.get_list("x-trace-id") == [response.json()["trace_id"]]
        assert len(response.json()["trace_id"]) == 32
    assert responses[0].headers["x-trace-id"] != responses[1].headers["x-trace-id"]


# --- deadline and slots ---------------------------------------------------------------------------------------------


class Gated(Advisor):
    """An advisor that answers when it is let to, and counts how many questions it works on."""

    def __init__(self, whole: Advisor) -> None:
        super().__init__(whole.knowledge, whole.read)
        self.open = threading.Event()
        self.working = 0
        self.most = 0
        self.asked = 0
        self._lock = threading.Lock()

    def snapshot(self) -> Self:
        return self  # a copy would count on its own

    def prepare(self, request: Ask, trace_id: str = "") -> Draft:
        with self._lock:
            self.working += 1
            self.asked += 1
            self.most = max(self.most, self.working)
        self.open.wait(30)
        with self._lock:
            self.working -= 1
        return super().prepare(request, trace_id)


@pytest.fixture
def gated(knowledge_advisor: Advisor) -> Iterator[Gated]:
    advisor = Gated(knowledge_advisor)
    yield advisor
    advisor.open.set()


async def ask(client: httpx.AsyncClient, question: str = "loss is nan") -> httpx.Response:
    return await client.post("/v1/ask", json={"question": question})


def test_past_the_deadline_the_client_is_told_so(gated: Gated) -> None:
    client = TestClient(create_app(gated, Settings(request_timeout_s=0.2)))
    started = time.monotonic()
    response = client.post("/v1/ask", json={"question": "loss is nan"})
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "timeout"
    assert response.json()["error"]["trace_id"] == response.headers["x-trace-id"]
    assert time.monotonic() - started < 25, "the gate would be waited at for 30 s"
    gated.open.set()


def test_a_question_past_its_deadline_keeps_its_slot_until_its_thread_ends(gated: Gated) -> None:
    async def scenario() -> None:
        app = create_app(gated, Settings(request_timeout_s=0.5, concurrency=3))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            late = await asyncio.gather(*(ask(client) for _ in range(6)))
            assert {r.status_code for r in late} == {503}
            # Two threads are still at work; the four others never got a slot, and neither does one who asks now.
            assert (gated.working, gated.most, gated.asked) == (2, 2, 2)
            assert (await ask(client)).status_code == 503
            assert gated.asked == 2
            assert (await client.get("/livez")).status_code == 200
            gated.open.set()
            while gated.working:
                await asyncio.sleep(0.01)
        app = create_app(gated, Settings(concurrency=3))
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            assert {r.status_code for r in await asyncio.gather(*(ask(client) for _ in range(4)))} == {200}
            assert gated.most == 2

    asyncio.run(scenario())
