"""Audits over the REST API, the client and MCP's shapes, and the defects beside an answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.defects.values import ENTRY, folder
from tests.every_case import every_case
from trainmedic.kb.model.place import Attachment
from trainmedic.kb.pages.defect import defects_of, load_defects
from trainmedic.kb.parse.pipeline import parse
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.ui.chat.evidence import panel
from trainmedic.ui.mcp.shapes import result_of

ALWAYS = ENTRY.replace("trl-3435", "trl-99").replace('  when: option("importance_sampling_level") == "sequence"\n', "")
SEQUENCE = "```python\nGRPOConfig(importance_sampling_level='sequence')\n```"
SEQUENCE = "```python\nGRPOConfig(importance_sampling_level='sequence')\n```"
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"


@pytest.fixture
def medic(knowledge_advisor: Advisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Advisor:
    """An advisor that knows two defects of trl 0.20."""
    root = folder(tmp_path / "kb", ENTRY + ALWAYS)
    monkeypatch.setattr("trainmedic.kb.pages.defect.DEFECTS", root)
    monkeypatch.setattr("trainmedic.service.ranking.knowledge.defects_told", lambda cases, rules: ())
    return Advisor(replace(knowledge_advisor.knowledge, defects=load_defects()), parse)


@pytest.fixture
def client(medic: Advisor) -> Iterator[TestClient]:
    with TestClient(create_app(medic, Settings())) as client:
        yield client


def file(content: str, name: str = "requirements.txt") -> dict[str, str]:
    return {"name": name, "content": content}


def test_an_audit_lists_defects_changes_and_the_patch(client: TestClient) -> None:
    body: dict[str, Any] = {"attachments": [file("trl==0.20.0\n")], "language": "zh"}
    answer = client.post("/v1/audit", json=body).json()
    assert [(item["id"], item["certain"]) for item in answer["defects"]] == [("trl-99", True), ("trl-3435", False)]
    assert answer["defects"][0]["title"].startswith("GRPO 的")
    assert answer["defects"][1]["missing"][0]["fact"] == "option:importance_sampling_level"
    assert answer["changes"][0]["to"] == "0.21.0"
    assert "+trl==0.21.0" in answer["patch"]
    assert (answer["packages"], answer["compare"]) == ({"trl": "0.20.0"}, None)


def test_an_audit_compares_with_a_good_environment(client: TestClient) -> None:
    body = {"attachments": [file("trl==0.20.0\n")], "good": [file("trl==0.19.1\n")], "possible": True}
    compared = client.post("/v1/audit", json=body).json()["compare"]
    assert compared["packages"] == [{"package": "trl", "good": "0.19.1", "bad": "0.20.0", "kind": "upgraded"}]
    assert compared["defects"] == ["trl-99", "trl-3435"]


@every_case(
    ("body", "status", "code"),
    [
        ({"attachments": []}, 422, "invalid_request"),
        ({"attachments": [file("x")], "unknown": 1}, 422, "invalid_request"),
        ({"attachments": [file("x")] * 20, "good": [file("x")] * 21}, 413, "too_large"),
    ],
)
def test_a_bad_request_has_an_error_of_the_vocabulary(
    client: TestClient, body: dict[str, Any], status: int, code: str
) -> None:
    response = client.post("/v1/audit", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


def test_secrets_are_masked(client: TestClient) -> None:
    text = f"trl @ git+https://{TOKEN}@github.com/huggingface/trl@v0.20.0\n"
    response = client.post("/v1/audit", json={"attachments": [file(text)]})
    assert response.json()["defects"]
    assert TOKEN not in response.text


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("we use GRPO with vLLM\n\n```\ntrl==0.20.0\n```", {"trl-99"}),
        ("we use GRPO with vLLM", set()),
        # What only the release says has nothing to do with what is asked about.
        ("we use GRPO with vLLM, out of memory\n\n```\ntrl==0.20.0\n```", set()),
        (f"out of memory\n\n```\ntrl==0.20.0\n```\n\n{SEQUENCE}", {"trl-3435"}),
    ],
)
def test_defects_beside_an_answer_concern_what_is_asked_or_hold_on_what_was_pasted(
    medic: Advisor, question: str, shown: set[str]
) -> None:
    assert {item.id for item in medic.ask(Ask(question=question)).defects} == shown


def test_a_possible_defect_is_beside_an_answer_if_the_question_speaks_of_it(medic: Advisor) -> None:
    question = "the GSPO ratio stays near 1 however far the policy moves with GRPOTrainer, trl==0.20.0"
    answer = medic.ask(Ask(question=question))
    assert {item.id for item in answer.defects} == {"trl-99", "trl-3435"}


def test_the_panel_shows_the_defects(medic: Advisor) -> None:
    answer = medic.ask(Ask(question="we use GRPO with vLLM\n\n```\ntrl==0.20.0\n```"))
    page = panel(answer, {}, "en")
    assert "Known defects of your versions" in page
    assert "https://github.com/huggingface/trl/pull/3435" in page
    assert "tm-defects" not in panel(replace(answer, defects=()), {}, "en")


def test_mcp_gets_the_defects_without_their_places(medic: Advisor) -> None:
    view = medic.audit([Attachment(name="requirements.txt", content="trl==0.20.0\n")])
    result = result_of("audit_packages").model_validate(view).model_dump(mode="json")
    assert [item["id"] for item in result["defects"]] == ["trl-99", "trl-3435"]
    assert "evidence" not in result["defects"][0]
    assert result["changes"][0]["clears"] == ["trl-99"]


def test_the_defects_of_some_packages_are_read_without_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder(tmp_path, ALWAYS)
    monkeypatch.setattr("trainmedic.kb.pages.defect.DEFECTS", root)
    assert [defect.id for defect in defects_of(["trl", "numpy"])] == ["trl-99"]
    assert load_defects().of(["peft"]).all == ()
    folder(tmp_path, "[broken")
    assert [failure.line for failure in load_defects(["trl"]).failures] == [2]
    assert defects_of(["peft"]) == ()


@pytest.mark.parametrize("verb", ["check", "audit"])
def test_a_verb_imports_nothing_heavy(verb: str, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("trl==0.20.0\n")
    program = (
        "import sys; from trainmedic.ui.cli import main; "
        f"main(['{verb}', 'requirements.txt', '--exit-zero']); print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    heavy = {"numpy", "pydantic", "fastapi", "httpx", "faiss", "langchain_core", "onnxruntime", "torch"}
    if verb == "check":
        heavy |= {"resolvelib", "trainmedic.kb.pages.defect"}
    assert "'trainmedic.kb.engine.checker'" in done.stderr or verb == "audit"
    assert not [name for name in heavy if f"'{name}'" in done.stderr]
