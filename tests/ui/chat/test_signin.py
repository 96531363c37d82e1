"""Sign-in to the pages with stored keys."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy.engine import Engine
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from trainmedic.service.access.audit_log import AuditLog
from trainmedic.service.access.cookies import SESSION
from trainmedic.service.access.gate import Gate
from trainmedic.service.access.keys import KeyStore, SessionStore
from trainmedic.service.access.limits import ATTEMPTS, RateLimits
from trainmedic.service.access.principals import Access
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.api.app import create_app
from trainmedic.service.configuration import settings_from
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.storage.database import open_database
from trainmedic.ui.chat.app import Shell
from trainmedic.ui.chat.mount import LastMount
from trainmedic.ui.chat.texts import words
from trainmedic.ui.context import AppContext

PAGE = {"accept": "text/html"}
COOKIE = f"__Host-{SESSION}"
HOME = "https://medic.example.org"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    yield engine
    engine.dispose()


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for the framework's application; says who it was called by."""
    await PlainTextResponse(scope["state"]["principal"].id)(scope, receive, send)


def serve(advisor: Advisor, engine: Engine, attempts: str = ATTEMPTS, **changes: Any) -> TestClient:
    settings = settings_from({"require_key": True, "public_url": HOME} | changes)
    limits = RateLimits(settings, attempts=attempts)
    gate = Gate(settings, Access(settings, KeyStore(engine), SessionStore(engine)), limits, AuditLog(engine))
    app: FastAPI = create_app(advisor, settings, gate=gate)
    context = AppContext(
        settings=settings, advisor=advisor, answerer=TemplateAnswerer(advisor), executor=run_inline, gate=gate
    )
    shell = Shell(context, lambda context: FastAPI())
    shell._pages = pages
    app.router.routes.append(LastMount("/", shell, app))
    return TestClient(app, base_url=HOME, follow_redirects=False)


def another(browser: TestClient) -> TestClient:
    """A second browser at the same service."""
    return TestClient(browser.app, base_url=HOME, follow_redirects=False)


def test_a_stored_key_opens_the_pages_until_it_is_revoked(advisor: Advisor, engine: Engine) -> None:
    keys = KeyStore(engine)
    key, secret = keys.new("alice", "ask")
    browser = serve(advisor, engine)
    assert browser.post("/login", data={"key": "tm_wrong_key"}).status_code == 401
    signed_in = browser.post("/login", data={"key": secret, "next": "/zh/"})
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/zh/")
    assert secret.split("_", 2)[2] not in signed_in.headers["set-cookie"]
    assert browser.get("/config").text == f"key:{key.id}"
    keys.rotate(key.id, timedelta(hours=1))
    assert serve(advisor, engine).get("/config", headers=session_of(browser)).status_code == 200
    keys.revoke(key.id)
    later = serve(advisor, engine)  # without what the first one remembers for some seconds
    assert later.get("/config", headers=session_of(browser)).status_code == 401


