"""Who is let in, and what stands before the pages: the key, the language, headers, addresses. Without the framework."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings
from trainmedic.ui.chat.app import HEADERS, Shell
from trainmedic.ui.chat.entry import COOKIE, LASTS_S, Entry, form_of, own_path, same_site
from trainmedic.ui.chat.mount import LastMount, Receive, Scope, Send
from trainmedic.ui.chat.texts import words
from trainmedic.ui.context import AppContext

PAGE = {"Accept": "text/html"}
NOW = 1_900_000_000.0


def cookie(value: str) -> dict[bytes, bytes]:
    return {b"cookie": f"other=1; {COOKIE}={value}".encode()}


def session(entry: Entry, key: str = "one", now: float = NOW) -> str:
    made = entry.session(key, now)
    assert made is not None
    return made


def test_without_keys_everybody_is_let_in() -> None:
    assert Entry(frozenset()).admits({})


def test_a_shown_key_opens_until_the_session_ends() -> None:
    entry = Entry(frozenset({"one", "two"}))
    value = session(entry)
    assert "one" not in value
    assert entry.admits(cookie(value), NOW + LASTS_S - 1)
    assert not entry.admits(cookie(value), NOW + LASTS_S)
    assert entry.session("three", NOW) is None


def test_a_session_ends_when_its_key_is_taken_away() -> None:
    value = session(Entry(frozenset({"one", "two"})))
    assert not Entry(frozenset({"two"})).admits(cookie(value), NOW)


@pytest.mark.parametrize("value", ["", ".", "9999999999.", "9999999999.0000", "x.y", "９９９.a", "99999999999999.a"])
def test_no_made_up_session_opens(value: str) -> None:
    assert not Entry(frozenset({"one"})).admits({b"cookie": f"{COOKIE}={value}".encode()}, NOW)


def test_a_session_cannot_be_made_longer() -> None:
    entry = Entry(frozenset({"one"}))
    _, _, signed = session(entry).partition(".")
    assert not entry.admits(cookie(f"{int(NOW) + 10 * LASTS_S}.{signed}"), NOW)


def test_the_bearer_key_of_the_api_opens_the_pages_too() -> None:
    entry = Entry(frozenset({"one"}))
    assert entry.admits({b"authorization": b"Bearer one"})
    assert not entry.admits({b"authorization": b"Bearer two"})
    assert not entry.admits({b"authorization": b"Basic one"})


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


def test_a_cookie_of_another_program_on_this_host_shuts_nobody_out() -> None:
    entry = Entry(frozenset({"one"}))
    value = session(entry)
    for other in ('settings={"a": [1, 2]}', 'x="unclosed', "\xe4=1", "a b=c", "=", "$Version=1"):
        assert entry.admits({b"cookie": f"{other}; {COOKIE}={value}; {other}".encode("latin-1")}, NOW)


async def pages(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for the framework's application."""
    await PlainTextResponse("the page")(scope, receive, send)


def client_of(advisor: Advisor, keys: str = "", *, loaded: bool = True) -> TestClient:
    settings = Settings(api_keys=SecretStr(keys))
    app: FastAPI = create_app(advisor, settings)
    shell = Shell(
        AppContext(settings=settings, advisor=advisor, answerer=TemplateAnswerer(advisor), executor=run_inline),
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
    with client_of(advisor, "one,two") as client:
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
    for path in ("/", "/login", "/nowhere"):
        assert open_client.get(path, headers=PAGE, follow_redirects=True).headers["cache-control"] == "no-store"
    assert "immutable" in open_client.get("/ui/ui.css").headers["cache-control"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/nothing", 404), ("GET", "/v1", 404), ("DELETE", "/v1/ask", 405), ("POST", "/livez", 405)],
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
        ({"Accept-Language": "zh-HK,en;q=0.8"}, "/?answer=a", "/zh/?answer=a"),
        ({"Accept-Language": "en", "Cookie": "tm_lang=zh"}, "/", "/zh/"),
        ({}, "/knowledge", "/knowledge/"),
        ({}, "/zh?q=1", "/zh/?q=1"),
    ],
)
def test_addresses_lead_to_their_page(headers: dict[str, str], path: str, target: str, open_client: TestClient) -> None:
    answer = open_client.get(path, headers=headers | PAGE)
    assert answer.status_code in (302, 307)
    assert answer.headers["location"] == target


@pytest.mark.parametrize(
    "headers", [{"Accept-Language": "en-GB"}, {"Accept-Language": "zh", "Cookie": "tm_lang=en"}, {}]
)
def test_everybody_else_stays_on_the_english_page(headers: dict[str, str], open_client: TestClient) -> None:
    assert '<html lang="en">' in open_client.get("/", headers=headers | PAGE).text


def test_a_page_that_is_not_there_is_said_to_be_missing(open_client: TestClient) -> None:
    answer = open_client.get("/nowhere", headers=PAGE)
    assert answer.status_code == 404
    assert words("en")["not_found_title"] in answer.text


def test_no_address_is_fetched_for_a_browser(open_client: TestClient) -> None:
    assert open_client.get("/gradio_api/file=http://127.0.0.1/x").status_code == 404


@pytest.mark.parametrize("folder", ["assets", "static", "svelte", "gradio_api"])
def test_a_name_longer_than_a_disk_has_is_not_looked_for(open_client: TestClient, folder: str) -> None:
    assert open_client.get(f"/{folder}/{'a' * 255}").status_code == 200
    assert open_client.get(f"/{folder}/{'a' * 256}.js").status_code == 404
    assert open_client.get(f"/{folder}/{'损' * 86}").status_code == 404


def test_another_sites_page_can_send_nothing(open_client: TestClient) -> None:
    answer = open_client.post("/gradio_api/queue/join", headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert open_client.post("/gradio_api/queue/join", headers={"Origin": "http://testserver"}).status_code == 200


@pytest.mark.parametrize(("address", "status"), [("127.0.0.1", 200), ("10.0.0.9", 403)])
def test_only_a_trusted_proxy_says_under_which_name_the_page_was_opened(
    address: str, status: int, open_client: TestClient
) -> None:
    client = TestClient(open_client.app, client=(address, 1))
    named = {"Origin": "https://medic.example", "X-Forwarded-Host": "medic.example", "X-Forwarded-Proto": "https"}
    assert client.post("/gradio_api/queue/join", headers=named).status_code == status
    linked = client.get("/", headers=named | PAGE).text
    assert ("https://medic.example/" in linked) == (status == 200)


@pytest.mark.parametrize("path", ["/config", "/theme.css", "/gradio_api/upload", "/gradio_api/queue/join", "/assets/x"])
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
    right = guarded.post("/login", data={"key": "two", "next": "/zh/"})
    assert (right.status_code, right.headers["location"]) == (303, "/zh/")
    assert {"HttpOnly", "SameSite=Strict"} <= set(right.headers["set-cookie"].split("; "))
    assert '<html lang="zh-CN">' in guarded.get("/zh/", headers=PAGE).text


def test_over_https_the_session_is_sent_over_https_only(guarded: TestClient) -> None:
    answer = guarded.post("https://testserver/login", data={"key": "one"})
    assert "Secure" in answer.headers["set-cookie"].split("; ")
