"""Who is let in, and what stands before the pages: the key, the language, headers, addresses. Without the framework."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy.engine import Engine
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from tests.every_case import every_case
from trainmedic.service.access.cookies import (
    BROWSER,
    SESSION,
    Cookies,
    browser_id,
    cookie,
    form_of,
    own_path,
    same_site,
)
from trainmedic.service.access.gate import Gate
from trainmedic.service.access.keys import KeyStore, SessionStore
from trainmedic.service.access.principals import Access
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import open_database
from trainmedic.ui.chat.app import HEADERS, Shell
from trainmedic.ui.chat.guard import Tabs
from trainmedic.ui.chat.mount import LastMount, Receive, Scope, Send
from trainmedic.ui.chat.texts import words
from trainmedic.ui.context import AppContext

PAGE = {"Accept": "text/html"}


SHARED = "a-key-of-the-settings"


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil", "javascript:x", "x", "", "/a\nb", "//["],
)
def test_nobody_is_sent_on_to_another_site(target: str) -> None:
    assert own_path(target) == "/"


def test_own_pages_with_their_query_are_gone_on_to() -> None:
    assert own_path("/knowledge/?case=a-b") == "/knowledge/?case=a-b"
    assert form_of(b"key=a%2Bb&next=%2Fzh%2F") == ("a+b", "/zh/")
    assert form_of(b"\xff") == ("", "/")
    assert form_of(b"&".join([b"key=one"] * 9)) == ("", "/")


def test_only_our_own_pages_change_something() -> None:
    ours = ("a.example", "")
    assert same_site({}, ours)
    assert same_site({b"origin": b"https://a.example"}, ours)
    assert not same_site({b"origin": b"https://b.example"}, ours)
    assert not same_site({b"origin": b"null"}, ours)
    assert not same_site({b"origin": b"http://["}, ours)


def test_a_cookie_of_another_program_on_this_host_hides_none_of_ours() -> None:
    for other in ('settings={"a": [1, 2]}', 'x="unclosed', "\xe4=1", "a b=c", "=", "$Version=1"):
        headers = {b"cookie": f"{other}; {SESSION}=secret; {other}".encode("latin-1")}
        assert cookie(headers, SESSION) == "secret"


@pytest.mark.parametrize(
    ("public_url", "scheme", "secure"),
    [("", "http", False), ("", "https", True), ("https://medic.example", "http", True), ("http://x", "http", False)],
)
@pytest.mark.parametrize("name", [SESSION, BROWSER])
def test_over_https_a_cookie_goes_over_https_to_this_host_alone(
    name: str, public_url: str, scheme: str, secure: bool
) -> None:
    cookies, scope = Cookies(public_url), {"scheme": scheme, "headers": []}
    pair, *attributes = cookies.header(scope, name, "secret", 60).split("; ")
    assert pair == (f"__Host-{name}=secret" if secure else f"{name}=secret")
    assert ("Secure" in attributes) == secure
    assert {"Path=/", "HttpOnly"} <= set(attributes)
    sent = f"__Host-{name}=prefixed; {name}=plain".encode()
    assert cookies.value({**scope, "headers": [(b"cookie", sent)]}, name) == ("prefixed" if secure else "plain")


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for the framework's application; says whose what it is asked would be."""
    await PlainTextResponse(scope["state"]["owner"])(scope, receive, send)


@cache
def database() -> Engine:
    """Sessions of all tests."""
    return open_database("sqlite://")


def client_of(advisor: Advisor, keys: str = "", *, loaded: bool = True, **changes: Any) -> TestClient:
    settings = Settings.model_validate({"api_keys": keys, **changes})
    gate = Gate(settings, Access(settings, KeyStore(database()), SessionStore(database())))
    app: FastAPI = create_app(advisor, settings, gate=gate)
    shell = Shell(
        AppContext(
            settings=settings, advisor=advisor, answerer=TemplateAnswerer(advisor), executor=run_inline, gate=gate
        ),
        lambda context: FastAPI(),
    )
    app.router.routes.append(LastMount("/", shell, app))
    if loaded:
        shell._pages = pages
    return TestClient(app, follow_redirects=False)


@pytest.fixture
def open_client(advisor: Advisor) -> Iterator[TestClient]:
    with client_of(advisor) as client:
        yield client


@pytest.fixture
def guarded(advisor: Advisor) -> Iterator[TestClient]:
    with client_of(advisor, f"one,{SHARED}") as client:
        yield client


