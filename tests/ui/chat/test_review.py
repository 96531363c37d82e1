"""The curator's pages: who may open them, what they show, and what their forms do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path

import pytest
from fastapi import FastAPI
from pydantic import SecretStr
from starlette.testclient import TestClient

from tests.ingest.reading import build
from trainmedic.ingest.drafts.draft import Mark, Passage
from trainmedic.ingest.drafts.store import load_drafts, write_record
from trainmedic.ingest.items import Raw
from trainmedic.ingest.review.state import load_review
from trainmedic.kb.model.report import Text
from trainmedic.service.access.audit_log import AuditLog
from trainmedic.service.access.gate import Gate
from trainmedic.service.access.keys import SessionStore
from trainmedic.service.access.principals import Access
from trainmedic.service.advisor import Advisor
from trainmedic.service.answering import TemplateAnswerer, run_inline
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import open_database
from trainmedic.ui.chat.app import Shell
from trainmedic.ui.chat.mount import LastMount
from trainmedic.ui.chat.texts import words
from trainmedic.ui.context import AppContext
from trainmedic.ui.desk import drafts_folder

PAGE = {"Accept": "text/html"}
HERE = ("127.0.0.1", 40000)
POST_MORTEM = """# Loss of our reward model is NaN <script>alert(1)</script>

## Problem

