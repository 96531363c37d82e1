"""What only one team knows reaches nobody else, by whatever way somebody asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import inspect

from tests.store.knowledge import HashEmbedder
from tests.ui.test_reload import PAGE
from trainmedic.ingest.items import Discussion, Message
from trainmedic.ingest.threads.local import Local
from trainmedic.ingest.threads.sync import sync
from trainmedic.kb.errors import InvalidSettings
from trainmedic.kb.glossary.terms import BUILT_IN
from trainmedic.kb.store import index
from trainmedic.service.settings import Settings, load_settings
from trainmedic.service.storage.database import open_database
from trainmedic.service.storage.keys import KeyStore, Session, SessionStore
from trainmedic.ui import loading
from trainmedic.ui.app import build_app, database_of
from trainmedic.ui.chat.entry import COOKIE, STORED
from trainmedic.ui.cli import main
from trainmedic.ui.context import AppContext
from trainmedic.ui.loading import read_pages
from trainmedic.ui.teams import TeamDispatch

CANARY = "canaryrelay"
"""A word that is on red's page and in red's thread, and in no request."""
CASE = f"loss-of-the-{CANARY}"
COMMON = "loss-for-everybody"
QUESTION = "why does the frobnicated loss rise after the first step of GRPO?"
FAILURE = """Traceback (most recent call last):
  File "train.py", line 9, in <module>
    trainer.train()
RuntimeError: the frobnicator refused 77 tokens
"""
ACCEPT = {"accept": "application/json, text/event-stream"}
THREAD = Discussion(
    origin="red",
    key="1",
    title="GRPO: the frobnicated loss rises after the first step",
    url=f"https://red.example.org/{CANARY}/1",
    resolved=True,
    messages=(
        Message(text="The frobnicated loss rises after the first step of GRPO.", role="reporter"),
        Message(text=f"The cause is the {CANARY}: restart it.", role="maintainer"),
    ),
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody with a key. All use one client, because one service runs in one event loop."""

    client: TestClient
    key: dict[str, str]

    def request(self, method: str, path: str, *, headers: dict[str, str] | None = None, json: Any = None) -> Any:
        return self.client.request(method, path, headers={**self.key, **(headers or {})}, json=json)

    def get(self, path: str, **more: Any) -> Any:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> Any:
        return self.request("POST", path, **more)