def test_every_answer_of_the_pages_says_what_may_run(open_client: TestClient) -> None:
    for path in ("/", "/zh/", "/ui/ui.js", "/login"):
        headers = open_client.get(path, headers=PAGE).headers
        for name, value in HEADERS:
            assert headers[name.decode()] == value.decode()
    assert (
        "unsafe-inline" not in dict(HEADERS)[b"content-security-policy"].decode().split("script-src")[1].split(";")[0]
    )


def test_a_cache_gives_nobody_what_another_reader_was_shown(open_client: TestClient) -> None:
    known = open_client.get("/knowledge/", headers=PAGE).headers
    assert (known["cache-control"], known["vary"]) == ("no-cache", "Cookie, Authorization")
    assert words("en")["not_found_title"] in open_client.get("/nowhere", headers=PAGE).text
    for path in ("/", "/login", "/nowhere"):
        assert open_client.get(path, headers=PAGE, follow_redirects=True).headers["cache-control"] == "no-store"
    assert "immutable" in open_client.get("/ui/ui.css").headers["cache-control"]


@every_case(
    ("method", "path", "status"), [("GET", "/v1/nothing", 404), ("DELETE", "/v1/ask", 405), ("POST", "/livez", 405)]
)
def test_errors_of_the_api_stay_its_own(method: str, path: str, status: int, open_client: TestClient) -> None:
    answer = open_client.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) >= {"code", "message"}
    assert open_client.get("/livez").json() == {"status": "ok"}


def test_while_the_pages_load_the_reader_is_told_and_the_api_answers(advisor: Advisor) -> None:
    with client_of(advisor, loaded=False) as client:
        answer = client.get("/zh/", headers=PAGE)
        assert answer.status_code == 503
        assert words("zh")["loading"] in answer.text
        assert 'http-equiv="refresh"' in answer.text
        assert client.post("/v1/ask", json={"question": "loss is nan"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "path", "target"),
    [
        ({"Accept-Language": "en-GB"}, "/", ""),
        ({"Accept-Language": "zh", "Cookie": "tm_lang=en"}, "/", ""),
        ({"Accept-Language": "zh-HK,en;q=0.8"}, "/?answer=a", "/zh/?answer=a"),
        ({"Accept-Language": "en", "Cookie": "tm_lang=zh"}, "/", "/zh/"),
        ({}, "/knowledge", "/knowledge/"),
        ({}, "/zh?q=1", "/zh/?q=1"),
    ],
)
def test_addresses_lead_to_their_page(headers: dict[str, str], path: str, target: str, open_client: TestClient) -> None:
    answer = open_client.get(path, headers=headers | PAGE)
    assert answer.status_code in ((302, 307) if target else (200,))
    assert answer.headers.get("location", "") == target


@pytest.mark.parametrize("folder", ["assets", "static"])
def test_a_name_longer_than_a_disk_has_is_not_looked_for(open_client: TestClient, folder: str) -> None:
    assert open_client.get(f"/{folder}/{'a' * 255}").status_code == 200
    assert open_client.get(f"/{folder}/{'a' * 256}.js").status_code == 404
    assert open_client.get(f"/{folder}/{'损' * 86}").status_code == 404


def test_another_sites_page_can_send_nothing(open_client: TestClient) -> None:
    statuses = [
        open_client.post("/gradio_api/queue/join", json=JOIN, headers={"Origin": origin}).status_code
        for origin in ("https://evil.example", "http://testserver")
    ]
    assert statuses == [403, 200]


@pytest.mark.parametrize(("address", "status"), [("127.0.0.1", 200), ("10.0.0.9", 403)])
def test_only_a_trusted_proxy_says_under_which_name_the_page_was_opened(
    address: str, status: int, advisor: Advisor
) -> None:
    client = TestClient(client_of(advisor, trusted_proxies="127.0.0.1").app, client=(address, 1))
    named = {"Origin": "https://medic.example", "X-Forwarded-Host": "medic.example", "X-Forwarded-Proto": "https"}
    assert client.post("/gradio_api/queue/join", json=JOIN, headers=named).status_code == status
    linked = client.get("/", headers=named | PAGE).text
    assert ("https://medic.example/" in linked) == (status == 200)


@every_case("path", ["/config", "/theme.css", "/gradio_api/upload", "/gradio_api/queue/join", "/assets/x"])
def test_without_a_key_every_part_of_the_pages_is_refused(path: str, guarded: TestClient) -> None:
    for method in ("GET", "POST"):
        answer = guarded.request(method, path)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "unauthorized"