The loss is NaN from step 1 with OpenRLHF 0.3.4. ![x](https://evil.example/x.png) [y](javascript:alert(1))

## Root cause

The head was left in fp16, because the wrapper <img src=x onerror=alert(1)> casts it.

## Solution

Set `--bf16`.
"""
BUILT_IN = "openrlhf-kto-vanilla-loss-nan"
Open = Callable[..., TestClient]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", kb_paths=str(tmp_path / "team"))


@pytest.fixture
def draft_id(settings: Settings) -> str:
    raw = Raw(origin="reward.md", content=POST_MORTEM, format="markdown")
    return build([raw], drafts_folder(settings)).written[0].id


@pytest.fixture
def client(advisor: Advisor, settings: Settings) -> Iterator[Open]:
    opened: list[TestClient] = []
    database = open_database("sqlite://")

    @cache
    def app_of(keys: str, admin_keys: str, audit_log: AuditLog | None) -> FastAPI:
        secured = settings.model_copy(update={"api_keys": SecretStr(keys), "admin_keys": SecretStr(admin_keys)})
        app: FastAPI = create_app(advisor, secured)
        context = AppContext(
            settings=secured,
            advisor=advisor,
            answerer=TemplateAnswerer(advisor),
            executor=run_inline,
            gate=Gate(secured, Access(secured, None, SessionStore(database)), audit_log=audit_log),
        )
        app.router.routes.append(LastMount("/", Shell(context, lambda _: FastAPI()), app))
        return app

    def of(
        host: tuple[str, int] = HERE, *, keys: str = "", admin_keys: str = "", audit_log: AuditLog | None = None
    ) -> TestClient:
        app = app_of(keys, admin_keys, audit_log)
        opened.append(TestClient(app, follow_redirects=False, client=host, headers=PAGE))
        return opened[-1]

    yield of
    for made in opened:
        made.close()


def hidden_fields(page: str) -> dict[str, str]:
    """The fields of the first form that says for which page it is, else of the first one."""
    fields = dict(re.findall(r'<input type="hidden" name="(token|page)" value="([^"]*)"', page))
    return {name: unescape(value) for name, value in fields.items()}


def test_a_draft_goes_from_the_queue_to_a_published_page(
    client: Open, settings: Settings, draft_id: str, tmp_path: Path
) -> None:
    curator = client()
    queue = curator.get("/review/")
    assert queue.status_code == 200
    assert f'href="/review/{draft_id}"' in queue.text
    assert words("en")["review_draft"] in queue.text
    address = f"/review/{draft_id}"
    entry = curator.get(address)
    assert "reward.md" in entry.text
    done = curator.post(f"{address}/approve", data=hidden_fields(entry.text))
    assert (done.status_code, done.headers["location"]) == (303, address)
    entry = curator.get(address)
    assert words("en")["review_publish"] in entry.text
    assert curator.post(f"{address}/publish", data=hidden_fields(entry.text)).status_code == 303
    (published,) = (tmp_path / "team" / "causes").glob("*.md")
    assert "status: published" in published.read_text(encoding="utf-8")
    assert str(published) in curator.get(address).text
    assert load_review(drafts_folder(settings), draft_id).state == "published"


def test_what_a_curator_does_is_in_the_audit_log(client: Open, draft_id: str) -> None:
    audit_log = AuditLog(open_database("sqlite://"))
    curator = client(admin_keys="chief", audit_log=audit_log)
    curator.post("/login", data={"key": "chief"})
    address = f"/review/{draft_id}"
    curator.get(address)
    curator.post(f"{address}/approve", data={})
    curator.post(f"{address}/reject", data=hidden_fields(curator.get(address).text) | {"reason": "a secret"})
    curator.post("/review/typed/by-somebody", data=hidden_fields(curator.get(address).text))
    curator.post("/review/", data=hidden_fields(curator.get(address).text) | {"answer": "typed"})
    found = [item.entry for item in audit_log.entries()][1:]
    assert [(entry.action, entry.target, entry.result) for entry in found] == [
        ("review approve", "", "403"),
        ("review reject", draft_id, "303"),
        ("review", "", "404"),
        ("review draft", "", "404"),
    ]
    assert {entry.name for entry in found} == {"admin key of the settings"}


def test_a_claim_that_a_case_refutes_is_shown_with_its_line_and_leads_to_the_case(
    client: Open, settings: Settings, draft_id: str
) -> None:
    folder = drafts_folder(settings)
    (made,) = load_drafts(folder)
    mark = Mark(
        kind="refuted",
        claim=Passage(first_line=9, last_line=9, text="Lower the <rate>."),
        page=BUILT_IN,
        why=Text(en="It is NaN before any update.", zh="更新前已是 NaN。"),
        statement=Text(en="A lower rate helps.", zh="降低学习率。"),
    )
    write_record(folder, replace(made, marks=(mark,)))
    page = client().get(f"/review/{draft_id}").text
    assert "<q>Lower the &lt;rate&gt;.</q>" in page
    assert words("en")["review_line"].format(line=9) in page
    assert f'?case={BUILT_IN}">{BUILT_IN}</a>: <q>A lower rate helps.</q> It is NaN before any update.' in page
    assert "<td>1</td>" in client().get("/review/").text


def test_nothing_of_a_write_up_is_markup_on_the_page(client: Open, draft_id: str) -> None:
    page = client().get(f"/review/{draft_id}")
    assert page.text.count("<script") == page.text.count('<script src="/ui/') == 1
    assert "<img" not in page.text
    assert 'href="javascript' not in page.text
    assert "&lt;script&gt;" in page.text
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"


def test_an_edit_is_stored_with_its_problems_and_then_decided_on(
    client: Open, settings: Settings, draft_id: str
) -> None:
    curator = client()
    address = f"/review/{draft_id}"
    fields = hidden_fields(curator.get(address).text)
    assert curator.post(f"{address}/edit", data=fields | {"text": "---\r\nid: x\r\n---\r\n"}).status_code == 303
    entry = curator.get(address)
    assert "field &#39;title&#39; is missing" in entry.text
    refused = curator.post(f"{address}/approve", data=hidden_fields(entry.text))
    assert refused.status_code == 400
    assert "not ready" in refused.text
    for action, more, status in (
        ("merge", {"case": BUILT_IN}, 400),
        ("merge", {"case": "no-such-case"}, 404),
        ("reject", {"reason": " "}, 400),
        ("reject", {"reason": "a typo of ours"}, 303),
    ):
        decided = curator.post(f"/zh{address}/{action}", data=hidden_fields(curator.get(address).text) | more)
        assert decided.status_code == status
    assert "a typo of ours" in curator.get(f"/zh{address}").text
    assert (drafts_folder(settings) / f"{draft_id}.md").read_text(encoding="utf-8") == "---\nid: x\n---\n"


def test_what_was_decided_about_another_text_of_the_page_is_refused(
    client: Open, settings: Settings, draft_id: str
) -> None:
    curator = client()
    fields = hidden_fields(curator.get(f"/review/{draft_id}").text)
    path = drafts_folder(settings) / f"{draft_id}.md"
    path.write_text(path.read_text(encoding="utf-8").replace("fp16", "bf16"), encoding="utf-8")
    refused = curator.post(f"/review/{draft_id}/approve", data=fields)
    assert refused.status_code == 400
    assert "changed meanwhile" in refused.text
    assert load_review(drafts_folder(settings), draft_id).state == "draft"


def test_a_form_without_the_token_of_the_page_changes_nothing(client: Open, settings: Settings, draft_id: str) -> None:
    curator = client()
    address = f"/review/{draft_id}"
    fields = hidden_fields(curator.get(address).text) | {"reason": "x", "case": BUILT_IN, "text": "x"}
    for action in ("approve", "reject", "publish", "merge", "edit"):
        for wrong in (fields | {"token": "x"}, {name: value for name, value in fields.items() if name != "token"}):
            assert curator.post(f"{address}/{action}", data=wrong).status_code == 403
        foreign = curator.post(f"{address}/{action}", data=fields, headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        assert curator.get(f"{address}/{action}").status_code == 405
    assert load_review(drafts_folder(settings), draft_id).state == "draft"


def test_without_keys_only_this_machine_may_review(client: Open, draft_id: str) -> None:
    assert client(("::1", 1)).get("/review/").status_code == 200
    for outside in (client(("10.1.2.3", 1)), client(("testclient", 1))):
        for path in ("/review", "/zh/review/", f"/review/{draft_id}"):
            assert outside.get(path).status_code == 403
        assert outside.post(f"/review/{draft_id}/approve", data={}).status_code == 403
    assert client().get("/review/", headers={"X-Forwarded-For": "10.1.2.3"}).status_code == 403


def test_with_keys_of_users_alone_nobody_may_review(client: Open, draft_id: str) -> None:
    closed = client(keys="one").get("/review/", headers={"Authorization": "Bearer one"})
    assert closed.status_code == 403
    assert "TRAINMEDIC_ADMIN_KEYS" in closed.text
    assert draft_id not in closed.text


@pytest.mark.parametrize("keys", ["", "one"])
def test_administrators_log_in_with_their_key(keys: str, client: Open, draft_id: str) -> None:
    browser = client(("10.1.2.3", 1), keys=keys, admin_keys="chief")
    asked = browser.get(f"/review/{draft_id}")
    assert asked.status_code == 401
    assert f'name="next" value="/review/{draft_id}"' in asked.text
    assert browser.get("/review/", headers={"Authorization": "Bearer one"}).status_code == 401
    assert browser.post(f"/review/{draft_id}/approve", data={}).status_code == 401
    assert browser.post("/login", data={"key": "wrong"}).status_code == 401
    assert browser.post("/login", data={"key": "chief", "next": "/review/"}).headers["location"] == "/review/"
    entry = browser.get(f"/review/{draft_id}")
    assert entry.status_code == 200
    assert browser.post(f"/review/{draft_id}/approve", data=hidden_fields(entry.text)).status_code == 303


def test_a_long_queue_has_pages(client: Open, settings: Settings) -> None:
    for number in range(21):
        text = f"# Incident {number}\n\nIt failed {'again ' * number}in run {number}.\n"
        raw = Raw(origin=f"{number}.md", content=text, format="markdown")
        build([raw], drafts_folder(settings), source=str(number))
    curator = client()
    ids = {draft.id for draft in load_drafts(drafts_folder(settings))}
    pages = [curator.get(f"/review/{query}").text for query in ("", "?from=20", "?from=x")]
    shown = [{draft_id for draft_id in ids if f"/review/{draft_id}" in page} for page in pages]
    assert ([len(each) for each in shown], shown[0] | shown[1], shown[2]) == ([20, 1, 20], ids, shown[0])


def test_what_is_not_there_too_large_or_malformed_is_refused(client: Open, draft_id: str) -> None:
    curator = client()
    missing = curator.get("/review/no-such-draft")
    assert missing.status_code == 404
    assert draft_id in missing.text
    fields = hidden_fields(curator.get(f"/review/{draft_id}").text)
    assert curator.post("/review/no-such-draft/approve", data=fields).status_code == 404
    assert curator.post(f"/review/{draft_id}/delete", data=fields).status_code == 404
    large = curator.post(f"/review/{draft_id}/edit", data=fields | {"text": "x" * 1_100_000})
    assert (large.status_code, words("en")["review_too_large"] in large.text) == (413, True)
    for malformed in (b"&".join([b"token=x"] * 9), b"\xff\xfe"):
        assert curator.post(f"/review/{draft_id}/edit", content=malformed).status_code == 403


def test_questions_that_nothing_explains_are_listed_and_begin_a_draft(
    client: Open, settings: Settings, advisor: Advisor
) -> None:
    for _ in range(2):
        advisor.ask(Ask(question="our quantum reward hamster at /home/jane/x eats the tokenizer, training is purple"))
    curator = client()
    queue = curator.get("/review/")
    assert "hamster" in queue.text
    found = re.search(r'name="answer" value="(\w+)"', queue.text)
    assert found is not None
    fields = hidden_fields(queue.text)
    started = curator.post("/review/", data=fields | {"answer": found[1]})
    assert started.status_code == 303
    entry = curator.get(started.headers["location"])
    assert "hamster" in entry.text
    assert len(load_drafts(drafts_folder(settings))) == 1
    assert curator.post("/review/", data=fields | {"answer": "unknown"}).status_code == 404
    assert curator.post("/review/", data={"answer": found[1]}).status_code == 403