@dataclass(frozen=True, slots=True)
class Everybody:
    """Those with keys of red, of blue and of no team, before one service, and its settings."""

    red: Caller
    blue: Caller
    nobody: Caller
    settings: Settings

    @property
    def others(self) -> tuple[Caller, ...]:
        return self.blue, self.nobody


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Two teams over a package without pages; red has a page and a thread of its own."""
    root = tmp_path_factory.mktemp("teams")
    builtin = root / "kb"
    for name in ("cases", "mechanisms", "rules", "defects", "glossary"):
        (builtin / name).mkdir(parents=True)
    (builtin / "glossary" / "glossary.yaml").write_bytes(BUILT_IN.read_bytes())
    for folder, case in (("red", CASE), ("blue", "loss-of-blue"), ("common", COMMON)):
        (root / folder).mkdir()
        page = PAGE.format(id=case, edition=CANARY if folder == "red" else folder)
        (root / folder / f"{case}.md").write_text(page, encoding="utf-8")
    made = Settings.model_validate(
        {
            "data_dir": root / "data",
            "kb_paths": str(root / "common"),
            "teams": f"red={root / 'red'}, blue={root / 'blue'}",
            "require_key": True,
            "reload_s": 0,
            "readers": 0,
        }
    )
    embedder = HashEmbedder("all-MiniLM-L6-v2 int8")

    def read(folders: Any = (), builtin: Path = builtin) -> loading.Pages:
        return read_pages(folders, builtin)

    with pytest.MonkeyPatch.context() as patched:
        for module in ("loading", "reload"):
            patched.setattr(f"trainmedic.ui.{module}.read_pages", read)
        patched.setattr(loading, "embedder_of", lambda settings: embedder)
        patched.setattr(index, "PREBUILT", root / "no-package")
        patched.setattr("trainmedic.ui.app.load_pages", lambda context: FastAPI())
        store = loading.threads_of(made.of_team("red"), embedder)
        sync("tracker", [THREAD], store, Local(embedder.vectors), lambda vector: {})
        yield made


@pytest.fixture(scope="module")
def everybody(settings: Settings) -> Iterator[Everybody]:
    keys = KeyStore(database_of(settings))
    with TestClient(build_app(settings), base_url="http://127.0.0.1") as client:
        red, blue, nobody = (
            Caller(client, {"authorization": f"Bearer {keys.new(f'of {team}', 'admin', team=team)[1]}"})
            for team in ("red", "blue", "")
        )
        yield Everybody(red, blue, nobody, settings)


def ask(client: Caller, question: str = QUESTION, **more: Any) -> Any:
    response = client.post("/v1/ask", json={"question": question, **more})
    assert response.status_code == 200, response.text
    return response.json()


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_a_team_is_answered_from_its_own_pages_and_threads(everybody: Everybody) -> None:
    answer = ask(everybody.red)
    assert CASE in [cause["case_id"] for cause in answer["causes"]]
    assert [thread["url"] for thread in answer["similar"]] == [THREAD.url]
    assert COMMON in {case["id"] for case in everybody.red.get("/v1/cases").json()["items"]}
    assert CANARY in everybody.red.get(f"/v1/cases/{CASE}").text
    assert CANARY in everybody.red.get("/knowledge/?q=frobnicated").text
    assert CANARY in everybody.red.post("/mcp", json=call("search_cases", query=QUESTION), headers=ACCEPT).text


def test_nothing_of_a_team_is_in_any_response_to_others(everybody: Everybody) -> None:
    answered = ask(everybody.red, conversation_id="c-1")
    everybody.red.post("/v1/feedback", json={"answer_id": answered["id"], "reaction": "unresolved"})
    described = everybody.nobody.get("/openapi.json").json()["paths"]
    for client in everybody.others:
        texts = {}
        for path, operations in described.items():
            for method in operations:
                for body in bodies(path):
                    filled = filled_in(path, answered)
                    response = client.request(method, filled, json=body)
                    assert response.status_code < 500 or path == "/readyz", (method, filled, response.text)
                    texts[method, filled, json.dumps(body)] = response.text.replace(CASE, "")
        for page in ("/", "/knowledge/", "/knowledge/?q=frobnicated", "/zh/knowledge/?q=frobnicated", "/review/"):
            texts["get", page, ""] = client.get(page).text
        for page in (f"/knowledge/?case={CASE}", f"/?answer={answered['id']}"):
            texts["get", page, ""] = client.get(page).text.replace(CASE, "").replace(answered["id"], "")
        for tool in ("search_cases", "diagnose"):
            for name in ("query", "question"):
                texts["mcp", tool, name] = client.post("/mcp", json=call(tool, **{name: QUESTION}), headers=ACCEPT).text
        assert len(texts) >= 40
        assert [request for request, text in texts.items() if CANARY in text.lower()] == []


def bodies(path: str) -> list[Any]:
    question = {"question": QUESTION}
    sent: dict[str, list[Any]] = {
        "/v1/ask": [question, {**question, "conversation_id": "c-1"}, {**question, "top_k": 20}],
        "/v1/search": [{"query": QUESTION, "top_k": 50}],
        "/v1/chat/completions": [{"messages": [{"role": "user", "content": QUESTION}]}],
        "/v1/check": [{"attachments": [{"name": "a.log", "content": QUESTION}]}],
        "/v1/messages/explain": [{"text": QUESTION}],
    }
    return sent.get(path, [None])


def filled_in(path: str, answered: Any) -> str:
    """The path with red's ids in it."""
    for name, value in (
        ("answer_id", answered["id"]),
        ("conversation_id", answered["conversation_id"]),
        ("case_id", CASE),
    ):
        path = path.replace(f"{{{name}}}", value)
    return path.replace("{mechanism_id}", CASE).replace("{rule_id}", CASE).replace("{model_id}", "trainmedic")


def test_others_cannot_tell_a_teams_page_or_answer_from_one_that_never_was(everybody: Everybody) -> None:
    answered = ask(everybody.red)
    for client in everybody.others:
        for path, name in (("/v1/cases/{}", CASE), ("/v1/answers/{}", answered["id"])):
            theirs, none = client.get(path.format(name)), client.get(path.format("never-was"))
            assert theirs.status_code == none.status_code == 404
            errors = [response.json()["error"] for response in (theirs, none)]
            assert errors[0]["message"].replace(name, "") == errors[1]["message"].replace("never-was", "")


