"""The audit log says who did what, and neither it nor any other log holds what anybody wrote."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import Engine
from starlette.testclient import TestClient

from tests.channels.fakes import FakeDingTalk, FakeFeishu, served
from tests.ingest.reading import build
from trainmedic.ingest.items import Raw
from trainmedic.service.access.audit_log import AuditEntry, AuditLog
from trainmedic.service.access.gate import Gate
from trainmedic.service.access.keys import KeyStore
from trainmedic.service.access.principals import Access
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.configuration import load_settings
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.pipeline import Draft
from trainmedic.service.settings import Settings
from trainmedic.service.storage.database import open_database
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.app import build_app
from trainmedic.ui.cli import main
from trainmedic.ui.desk import drafts_folder

NOW = datetime(2026, 11, 23, tzinfo=UTC)
CANARY = "zqcanary7719"
MCP = {"accept": "application/json, text/event-stream"}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_database(f"sqlite:///{tmp_path / 'service.sqlite3'}")
    yield engine
    engine.dispose()


def test_the_audit_log_names_who_what_and_the_result(advisor: Advisor, engine: Engine) -> None:
    keys, audit_log = KeyStore(engine), AuditLog(engine)
    reader, asker = keys.new("reader", "read"), keys.new("asker", "ask")
    settings = Settings(require_key=True)
    app = create_app(
        Advisor(advisor.knowledge, advisor.read, Memory(History(engine))),
        settings,
        gate=Gate(settings, Access(settings, keys), None, audit_log),
    )
    as_asker = TestClient(app, headers={"authorization": f"Bearer {asker[1]}"}, client=("10.0.0.1", 1))
    as_reader = TestClient(app, headers={"authorization": f"Bearer {reader[1]}"}, client=("10.0.0.2", 1))
    nobody = TestClient(app, client=("10.0.0.3", 1))
    question = {"question": f"loss is nan {CANARY}", "conversation_id": "c"}
    answer = as_asker.post("/v1/ask", json=question)
    as_reader.get(f"/v1/answers/{answer.json()['id']}")
    as_reader.get("/v1/cases")
    for _ in range(3):
        as_reader.post("/v1/ask", json=question)
        nobody.post("/v1/ask", json=question)
    as_asker.delete("/v1/conversations/c")
    as_asker.delete(f"/v1/conversations/{CANARY}")
    found = [item.entry for item in audit_log.entries()]
    assert [(entry.who, entry.action, entry.target, entry.result) for entry in found] == [
        (f"key:{asker[0].id}", "POST /v1/ask", "", "200"),
        (f"key:{reader[0].id}", "GET /v1/answers/{answer_id}", answer.json()["id"], "200"),
        (f"key:{reader[0].id}", "POST /v1/ask", "", "403"),
        ("", "POST /v1/ask", "", "401"),
        (f"key:{asker[0].id}", "DELETE /v1/conversations/{conversation_id}", "c", "204"),
        (f"key:{asker[0].id}", "DELETE /v1/conversations/{conversation_id}", "", "404"),
    ]
    assert found[0].trace_id == answer.headers["x-trace-id"]
    assert (found[0].name, found[0].address) == ("asker", "10.0.0.1")
    assert CANARY not in json.dumps([asdict(entry) for entry in found])


def test_the_audit_log_is_read_by_person_and_time_and_forgets_what_is_old(engine: Engine) -> None:
    audit_log = AuditLog(engine)
    for days, who in ((40, "key:a"), (2, "key:b"), (1, "key:a")):
        audit_log.add(AuditEntry(who=who, action="x" * 500, result="200"), NOW - timedelta(days=days))
    assert [item.entry.who for item in audit_log.entries()] == ["key:a", "key:b", "key:a"]
    assert [item.at for item in audit_log.entries("key:a", NOW - timedelta(days=7))] == [NOW - timedelta(days=1)]
    assert len(audit_log.entries(limit=1)[0].entry.action) == 100
    assert audit_log.forget(timedelta(days=30), NOW) == 1
    assert len(audit_log.entries()) == 2


def test_the_audit_log_is_read_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path))
    assert main(["admin", "log"]) == 0
    assert main(["admin", "key", "new", "ci"]) == 0
    key_id = capsys.readouterr().out.split("_")[1]
    assert main(["admin", "log", "--since", "1h"]) == 0
    assert f"done  key new  {key_id}  cli" in capsys.readouterr().out
    assert main(["admin", "log", "--json", "--who", "cli"]) == 0
    assert json.loads(capsys.readouterr().out)["action"] == "key new"


WRITE_UP = "# Our loss is NaN\n\n## Root cause\n\nThe head was left in fp16.\n\n## Solution\n\nSet `--bf16`.\n"


def listed(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, str]]:
    """Who, action and target of what is in the audit log."""
    capsys.readouterr()
    assert main(["admin", "log", "--json"]) == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [(entry["who"], entry["action"], entry["target"]) for entry in entries]


def test_what_is_done_on_the_command_line_is_in_the_audit_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path))
    folder = drafts_folder(load_settings())
    draft = build([Raw(origin="a.md", content=WRITE_UP, format="markdown")], folder).written[0].id
    assert main(["review", "show", draft]) == 0
    assert main(["review", "reject", draft[-8:], "--reason", CANARY]) == 0
    assert main(["review", "approve", "no-such-draft"]) != 0
    assert listed(capsys) == [("cli", "review reject", draft)]


def test_a_conversation_that_is_deleted_on_the_command_line_is_in_the_audit_log(
    knowledge_loaded: None,
    advisor: Advisor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRAINMEDIC_DATA_DIR", str(tmp_path))
    history = History(open_database(f"sqlite:///{tmp_path / 'history.sqlite3'}"))
    answer = Advisor(advisor.knowledge, advisor.read, Memory(history)).ask(Ask(question="loss is nan"))
    assert main(["admin", "history", "delete", answer.id]) == 0
    assert main(["admin", "history", "delete", CANARY]) != 0
    assert listed(capsys) == [("cli", "history delete", answer.conversation_id)]


class Failing(Advisor):
    """Fails with what the user wrote in the exception."""

    def snapshot(self) -> Advisor:
        return self

    def prepare(self, request: Ask, trace_id: str = "") -> Draft:
        raise RuntimeError(request.question)


def test_no_log_of_any_channel_holds_what_a_user_wrote(
    knowledge_loaded: None,
    knowledge_folder: Path,
    knowledge_advisor: Advisor,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG, "trainmedic")
    url = f"sqlite:///{tmp_path / 'h.sqlite3'}"
    settings = Settings.model_validate({"data_dir": knowledge_folder, "database_url": url, "pages": False})
    with TestClient(build_app(settings), base_url="http://127.0.0.1") as client:
        exercise(client)
    broken = Failing(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(History("sqlite://")))
    failing = TestClient(create_app(broken, Settings()), raise_server_exceptions=False)
    assert failing.post("/v1/ask", json={"question": CANARY}).status_code == 500
    feishu, dingtalk = FakeFeishu(), FakeDingTalk()
    for advisor in (knowledge_advisor, broken):
        for platform, path, event in (
            (feishu, "/feishu/events", feishu.event(feishu.text(f"{CANARY} loss is nan"))),
            (dingtalk, "/dingtalk/events", dingtalk.message(f"{CANARY} loss is nan")),
        ):
            asyncio.run(send(platform, advisor, path, event))
    logged = [
        record for record in caplog.records if record.name.startswith("trainmedic") or record.levelno >= logging.WARNING
    ]
    assert any("unexpected error" in record.getMessage() for record in logged)
    texts = [f"{record.getMessage()} {record.exc_text or ''}" for record in logged]
    printed = capsys.readouterr()
    assert CANARY not in "\n".join((*texts, printed.out, printed.err))
    kept = [asdict(item.entry) for item in AuditLog(open_database(url)).entries()]
    assert {entry["action"] for entry in kept} >= {"POST /v1/ask", "POST /mcp"}
    assert CANARY not in json.dumps(kept)


async def send(platform: Any, advisor: Advisor, path: str, event: dict[str, Any]) -> None:
    async with served(platform, advisor) as client:
        headers, body = platform.request(event)
        assert (await client.post(path, headers=headers, content=body)).status_code == 200


def exercise(client: TestClient) -> None:
    """Every call that takes a text, with the canary in each of its fields, and calls that fail because of it."""
    file = {"name": f"{CANARY}.log", "content": f"{CANARY}\nRuntimeError: {CANARY}\nloss: nan"}
    for path, body in (
        ("/v1/ask", {"question": CANARY, "attachments": [file], "conversation_id": CANARY}),
        ("/v1/ask", {"question": CANARY, "stream": True}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": CANARY}]}),
        ("/v1/check", {"attachments": [file]}),
        ("/v1/audit", {"attachments": [file], "question": CANARY}),
        ("/v1/diff", {"good": [file], "bad": [file]}),
        ("/v1/messages/explain", {"message": CANARY}),
        ("/v1/search", {"query": CANARY, "filters": {"framework": CANARY}}),
        ("/v1/feedback", {"answer_id": CANARY, "reaction": "up", "comment": CANARY}),
        ("/v1/ask", {CANARY: CANARY}),
        ("/mcp", call("diagnose", {"question": CANARY, "attachments": [file]})),
        ("/mcp", call("check_config", {CANARY: CANARY})),
        ("/mcp", call(CANARY, {})),
        ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": CANARY}),
        (f"/v1/{CANARY}", {}),
    ):
        client.post(path, json=body, headers=MCP)
    for path in (f"/v1/answers/{CANARY}", f"/v1/cases/{CANARY}", f"/{CANARY}", f"/livez?{CANARY}"):
        client.get(path)
    client.delete(f"/v1/conversations/{CANARY}x")


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
