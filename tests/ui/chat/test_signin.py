"""Sign-in to the pages: at a real identity provider over HTTP, and with stored keys."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import flask
import httpx
import oidc_provider_mock as provider_mock
import pytest
from fastapi import FastAPI
from sqlalchemy.engine import Engine
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from werkzeug.serving import make_server

from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.access.audit_log import AuditLog
from trainmedic.service.access.cookies import SESSION
from trainmedic.service.access.gate import Gate
from trainmedic.service.access.keys import KeyStore, SessionStore
from trainmedic.service.access.principals import Access, user_id
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings, load_settings
from trainmedic.service.storage.database import open_database
from trainmedic.ui.chat.app import Shell
from trainmedic.ui.chat.mount import LastMount
from trainmedic.ui.chat.texts import words
from trainmedic.ui.context import AppContext

pytestmark = pytest.mark.filterwarnings("ignore:get_jwt_config:DeprecationWarning")
"""The provider uses a call of its library that is about to go."""
PAGE = {"accept": "text/html"}
COOKIE = f"__Host-{SESSION}"
HOME = "https://medic.example.org"


@dataclass
class Provider:
    """An identity provider that enforces PKCE, and what it was sent."""

    url: str = ""
    asked: list[dict[str, str]] = field(default_factory=list)
    tokens: int = 0

    def hook(self) -> Any:
        request = flask.request
        if request.path == "/oauth2/authorize" and request.method == "POST":
            self.asked.append(request.args.to_dict())
        if request.path == "/oauth2/token":
            self.tokens += 1
            digest = hashlib.sha256(request.form.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if self.asked[-1].get("code_challenge") != challenge:
                return flask.jsonify({"error": "invalid_grant"}), 400
        return None

    def authorize(self, location: str, user: str) -> str:
        """The user agrees; returns the path that the browser is sent back to."""
        response = httpx.post(location, data={"sub": user})
        assert response.status_code == 302, response.text[:500]
        back = urlsplit(response.headers["location"])
        assert f"{back.scheme}://{back.netloc}" == HOME
        return f"{back.path}?{back.query}"


@pytest.fixture(scope="module")
def _provider() -> Iterator[Provider]:
    users = [
        provider_mock.User(sub="alice", claims={"email": "alice@example.org", "groups": ["training"]}),
        provider_mock.User(sub="chief", claims={"preferred_username": "chief", "groups": ["training", "curators"]}),
        provider_mock.User(sub="guest", claims={"groups": ["visitors"]}),
    ]
    provider = Provider()
    app = provider_mock.app(require_nonce=True, user_claims=users)
    app.before_request(provider.hook)
    server = make_server("localhost", 0, app, threaded=True)
    provider.url = f"http://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield provider
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def provider(_provider: Provider) -> Provider:
    _provider.asked.clear()
    return _provider


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    yield engine
    engine.dispose()


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for the framework's application; says who it was called by."""
    await PlainTextResponse(scope["state"]["principal"].id)(scope, receive, send)


def serve(advisor: Advisor, engine: Engine, **changes: Any) -> TestClient:
    settings = Settings.model_validate({"require_key": True, "public_url": HOME} | changes)
    gate = Gate(settings, Access(settings, KeyStore(engine), SessionStore(engine)), audit_log=AuditLog(engine))
    app: FastAPI = create_app(advisor, settings, gate=gate)
    context = AppContext(
        settings=settings, advisor=advisor, answerer=TemplateAnswerer(advisor), executor=run_inline, gate=gate
    )
    shell = Shell(context, lambda context: FastAPI())
    shell._pages = pages
    app.router.routes.append(LastMount("/", shell, app))
    return TestClient(app, base_url=HOME, follow_redirects=False)


def oidc(provider: Provider, **changes: Any) -> dict[str, Any]:
    return {
        "oidc_issuer": provider.url,
        "oidc_client_id": "trainmedic",
        "oidc_client_secret": "client-secret",
        "oidc_groups": "training",
        "oidc_admin_groups": "curators",
    } | changes


def test_a_user_signs_in_and_out_with_pkce_state_and_nonce(
    provider: Provider, advisor: Advisor, engine: Engine
) -> None:
    browser = serve(advisor, engine, **oidc(provider))
    asked = browser.get("/knowledge/?q=nan", headers=PAGE)
    assert asked.status_code == 401
    assert 'href="/auth/login?next=%2Fknowledge%2F%3Fq%3Dnan"' in asked.text
    begun = browser.get("/auth/login?next=/knowledge/?q=nan")
    sent = {name: values[0] for name, values in parse_qs(urlsplit(begun.headers["location"]).query).items()}
    assert (sent["response_type"], sent["code_challenge_method"]) == ("code", "S256")
    assert sent["redirect_uri"] == f"{HOME}/auth/callback"
    assert len(sent["state"]) >= 16
    assert len(sent["nonce"]) >= 16
    assert begun.headers["set-cookie"].startswith("__Host-trainmedic_signin=")
    assert {"httponly", "samesite=lax", "secure", "path=/"} <= attributes(begun.headers["set-cookie"])
    done = browser.get(provider.authorize(begun.headers["location"], "alice"))
    assert (done.status_code, done.headers["location"]) == (303, "/knowledge/?q=nan")
    session = next(cookie for cookie in done.headers.get_list("set-cookie") if cookie.startswith(COOKIE))
    assert {"httponly", "samesite=lax", "secure", "path=/"} <= attributes(session)
    assert browser.get("/config").text == user_id(provider.url, "alice")
    assert browser.get("/review/", headers=PAGE).status_code == 401, "alice is no administrator"
    secret = browser.cookies[COOKIE]
    out = browser.post("/logout")
    assert words("en")["signed_out_title"] in out.text
    assert f"{provider.url}/oauth2/end_session?client_id=trainmedic" in out.text
    assert browser.get("/config").status_code == 401
    stolen = serve(advisor, engine, **oidc(provider))
    assert stolen.get("/config", headers={"cookie": f"{COOKIE}={secret}"}).status_code == 401
    entries = [item.entry for item in AuditLog(engine).entries()]
    assert [(entry.action, entry.name) for entry in entries if entry.action.startswith("sign")] == [
        ("sign in", "alice@example.org"),
        ("sign out", "alice@example.org"),
    ]