def test_what_a_team_asks_is_not_counted_for_others(everybody: Everybody) -> None:
    def seen(client: Caller) -> Any:
        return ask(client, "why?", attachments=[{"name": "a.log", "content": FAILURE}])["sightings"]

    for _ in range(3):
        seen(everybody.red)
    assert seen(everybody.red)["count"] == 3
    assert [seen(client) for client in everybody.others] == [None, None]


def test_conversations_and_answers_are_stored_apart(everybody: Everybody) -> None:
    ask(everybody.red, "a question of red alone")
    stores = {team: everybody.settings.of_team(team).data_dir for team in ("red", "blue")}
    stores["all"] = everybody.settings.data_dir
    files = {team: b"".join(p.read_bytes() for p in root.glob("history.sqlite3*")) for team, root in stores.items()}
    assert CANARY.encode() in files["red"]
    assert CANARY.encode() not in files["blue"] + files["all"]
    assert b"a question of red alone" not in files["blue"] + files["all"]


def test_a_key_of_a_team_that_is_gone_opens_nothing(everybody: Everybody) -> None:
    _, secret = KeyStore(database_of(everybody.settings)).new("of green", "ask", team="green")
    response = everybody.nobody.post(
        "/v1/ask", json={"question": QUESTION}, headers={"authorization": f"Bearer {secret}"}
    )
    assert (response.status_code, response.json()["error"]["message"]) == (403, "the team green has no service here")


def test_a_session_and_a_key_of_different_teams_are_not_mixed(everybody: Everybody) -> None:
    sessions = SessionStore(database_of(everybody.settings))
    session = Session(principal="user:ann", name="ann", scope="ask", team="red")
    cookie = f"{COOKIE}={STORED}{sessions.open(session, timedelta(hours=1))}"
    # The pages look at the session first, the API at the key alone.
    assert CANARY in everybody.blue.get("/knowledge/?q=frobnicated", headers={"cookie": cookie}).text
    cases = everybody.blue.get("/v1/cases", headers={"cookie": cookie})
    assert (cases.status_code, CANARY in cases.text) == (200, False)


def test_a_service_of_a_team_refuses_a_key_of_another(everybody: Everybody) -> None:
    """Behind the dispatch there is the gate: a request that took a wrong turn ends there."""
    app: Any = everybody.blue.client.app
    [dispatch] = [layer for layer in app.user_middleware if layer.cls is TeamDispatch]
    lost = TestClient(dispatch.kwargs["teams"]["red"], base_url="http://127.0.0.1", headers=everybody.blue.key)
    for path in ("/v1/cases", "/knowledge/", "/mcp"):
        response = lost.get(path)
        assert (response.status_code, CANARY in response.text) == (403, False)


def test_bots_ask_for_the_team_of_the_settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    contexts: list[AppContext] = []

    def no_bots(context: AppContext) -> tuple[()]:
        contexts.append(context)
        return ()

    monkeypatch.setattr("trainmedic.ui.app.channels_of", no_bots)
    for team in ("", "red"):
        build_app(settings.model_copy(update={"bots_team": team, "pages": False}))
    assert [CASE in context.advisor.knowledge.published for context in contexts] == [False, True]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"TEAMS": "red"}, "not of the form name=value"),
        ({"TEAMS": "Red Team=/a"}, "is no name of a team"),
        ({"TEAMS": "red=/a", "TEAM": "rad"}, "unknown team 'rad'"),
        ({"TEAMS": "red=/a", "BOTS_TEAM": "blue"}, "bots_team: unknown team 'blue'"),
        ({"TEAMS": "red=/a", "OIDC_TEAMS": "g=blue"}, "oidc_teams: unknown team 'blue'"),
    ],
)
def test_wrong_teams_are_named(monkeypatch: pytest.MonkeyPatch, values: dict[str, str], problem: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(f"TRAINMEDIC_{name}", value)
    with pytest.raises(InvalidSettings, match=problem):
        load_settings()


@pytest.mark.parametrize(
    ("teams", "kb_paths", "reader"),
    [
        ("red=pages/red", "other:pages", "pages of kb_paths"),
        ("red=pages", "pages", "pages of kb_paths"),
        ("red=apart:pages/red", "pages/../pages", "pages of kb_paths"),
        ("red=link/red", "pages", "pages of kb_paths"),
        ("red=pages/link", "pages", "pages of kb_paths"),
        ("red=pages/red,blue=pages", "", "pages of the team blue"),
    ],
)
def test_a_team_whose_pages_others_would_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, teams: str, kb_paths: str, reader: str
) -> None:
    pages(monkeypatch, tmp_path)
    with pytest.raises(InvalidSettings, match=rf"of the team red is read through .*{reader}"):
        load_settings({"teams": teams, "kb_paths": kb_paths})