def test_a_reader_without_a_key_is_asked_for_it_and_then_goes_where_he_wanted(guarded: TestClient) -> None:
    asked = guarded.get("/knowledge/?case=a%22b", headers=PAGE)
    assert asked.status_code == 401
    assert 'name="next" value="/knowledge/?case=a%22b"' in asked.text
    wrong = guarded.post("/login", data={"key": "three", "next": "/zh/"})
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers
    right = guarded.post("/login", data={"key": SHARED, "next": "/zh/"})
    assert (right.status_code, right.headers["location"]) == (303, "/zh/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(right.headers["set-cookie"].split("; "))
    assert '<html lang="zh-CN">' in guarded.get("/zh/", headers=PAGE).text


def test_signing_out_ends_the_session_of_a_key_of_the_settings(guarded: TestClient) -> None:
    guarded.post("/login", data={"key": SHARED})
    taken = {"cookie": f"{SESSION}={guarded.cookies[SESSION]}"}
    assert SHARED not in taken["cookie"]
    assert guarded.get("/config", headers=taken).status_code == 200
    again = guarded.post("/login", data={"key": SHARED}).headers["set-cookie"]
    assert guarded.post("/logout", headers=taken).status_code == 303
    guarded.cookies.clear()
    assert guarded.get("/config", headers=taken).status_code == 401
    assert guarded.get("/config", headers={"cookie": again.partition(";")[0]}).status_code == 200


def test_a_session_ends_when_its_key_is_taken_away(guarded: TestClient, advisor: Advisor) -> None:
    guarded.post("/login", data={"key": SHARED})
    session = {"cookie": f"{SESSION}={guarded.cookies[SESSION]}"}
    assert client_of(advisor, "one").get("/config", headers=session).status_code == 401
    assert client_of(advisor, SHARED).get("/config", headers=session).status_code == 200


def test_no_made_up_session_opens(guarded: TestClient) -> None:
    for value in ("", ".", "9999999999.0000", "x" * 43, "s.invented"):
        assert guarded.get("/config", headers={"cookie": f"{SESSION}={value}"}).status_code == 401


def test_a_browser_without_a_key_is_known_again_and_keeps_what_it_has(open_client: TestClient) -> None:
    header = open_client.get("/", headers=PAGE).headers["set-cookie"]
    assert header.startswith(f"{BROWSER}=")
    assert "SameSite=Lax" in header, "a link from another site must not give a browser a new name"
    assert "set-cookie" not in open_client.get("/", headers=PAGE).headers
    assert open_client.get("/config").text == browser_id(open_client.cookies[BROWSER])


ROUTES = (
    "/monitoring/summary",
    "/gradio_api/openapi.json",
    "/gradio_api/token",
    "/gradio_api/file=HTTP://127.0.0.1/x",
    "/gradio_api/file/http://127.0.0.1/x",
    "/gradio_api/deep_link?session_hash=a",
    "/gradio_api/custom_component/a/client/component/x.js",
    "/gradio_api/stream/a/1/2/playlist.m3u8",
    "/zh/gradio_api/vibe-code",
    "/svelte/x.js",
    "/robots.txt",
    "/a-route-of-the-next-release",
)


def test_no_route_of_the_framework_is_there_that_the_pages_do_not_use(open_client: TestClient) -> None:
    for path in ROUTES:
        for method in ("GET", "HEAD"):
            assert open_client.request(method, path).status_code == 404, path


TAB = "of-a-browser"
JOIN = {"data": [], "session_hash": TAB}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/gradio_api/queue/join", JOIN),
        ("POST", "/zh/gradio_api/queue/join", JOIN),
        ("POST", "/gradio_api/cancel", {"session_hash": TAB, "fn_index": 1, "event_id": "x"}),
        ("GET", f"/gradio_api/queue/data?session_hash={TAB}", None),
        ("GET", f"/gradio_api/heartbeat/{TAB}", None),
    ],
)
def test_a_tab_is_of_whoever_opened_it(method: str, path: str, body: object, guarded: TestClient) -> None:
    def status(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return guarded.request(method, path, json=body, headers=headers).status_code

    assert guarded.post("/gradio_api/queue/join", json=JOIN, headers={"Authorization": "Bearer one"}).is_success
    assert [status("one"), status(SHARED), status("one")] == [200, 403, 200]


def test_without_keys_a_tab_is_of_its_browser(open_client: TestClient) -> None:
    stranger = TestClient(open_client.app)
    for browser in (open_client, stranger):
        browser.get("/", headers=PAGE)
    assert open_client.post("/gradio_api/queue/join", json=JOIN).status_code == 200
    assert stranger.post("/gradio_api/queue/join", json=JOIN).status_code == 403


def test_the_memory_of_tabs_is_bounded() -> None:
    tabs = Tabs(most=10)
    for number in range(100):
        tabs.claim(f"tab{number}", "key:a")
    assert len(tabs._owners) == 10