def attributes(cookie: str) -> set[str]:
    return {part.strip().lower() for part in cookie.split(";")[1:]}


def test_groups_decide_who_is_admitted_and_who_administers(
    provider: Provider, advisor: Advisor, engine: Engine
) -> None:
    chief, guest = serve(advisor, engine, **oidc(provider)), serve(advisor, engine, **oidc(provider))
    chief.get(provider.authorize(chief.get("/auth/login").headers["location"], "chief"))
    assert chief.get("/review", headers=PAGE).status_code == 307
    refused = guest.get(provider.authorize(guest.get("/auth/login").headers["location"], "guest"))
    assert refused.status_code == 403
    assert words("en")["oidc_not_admitted"] in refused.text
    assert guest.get("/config").status_code == 401


def test_an_answer_of_the_provider_works_only_in_the_browser_that_asked_and_only_once(
    provider: Provider, advisor: Advisor, engine: Engine
) -> None:
    browser, other = serve(advisor, engine, **oidc(provider)), serve(advisor, engine, **oidc(provider))
    back = provider.authorize(browser.get("/auth/login").headers["location"], "alice")
    assert other.get(back).status_code == 403, "the answer was accepted in another browser"
    before = provider.tokens
    assert browser.get(back.replace("state=", "state=x")).status_code == 403
    assert provider.tokens == before, "the code was spent although the state was wrong"
    fresh = provider.authorize(browser.get("/auth/login").headers["location"], "alice")
    assert browser.get(fresh).status_code == 303
    assert browser.get(fresh).status_code == 403, "the answer was accepted twice"


def test_a_code_without_the_verifier_that_belongs_to_it_is_worthless(
    provider: Provider, advisor: Advisor, engine: Engine
) -> None:
    browser = serve(advisor, engine, **oidc(provider))
    back = provider.authorize(browser.get("/auth/login").headers["location"], "alice")
    provider.asked[-1]["code_challenge"] = "of-another-browser"
    assert browser.get(back).status_code == 403
    assert browser.get("/config").status_code == 401


def test_failed_sign_ins_use_up_the_attempts(provider: Provider, advisor: Advisor, engine: Engine) -> None:
    browser = serve(advisor, engine, **oidc(provider, rate_limit_login="2/hour"))
    answers = [browser.get("/auth/callback?code=x&state=y") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [403, 403, 429]
    assert words("en")["login_too_many"] in answers[2].text


def test_a_provider_that_is_down_is_said_to_be(advisor: Advisor, engine: Engine) -> None:
    browser = serve(advisor, engine, **oidc(Provider("http://localhost:9")))
    assert words("en")["oidc_unreachable"] in browser.get("/auth/login").text
    assert "https://evil.example" not in browser.get("/auth/login?next=https://evil.example").headers.get(
        "location", ""
    )


@pytest.mark.parametrize(
    ("missing", "value", "problem"),
    [
        ("oidc_client_id", "", "oidc_client_id"),
        ("public_url", "", "public_url"),
        ("oidc_issuer", "http://idp.example.org", "https"),
    ],
)
def test_half_a_configuration_is_refused_at_start(missing: str, value: str, problem: str, provider: Provider) -> None:
    flags = {"oidc_issuer": "https://idp.example.org", "oidc_client_id": "x", "public_url": HOME} | {missing: value}
    with pytest.raises(InvalidSettings, match=problem):
        load_settings(flags)


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
    thief, owner = serve(advisor, engine), serve(advisor, engine)
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
    browser = serve(advisor, engine, rate_limit_login="2/hour", rate_limit="8/hour")
    attempts = [browser.post("/login", data={"key": f"guess{number}"}) for number in range(3)]
    assert [attempt.status_code for attempt in attempts] == [401, 401, 429]
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
    browser = serve(advisor, engine, rate_limit="6/hour")
    for path in ("/secret-of-mine?q=secret", "/knowledge/?q=secret", "/review/secret", "/zh/review/secret"):
        browser.get(path, headers=PAGE)
    browser.post("/", headers={"origin": "https://evil.example"})
    browser.post("/", headers={"authorization": f"Bearer {secret}"})
    browser.get("/ui/ui.css")
    browser.get("/ui/ui.css")
    assert actions(engine) == [
        ("", "GET /{page}", "", "401"),
        ("", "GET /knowledge/", "", "401"),
        ("", "GET /review/", "", "403"),
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