@pytest.mark.parametrize(
    ("teams", "kb_paths"),
    [
        ("red=pages/red,blue=pages/blue", "pages/common"),
        ("red=pages/red", "pages/redder"),
        ("red=pages/red:pages/red/new", ""),
        ("red=pages/red,blue=pages/red", ""),
        ("red=pages", "pages/common"),
    ],
    ids=["beside", "name", "its own", "shared", "common inside"],
)
def test_folders_that_only_their_teams_read_are_accepted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, teams: str, kb_paths: str
) -> None:
    pages(monkeypatch, tmp_path)
    assert load_settings({"teams": teams, "kb_paths": kb_paths}).team_folders["red"]


def pages(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Work in a folder with ``pages``, ``link`` to it, and ``pages/link`` that leads out of it."""
    monkeypatch.chdir(root)
    for name in ("pages/red", "apart"):
        (root / name).mkdir(parents=True)
    (root / "link").symlink_to(root / "pages")
    (root / "pages" / "link").symlink_to(root / "apart")


def test_a_team_has_a_data_folder_and_a_database_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {"TEAMS": "red=/red", "DATA_DIR": str(tmp_path), "KB_PATHS": "/all"}.items():
        monkeypatch.setenv(f"TRAINMEDIC_{name}", value)
    monkeypatch.setenv("TRAINMEDIC_WEBHOOK_URL", "https://example.org/hook")
    monkeypatch.setenv("TRAINMEDIC_TEAM", "red")
    red = load_settings()
    assert red.data_dir == tmp_path / "teams" / "red"
    assert red.extra_pages == (Path("/all"), Path("/red"))
    assert red.history_url == f"sqlite:///{tmp_path / 'teams' / 'red' / 'history.sqlite3'}"
    assert not red.webhook_url.get_secret_value()
    monkeypatch.setenv("TRAINMEDIC_DATABASE_URL", f"sqlite:///{tmp_path}/all.db")
    assert load_settings().history_url == f"sqlite:///{tmp_path}/all-red.db"


def test_on_postgresql_a_team_has_a_schema_of_its_own(postgres_database: str) -> None:
    everybodys = Settings.model_validate({"teams": "red=/red", "database_url": postgres_database})
    for settings in (everybodys, everybodys.of_team("red")):
        engine = open_database(settings.history_url)
        keys = KeyStore(engine)
        keys.new(f"of {len(keys.all())}", "ask")
        assert [key.name for key in keys.all()] == ["of 0"]
        assert "team_red" in inspect(engine).get_schema_names() or settings is everybodys
        engine.dispose()


def test_a_key_is_made_for_a_team_that_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAINMEDIC_TEAMS", "red=/red")
    assert main(["key", "new", "ann", "--team", "red"]) == 0
    assert main(["key", "new", "ann", "--team", "rad"]) != 0
    assert main(["key", "list"]) == 0
    listed = capsys.readouterr().out
    assert "team red" in listed


def test_a_key_is_not_made_where_no_service_looks_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("TRAINMEDIC_TEAMS", "red=/red")
    monkeypatch.setenv("TRAINMEDIC_TEAM", "red")
    assert main(["key", "new", "ann"]) != 0
    assert "--team red" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_discussions_of_the_fixture_differ_from_the_question_by_the_canary_alone() -> None:
    assert CANARY not in json.dumps([QUESTION, replace(THREAD, url="", messages=THREAD.messages[:1]).title])
