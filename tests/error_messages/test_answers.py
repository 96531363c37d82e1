"""What the messages say reaches the answer, the command line, the REST API and MCP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.ui.cli import main

DIVISIBLE = "generation_batch_size (30) must be divisible by num_generations (8)."


def test_an_answer_lists_the_messages_with_their_places_and_values(advisor: Advisor) -> None:
    answer = advisor.ask(Ask(question=f"GRPO fails, trl==0.21.0\nValueError: {DIVISIBLE}"))
    (message,) = answer.messages
    assert (message.package, message.kind, message.version, message.in_version) == ("trl", "ValueError", "0.21.0", True)
    assert message.evidence.text == DIVISIBLE
    assert {value.name.rpartition(".")[2]: value.value for value in message.values} == {
        "generation_batch_size": "30",
        "num_generations": "8",
    }
    section = next(section for section in answer.sections if section.kind == "message")
    assert f"({message.place.url})" in section.body
    assert "30" in section.body


def test_a_message_is_explained_in_the_language_of_the_question(advisor: Advisor) -> None:
    answer = advisor.ask(Ask(question=f"求助，报错：ValueError: {DIVISIBLE}"))
    section = next(section for section in answer.sections if section.kind == "message")
    assert "抛出" in section.body


def test_a_conversation_without_a_diagnosis_has_no_section(advisor: Advisor) -> None:
    answer = advisor.ask(Ask(question="thanks!"))
    assert not any(section.kind == "message" for section in answer.sections)


def test_explaining_reads_files_too(advisor: Advisor) -> None:
    log = Attachment(name="train.log", content=f"step 1\n[rank0]: ValueError: {DIVISIBLE}\n")
    (message,) = advisor.explain("", (log,)).messages
    assert (message.evidence.attachment, message.evidence.line) == ("train.log", 2)


@pytest.fixture
def client(advisor: Advisor) -> TestClient:
    return TestClient(create_app(advisor, Settings()))


def test_the_api_explains_a_message_in_the_language_of_the_request(client: TestClient) -> None:
    response = client.post("/v1/messages/explain", json={"message": f"ValueError: {DIVISIBLE}", "language": "zh"})
    assert response.status_code == 200
    (message,) = response.json()["messages"]
    assert "抛出" in message["text"]


def test_the_api_refuses_to_explain_nothing(client: TestClient) -> None:
    response = client.post("/v1/messages/explain", json={"message": " "})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_request"


def test_the_command_line_explains_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--language", "en", f"ValueError: {DIVISIBLE}"]) == 0
    printed = capsys.readouterr().out
    assert "divisible by num_generations" in printed
    assert "https://github.com/huggingface/trl/blob/" in printed


def test_the_command_line_explains_a_log_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"[rank0]: ValueError: {DIVISIBLE}\n", encoding="utf-8")
    assert main(["explain", str(log), "--json"]) == 0
    (message,) = json.loads(capsys.readouterr().out)["messages"]
    assert message["evidence"]["attachment"] == str(log)


def test_the_command_line_says_that_a_message_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--language", "en", "nothing that any framework prints"]) == 0
    assert "None of this" in capsys.readouterr().out
