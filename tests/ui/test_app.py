"""The composition root: everything that a service offers, on one port."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.fake_model import FakeModel, diagnosis, hypothesis
from trainmedic.kb.errors import InvalidSettings
from trainmedic.service.advisor import Advisor
from trainmedic.service.configuration import settings_from
from trainmedic.ui.app import build_app
from trainmedic.ui.cli import main

ACCEPT = {"accept": "application/json, text/event-stream"}


@contextmanager
def serving(folder: Path, tmp_path: Path, **changes: Any) -> Iterator[TestClient]:
    values = {"data_dir": folder, "database_url": f"sqlite:///{tmp_path / 'h.sqlite3'}", "pages": False} | changes
    with TestClient(build_app(settings_from(values)), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def folder(knowledge_folder: Path, knowledge_advisor: Advisor) -> Path:
    return knowledge_folder


def test_every_answer_and_every_feedback_is_counted_once_whatever_channel_it_went_through(
    folder: Path, tmp_path: Path
) -> None:
    question = {"question": "KTO loss is nan"}
    call = {"name": "diagnose", "arguments": question}
    chat = {"model": "trainmedic", "messages": [{"role": "user", "content": question["question"]}]}
    with serving(folder, tmp_path) as client:
        assert client.get("/readyz").json()["status"] == "ok"
        assert client.get("/").json()["error"]["code"] == "not_found", "there are no pages"
        assert (counted(client, "answers"), counted(client, "feedback")) == (0, 0)
        answer = client.post("/v1/ask", json=question).json()
        assert counted(client, "answers") == 1
        client.post("/v1/ask", json={**question, "stream": True})
        assert counted(client, "answers") == 2
        for stream in (False, True):
            client.post("/v1/chat/completions", json={**chat, "stream": stream})
        assert counted(client, "answers") == 4
        client.post("/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}, headers=ACCEPT)
        assert counted(client, "answers") == 5
        client.post("/v1/feedback", json={"answer_id": answer["id"], "reaction": "up"})
        client.post("/v1/feedback", json={"answer_id": "no-such-answer", "reaction": "up"})
        assert counted(client, "feedback") == 1


def counted(client: TestClient, what: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"trainmedic_{what}_total{{"))


def test_a_model_that_is_down_degrades_and_its_answers_are_written_when_it_is_up(folder: Path, tmp_path: Path) -> None:
    with serving(folder, tmp_path, model_base_url="http://127.0.0.1:9/v1") as client:
        ready = client.get("/readyz")
        assert ready.status_code == 200
        assert (ready.json()["status"], ready.json()["down"]) == ("degraded", {"model": "absent"})
    with (
        FakeModel(forms=[diagnosis(hypothesis())]) as fake,
        serving(folder, tmp_path, model_base_url=fake.url) as client,
    ):
        assert client.get("/readyz").json()["status"] == "ok"
        answer = client.post("/v1/ask", json={"question": "OpenRLHF KTO loss is nan with --vanilla_loss"}).json()
        events = client.post("/v1/ask", json={"question": "loss is nan with --vanilla_loss", "stream": True}).text
    assert answer["mode"] == "llm"
    assert events.startswith("event: answer.draft\n"), "the program's own answer, while the model thinks"
    assert events.count("event: answer\n") == 1


def test_half_a_set_of_slack_tokens_is_refused_at_start(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="SLACK_BOT_TOKEN"), serving(folder, tmp_path, slack_bot_token="xoxb-1"):
        pass


BARE = """
import os
import sys
from pathlib import Path
for name in ("mcp", "slack_bolt", "slack_sdk", "aiohttp", "bs4", "markitdown"):
    sys.modules[name] = None  # importing it fails, as without the extra
from fastapi.testclient import TestClient
from trainmedic.service.settings import Settings
from trainmedic.ui.app import build_app
from trainmedic.ui.cli import main
with TestClient(build_app(Settings(data_dir=Path(sys.argv[1])))) as client:
    assert client.post("/v1/ask", json={"question": "KTO loss is nan"}).status_code == 200
    assert client.post("/mcp", json={}).json()["error"]["hint"] == "pip install 'trainmedic[mcp]'"
os.environ |= {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}
sys.exit(main(["slack"]))
"""


def test_without_its_extras_a_channel_says_what_to_install(folder: Path) -> None:
    bare = subprocess.run(
        [sys.executable, "-c", BARE, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "Traceback" not in bare.stderr
    assert "pip install 'trainmedic[slack]'" in bare.stderr
    assert bare.returncode == 2


def test_a_package_of_an_extra_is_named_with_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'bs4'", name="bs4")

    monkeypatch.setattr("trainmedic.ingest.pipeline.run", run)
    assert main(["ingest", str(tmp_path / "a.html")]) == 3
    assert "pip install 'trainmedic[ingest]'" in capsys.readouterr().err