def session_of(browser: TestClient) -> dict[str, str]:
    """What another browser sends with a session that it has taken."""
    return {"cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}


def test_a_session_ends_with_the_secret_that_opened_it(advisor: Advisor, engine: Engine) -> None:
    keys = KeyStore(engine)
    key, leaked = keys.new("alice", "ask")
    thief = serve(advisor, engine)
    owner = another(thief)
    thief.post("/login", data={"key": leaked})
    _, fresh = keys.rotate(key.id, timedelta())
    owner.post("/login", data={"key": fresh})
    later = serve(advisor, engine)  # without what the others remember for some seconds
    assert later.get("/config", headers=session_of(thief)).status_code == 401
    assert later.get("/config", headers=session_of(owner)).text == f"key:{key.id}"


def test_a_key_that_may_only_read_cannot_ask_on_the_pages(advisor: Advisor, engine: Engine) -> None:
    _, secret = KeyStore(engine).new("reader", "read")
    browser = serve(advisor, engine)
    browser.post("/login", data={"key": secret})
    assert browser.get("/config").status_code == 200
    refused = browser.post("/gradio_api/queue/join", json={})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")


def test_attempts_to_sign_in_and_requests_of_pages_are_limited(advisor: Advisor, engine: Engine) -> None:
    KeyStore(engine).new("alice", "ask")
    browser = serve(advisor, engine, "2/hour", rate_limit="8/hour")
    attempts = [browser.post("/login", data={"key": f"guess{number}"}) for number in range(3)]
    assert [attempt.status_code for attempt in attempts] == [401, 401, 429]
    assert words("en")["login_too_many"] in attempts[2].text
    assert attempts[-1].headers.get_list("ratelimit-limit") == ["2"]
    pages_read = [browser.get("/ui/ui.css") for _ in range(6)]
    assert [page.status_code for page in pages_read] == [200] * 5 + [429]
    assert int(pages_read[-1].headers["retry-after"]) > 0


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/login", {}),
        ("POST", "/login", {}),
        ("POST", "/logout", {}),
        ("POST", "/login", {"origin": "https://evil.example"}),
        ("GET", f"/ui/{'a' * 300}", {}),
    ],
)
def test_no_request_of_the_pages_is_outside_the_limits(
    method: str, path: str, headers: dict[str, str], advisor: Advisor, engine: Engine
) -> None:
    _, secret = KeyStore(engine).new("alice", "ask")
    browser = serve(advisor, engine, rate_limit="3/hour")
    answers = [browser.request(method, path, headers=headers, data={"key": secret}) for _ in range(4)]
    assert [answer.headers["ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert [answer.status_code == 429 for answer in answers] == [False, False, False, True]


def test_only_somebody_who_has_signed_in_signs_out(advisor: Advisor, engine: Engine) -> None:
    _, secret = KeyStore(engine).new("alice", "ask")
    browser = serve(advisor, engine)
    for _ in range(3):
        assert browser.post("/logout").status_code == 303
    browser.post("/logout", headers={"cookie": f"{COOKIE}={'x' * 43}"})
    assert actions(engine) == []
    browser.post("/login", data={"key": secret})
    browser.post("/logout")
    assert actions(engine) == [("alice", "sign in", "", "done"), ("alice", "sign out", "", "done")]


def actions(engine: Engine) -> list[tuple[str, str, str, str]]:
    """Name, action, target and result of what is in the audit log."""
    entries = [item.entry for item in AuditLog(engine).entries()]
    return [(entry.name, entry.action, entry.target, entry.result) for entry in entries]


def test_a_refused_page_is_in_the_audit_log_without_what_was_typed(advisor: Advisor, engine: Engine) -> None:
    _, secret = KeyStore(engine).new("alice", "read")
    browser = serve(advisor, engine, rate_limit="4/hour")
    for path in ("/secret-of-mine?q=secret", "/knowledge/?q=secret"):
        browser.get(path, headers=PAGE)
    browser.post("/", headers={"origin": "https://evil.example"})
    browser.post("/", headers={"authorization": f"Bearer {secret}"})
    browser.get("/ui/ui.css")
    browser.get("/ui/ui.css")
    assert actions(engine) == [
        ("", "GET /{page}", "", "401"),
        ("", "GET /knowledge/", "", "401"),
        ("", "POST /", "", "403"),
        ("alice", "POST /", "", "403"),
        ("", "GET /{page}", "", "429"),
    ]


def test_whoever_reads_an_answer_on_the_page_is_in_the_audit_log(advisor: Advisor, engine: Engine) -> None:
    _, secret = KeyStore(engine).new("alice", "read")
    answer = advisor.ask(Ask(question="loss is nan"))
    browser = serve(advisor, engine)
    browser.headers["authorization"] = f"Bearer {secret}"
    assert browser.get(f"/?answer={answer.id}", headers=PAGE).status_code == 200
    browser.get("/?answer=what-somebody-typed", headers=PAGE)
    browser.get("/", headers=PAGE)
    assert actions(engine) == [("alice", "read an answer on the page", answer.id, "200")]
