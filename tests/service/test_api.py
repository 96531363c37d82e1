"""The HTTP API as clients meet it: every route of the contract, its bodies, its errors."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest
from starlette.testclient import TestClient

from tests.every_case import every_case
from tests.incidents import INCIDENTS, KTO_SINGLE, SWIFT_LOG, Incident
from tests.service.schema import problems
from trainmedic.kb.errors import TrainmedicError
from trainmedic.kb.model.place import Attachment
from trainmedic.service.access.scopes import REQUIREMENTS
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.schema import Answer
from trainmedic.service.api.app import create_app
from trainmedic.service.api.errors import STATUS
from trainmedic.service.api.metrics import Metrics
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.service.storage.memory import Memory

ANSWER_KEYS = [
    "id", "conversation_id", "verdict", "language", "mode", "model", "answer", "causes", "findings", "citations",
    "missing", "signals", "run", "receipt", "kb_version", "ruleset_version", "notices", "usage", "timings_ms",
    "trace_id", "series", "steps", "sections", "differential", "changes", "defects", "messages", "similar",
    "words_only", "comparison", "horizon", "effective",
]  # fmt: skip
CHANGING = ("id", "conversation_id", "timings_ms", "trace_id")
FINDING_KEYS = {
    "rule_id", "title", "severity", "status", "message", "fix", "patch", "evidence", "missing", "cases",
}  # fmt: skip
CAUSE_KEYS = {"rank", "title", "cause", "fix", "confidence", "score", "cases", "findings", "refutations"}
SPAN_KEYS = {"attachment", "line", "column", "end_line", "end_column", "text", "default"}
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3h"


@pytest.fixture
def client(advisor: Advisor, tmp_path: Path) -> Iterator[TestClient]:
    metrics = Metrics()
    observed = Advisor(advisor.knowledge, advisor.read, Memory(advisor.memory.history, (metrics,)))
    app = create_app(observed, Settings(data_dir=tmp_path), metrics=metrics)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def document(knowledge_advisor: Advisor) -> dict[str, Any]:
    found = TestClient(create_app(knowledge_advisor, Settings())).get("/openapi.json").json()
    assert isinstance(found, dict)
    return found


def body(incident: Incident, language: str = "en", **more: object) -> dict[str, object]:
    files = [{"name": file.name, "content": file.content} for file in incident.files]
    return {"question": incident.en if language == "en" else incident.zh, "attachments": files, **more}


def described(document: dict[str, Any], path: str, method: str, status: int = 200) -> dict[str, Any]:
    found = document["paths"][path][method]["responses"][str(status)]["content"]["application/json"]["schema"]
    assert isinstance(found, dict)
    return found


def steady(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without what differs from one asking to the next."""
    return {
        key: value for key, value in answer.items() if key not in ("id", "conversation_id", "timings_ms", "trace_id")
    }


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Server-sent events: name and data."""
    found = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


class Broken(Advisor):
    """An advisor that fails."""

    def __init__(self, whole: Advisor, error: Exception) -> None:
        super().__init__(whole.knowledge, whole.read, whole.memory)
        self.error = error

    def prepare(self, request: Ask, trace_id: str = "") -> NoReturn:
        raise self.error


def failing(advisor: Advisor, error: Exception) -> TestClient:
    return TestClient(create_app(Broken(advisor, error), Settings()), raise_server_exceptions=False)


def test_an_answer_can_be_read_again_as_it_was(client: TestClient) -> None:
    answer = client.post("/v1/ask", json=body(INCIDENTS[0])).json()
    again = client.get(f"/v1/answers/{answer['id']}")
    assert again.status_code == 200
    assert again.json() == answer
    assert_error(client.get("/v1/answers/nobody"), 404)


# --- ask ------------------------------------------------------------------------------------------------------------


@every_case("language", ["en", "zh"])
@every_case("incident", INCIDENTS)
def test_an_answer_has_the_contracts_fields_and_fits_the_published_schema(
    client: TestClient, document: dict[str, Any], incident: Incident, language: str
) -> None:
    answer = client.post("/v1/ask", json=body(incident, language)).json()
    assert list(answer) == ANSWER_KEYS
    assert list(problems(answer, described(document, "/v1/ask", "post"), document)) == []
    assert answer["verdict"] == incident.verdict
    assert answer["language"] == language
    assert incident.rule in {f["rule_id"] for f in answer["findings"]}
    assert all(set(f) >= FINDING_KEYS for f in answer["findings"])
    assert all(set(c) >= CAUSE_KEYS for c in answer["causes"])
    assert all(set(e) == SPAN_KEYS for f in answer["findings"] for e in f["evidence"])
    assert [c["rank"] for c in answer["causes"]] == list(range(1, len(answer["causes"]) + 1))
    assert all(0 <= c["score"] <= 1 for c in answer["causes"])


def test_evidence_is_the_text_that_stands_at_its_place(client: TestClient) -> None:
    for incident in INCIDENTS:
        answer = client.post("/v1/ask", json=body(incident)).json()
        texts = {file.name: str(file.content).split("\n") for file in incident.files}
        places = [e for f in answer["findings"] for e in f["evidence"] if not e["default"] and e["attachment"]]
        places += [s["evidence"] for s in answer["signals"] if s["evidence"]["attachment"]]
        assert places
        for e in places:
            if e["line"] == e["end_line"]:
                assert texts[e["attachment"]][e["line"] - 1][e["column"] - 1 : e["end_column"] - 1] == e["text"]


@every_case("incident", INCIDENTS)
def test_the_streamed_answer_is_the_whole_one_and_its_pieces_add_up(client: TestClient, incident: Incident) -> None:
    whole = client.post("/v1/ask", json=body(incident, "zh")).json()
    response = client.post("/v1/ask", json=body(incident, "zh", stream=True))
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-accel-buffering"] == "no"
    sent = events(response.text)
    assert [name for name, _ in sent] == ["answer.delta"] * (len(sent) - 1) + ["answer"]
    assert "".join(data["text"] for name, data in sent if name == "answer.delta") == whole["answer"]
    assert steady(sent[-1][1]) == steady(whole)
    assert sent[-1][1]["trace_id"] == response.headers["x-trace-id"]


def test_no_line_break_that_clients_know_stands_inside_an_event(client: TestClient) -> None:
    odd = "loss is nan in a\u2028b\u2029c\x85d --vanilla_loss kto openrlhf"
    sent = client.post("/v1/ask", json={"question": odd, "stream": True}).text
    assert not set(sent) & set("\u2028\u2029\x85\r\x0b\x0c")
    assert events(sent)[-1][0] == "answer"


def test_a_question_that_cannot_be_answered_is_refused_before_streaming(client: TestClient) -> None:
    response = client.post("/v1/ask", json={"question": "", "stream": True})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "invalid_request"


def test_numbers_that_json_does_not_have_go_over_the_wire_as_words(client: TestClient) -> None:
    log = SWIFT_LOG + "{'loss': inf, 'grad_norm': -inf, 'learning_rate': 1e-06, 'epoch': 0.02}\n"
    response = client.post("/v1/ask", json={"question": "dpo", "attachments": [{"name": "a.log", "content": log}]})

    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"{name} is no JSON")

    answer = json.loads(response.text, parse_constant=refuse)
    assert "nan" in {s["value"] for s in answer["signals"]}


@every_case("number", ["NaN", "Infinity", "-Infinity", "1e999999", "1" * 5000, "-0.0", "5.5"])
def test_a_number_of_causes_that_is_none_is_refused(client: TestClient, number: str) -> None:
    response = client.post(
        "/v1/ask", content=f'{{"question": "q", "top_k": {number}}}', headers={"content-type": "application/json"}
    )
    assert_error(response, 400 if number.startswith("11") else 422)


def test_top_k_bounds_the_causes(client: TestClient) -> None:
    counts = [
        len(client.post("/v1/ask", json={"question": "loss is nan", "top_k": k}).json()["causes"]) for k in (1, 3, 20)
    ]
    assert counts[0] <= 1
    assert counts[1] <= 3
    assert counts == sorted(counts)


def test_the_language_follows_the_question_unless_one_is_wanted(client: TestClient) -> None:
    for question, language, got in (
        ("loss 变成 nan", "auto", "zh"),
        ("loss 变成 nan", "en", "en"),
        ("nan", "zh", "zh"),
    ):
        assert client.post("/v1/ask", json={"question": question, "language": language}).json()["language"] == got


# --- conversations --------------------------------------------------------------------------------------------------


def test_a_follow_up_remembers_what_was_pasted(client: TestClient) -> None:
    incident = INCIDENTS[4]
    command, versions = incident.files
    first = client.post("/v1/ask", json=body(incident) | {"attachments": [vars_of(command)]}).json()
    then = {"question": "here is my pip list", "attachments": [vars_of(versions)]}
    second = client.post("/v1/ask", json=then | {"conversation_id": first["conversation_id"]}).json()
    alone = client.post("/v1/ask", json=then).json()
    assert second["conversation_id"] == first["conversation_id"]
    assert second["id"] != first["id"]
    assert incident.rule in {f["rule_id"] for f in second["findings"] if f["status"] == "fired"}
    assert incident.rule not in {f["rule_id"] for f in alone["findings"]}
    assert alone["conversation_id"] != first["conversation_id"]


def test_a_corrected_file_replaces_the_one_of_its_name(client: TestClient) -> None:
    rule = "openrlhf-kto-vanilla-loss-single-class"
    first = client.post(
        "/v1/ask", json={"question": "kto nan", "attachments": [{"name": "t.sh", "content": KTO_SINGLE}]}
    )
    fixed = KTO_SINGLE.replace(" \\\n   --vanilla_loss", "")
    again = {"question": "and now?", "attachments": [{"name": "t.sh", "content": fixed}]}
    second = client.post("/v1/ask", json=again | {"conversation_id": first.json()["conversation_id"]}).json()
    assert rule in {f["rule_id"] for f in first.json()["findings"]}
    assert rule not in {f["rule_id"] for f in second["findings"]}
    assert [i["name"] for i in second["receipt"]["inputs"]].count("t.sh") == 1


def test_an_unknown_conversation_begins_a_new_one_under_its_id(client: TestClient) -> None:
    answer = client.post("/v1/ask", json={"question": "loss is nan", "conversation_id": "mine-1"}).json()
    assert answer["conversation_id"] == "mine-1"


@every_case("given", ["", "a b", "../x", "x" * 65, "é", 5])
def test_a_conversation_id_that_is_none_is_refused(client: TestClient, given: object) -> None:
    assert_error(client.post("/v1/ask", json={"question": "q", "conversation_id": given}), 422)


def vars_of(attachment: Attachment) -> dict[str, object]:
    return {"name": attachment.name, "content": attachment.content}


# --- check and search -----------------------------------------------------------------------------------------------


def test_a_check_is_the_report_and_fits_the_published_schema(client: TestClient, document: dict[str, Any]) -> None:
    for incident in INCIDENTS:
        report = client.post("/v1/check", json={"attachments": body(incident)["attachments"]}).json()
        assert {"findings", "run", "signals", "receipt", "ruleset_version"} <= set(report)
        assert list(problems(report, described(document, "/v1/check", "post"), document)) == []
        asked = client.post("/v1/ask", json=body(incident) | {"question": ""}).json()
        assert report["findings"] == asked["findings"]
        assert report["run"] == asked["run"]
    chinese = client.post("/v1/check", json={"attachments": body(INCIDENTS[0])["attachments"], "language": "zh"}).json()
    assert any("\u4e00" <= c <= "\u9fff" for c in chinese["findings"][0]["message"])


def test_a_search_gives_hits_with_scores_and_reasons(client: TestClient, document: dict[str, Any]) -> None:
    found = client.post("/v1/search", json={"query": "kto loss nan vanilla_loss", "top_k": 3}).json()
    assert list(problems(found, described(document, "/v1/search", "post"), document)) == []
    assert 1 <= len(found["hits"]) <= 3
    assert found["hits"][0]["case_id"] == "openrlhf-kto-vanilla-loss-nan"
    assert [h["score"] for h in found["hits"]] == sorted((h["score"] for h in found["hits"]), reverse=True)
    assert all(h["why"] and math.isfinite(h["score"]) for h in found["hits"])


def test_a_search_can_be_restricted(client: TestClient) -> None:
    for name, value in (("framework", "trl"), ("kind", "artefact"), ("family", "half-precision")):
        hits = client.post("/v1/search", json={"query": "loss nan", "top_k": 50, "filters": {name: value}}).json()[
            "hits"
        ]
        assert hits
        for hit in hits:
            case = client.get(f"/v1/cases/{hit['case_id']}").json()["case"]
            assert value in (case["frameworks"] if name == "framework" else [case[name]])


# --- the knowledge --------------------------------------------------------------------------------------------------


def every_id(client: TestClient, kind: str, limit: int) -> list[str]:
    """The ids of all cases or rules, page by page."""
    found: list[str] = []
    while True:
        page = client.get(f"/v1/{kind}", params={"limit": limit, "offset": len(found)}).json()
        found += [item["id"] for item in page["items"]]
        if not page["items"]:
            assert page["total"] == len(found)
            return found


@every_case("kind", ["cases", "rules"])
def test_the_knowledge_is_paged_by_id(client: TestClient, document: dict[str, Any], kind: str) -> None:
    first = client.get(f"/v1/{kind}", params={"limit": 200}).json()
    assert list(problems(first, described(document, f"/v1/{kind}", "get"), document)) == []
    ids = every_id(client, kind, 200)
    assert ids == sorted(set(ids))
    assert len(ids) > 10
    assert every_id(client, kind, 30) == ids
    beyond = client.get(f"/v1/{kind}", params={"offset": 100_000}).json()
    assert (beyond["items"], beyond["total"]) == ([], len(ids))


def test_the_lists_can_be_narrowed(client: TestClient) -> None:
    cases = client.get("/v1/cases", params={"framework": "trl", "limit": 200}).json()
    assert cases["items"]
    assert all("trl" in item["frameworks"] for item in cases["items"])
    rules = client.get("/v1/rules", params={"framework": "ms-swift", "limit": 200}).json()
    assert rules["items"]
    assert all("ms-swift" in item["frameworks"] for item in rules["items"])
    assert client.get("/v1/cases", params={"family": "no-such"}).json()["total"] == 0


def test_every_case_that_a_finding_or_a_cause_names_can_be_read(client: TestClient) -> None:
    for incident in INCIDENTS:
        answer = client.post("/v1/ask", json=body(incident)).json()
        assert answer["mode"] == "deterministic"
        assert answer["notices"]
        for case in {c for f in answer["findings"] for c in f["cases"]} | {c["case_id"] for c in answer["causes"]}:
            assert client.get(f"/v1/cases/{case}").status_code == 200
        for rule in {f["rule_id"] for f in answer["findings"]}:
            assert client.get(f"/v1/rules/{rule}").status_code == 200


# --- feedback -------------------------------------------------------------------------------------------------------


def test_a_second_feedback_replaces_the_first(client: TestClient, advisor: Advisor) -> None:
    assert_error(client.post("/v1/feedback", json={"answer_id": "nope", "reaction": "up"}), 404)
    answer = client.post("/v1/ask", json={"question": "loss is nan"}).json()
    for reaction in ("up", "down", "resolved"):
        sent = {"answer_id": answer["id"], "reaction": reaction, "comment": f"it was {reaction}"}
        assert client.post("/v1/feedback", json=sent).json() == {"answer_id": answer["id"], "reaction": reaction}
    assert advisor.memory.history is not None
    stored = advisor.memory.history.feedback(answer["id"])
    assert stored is not None
    assert (stored.reaction, stored.comment) == ("resolved", "it was resolved")


def test_without_a_history_feedback_is_refused(knowledge_advisor: Advisor) -> None:
    client = TestClient(create_app(Advisor(knowledge_advisor.knowledge, knowledge_advisor.read), Settings()))
    assert_error(client.post("/v1/feedback", json={"answer_id": "x", "reaction": "up"}), 400)


# --- health ---------------------------------------------------------------------------------------------------------


def test_health_says_what_is_loaded(client: TestClient, advisor: Advisor) -> None:
    assert client.get("/livez").json() == {"status": "ok"}
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["cases"] == len(advisor.knowledge.case_pages)
    version = client.get("/version").json()
    assert set(version) == {"trainmedic", "kb_version", "ruleset_version", "index"}
    assert version["kb_version"] == advisor.knowledge.cases.version


def test_something_optional_that_is_down_degrades_readiness_and_no_more(advisor: Advisor) -> None:
    async def down() -> str | None:
        return "connection refused"

    async def up() -> str | None:
        return None

    app = create_app(advisor, Settings(), {"model": down, "index": up})
    response = TestClient(app).get("/readyz")
    assert response.status_code == 200
    assert response.json()["status"] == "degraded"
    assert response.json()["down"] == {"model": "connection refused"}


def test_metrics_count_requests_by_route_verdicts_rules_and_feedback(client: TestClient) -> None:
    answer = client.post("/v1/ask", json=body(INCIDENTS[0])).json()
    client.post("/v1/feedback", json={"answer_id": answer["id"], "reaction": "up"})
    client.get("/v1/cases/no-such-case")
    client.get("/no/such/route/with-a-secret-in-it")
    text = client.get("/metrics").text
    assert 'trainmedic_requests_total{code="200",route="/v1/ask"} 1.0' in text
    assert 'trainmedic_requests_total{code="404",route="/v1/cases/{case_id}"} 1.0' in text
    assert 'trainmedic_requests_total{code="404",route="other"} 1.0' in text
    assert 'trainmedic_answers_total{verdict="answered"} 1.0' in text
    assert 'rule="openrlhf-kto-vanilla-loss"' in text
    assert 'trainmedic_feedback_total{reaction="up"} 1.0' in text
    assert "secret-in-it" not in text


# --- errors ---------------------------------------------------------------------------------------------------------


def assert_error(response: Any, status: int) -> dict[str, Any]:
    """The one error shape, with the trace id of the header."""
    assert response.status_code == status, response.text[:300]
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert {"code", "message", "trace_id"} <= set(error) <= {"code", "message", "trace_id", "hint"}
    assert error["trace_id"] == response.headers["x-trace-id"] != ""
    assert len(error["message"]) <= 1_000
    assert isinstance(error, dict)
    return error


def all_errors(of: type[TrainmedicError] = TrainmedicError) -> set[type[TrainmedicError]]:
    found = {e for e in of.__subclasses__() if not e.__module__.startswith("tests")}
    return {of} | {e for sub in found for e in all_errors(sub)}


@every_case("kind", sorted(all_errors(), key=str))
def test_every_error_of_ours_has_its_status_and_the_one_shape(
    kind: type[TrainmedicError], advisor: Advisor, document: dict[str, Any]
) -> None:
    client = failing(advisor, kind("this went wrong", hint="do that"))
    error = assert_error(client.post("/v1/ask", json={"question": "q"}), STATUS[kind.kind])
    assert (error["code"], error["message"], error["hint"]) == (kind.code, "this went wrong", "do that")
    schema = described(document, "/v1/ask", "post", 400)
    assert list(problems({"error": error}, schema, document)) == []


def test_an_error_that_is_not_ours_shows_nothing_of_itself(advisor: Advisor, caplog: pytest.LogCaptureFixture) -> None:
    client = failing(advisor, RuntimeError(f"the token {TOKEN} at /home/somebody/x.py"))
    response = client.post("/v1/ask", json={"question": "q"})
    error = assert_error(response, 500)
    assert error["code"] == "internal"
    assert "somebody" not in response.text
    assert "Traceback" not in response.text
    logged = "\n".join(r.getMessage() + str(r.exc_text or "") for r in caplog.records)
    assert error["trace_id"] in logged
    assert "RuntimeError" in logged
    assert TOKEN not in logged


def test_unknown_routes_and_methods_have_the_one_shape(client: TestClient) -> None:
    assert assert_error(client.get("/v1/no-such"), 404)["code"] == "not_found"
    assert assert_error(client.get("/nowhere"), 404)["code"] == "not_found"
    refused = client.get("/v1/ask")
    assert assert_error(refused, 405)["code"] == "method_not_allowed"
    assert refused.headers["allow"] == "POST"
    assert_error(client.get("/v1/cases/no-such-case"), 404)
    assert_error(client.get("/v1/rules/no-such-rule"), 404)


REFUSED: dict[str, tuple[str, dict[str, object]]] = {
    "an unknown key": ("/v1/ask", {"question": "q", "stram": True}),
    "an unknown key in an attachment": (
        "/v1/ask",
        {"question": "q", "attachments": [{"name": "a", "content": "", "x": 1}]},
    ),
    "a question that is no text": ("/v1/ask", {"question": ["q"]}),
    "attachments that are no list": ("/v1/ask", {"question": "q", "attachments": "x"}),
    "an attachment with an endless name": ("/v1/ask", {"attachments": [{"name": "n" * 256, "content": "x"}]}),
    "an unknown language": ("/v1/ask", {"question": "q", "language": "fr"}),
    "no causes": ("/v1/ask", {"question": "q", "top_k": 0}),
    "nothing to check": ("/v1/check", {"attachments": []}),
    "a question to check": ("/v1/check", {"question": "q", "attachments": [{"name": "a", "content": ""}]}),
    "an unknown reaction": ("/v1/feedback", {"answer_id": "x", "reaction": "meh"}),
    "an endless comment": ("/v1/feedback", {"answer_id": "x", "reaction": "up", "comment": "c" * 20_001}),
}


@every_case("case", REFUSED)
def test_a_body_that_does_not_fit_is_refused_with_the_field(client: TestClient, case: str) -> None:
    path, sent = REFUSED[case]
    error = assert_error(client.post(path, json=sent), 422)
    assert error["code"] == "invalid_request"
    assert ": " in error["message"]


@every_case(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"q"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"question": 1e999}',
    ],
)
def test_a_body_that_is_no_json_object_is_refused(client: TestClient, raw: bytes) -> None:
    response = client.post("/v1/ask", content=raw, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert_error(response, response.status_code)


def test_a_body_of_another_type_is_refused(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        error = assert_error(client.post("/v1/ask", content=b'{"question": "q"}', headers={"content-type": kind}), 422)
        assert (error["message"], "content-type" in error["hint"]) == ("body: a JSON object is needed", True)


def test_json_that_is_broken_is_said_to_be_broken_at_its_place(client: TestClient) -> None:
    json_header = {"content-type": "application/json"}
    error = assert_error(client.post("/v1/ask", content=b'{"question": "q"', headers=json_header), 422)
    assert error["message"] == "body: no valid JSON at character 16: Expecting ',' delimiter"
    error = assert_error(client.post("/v1/ask", content=b"[]", headers=json_header), 422)
    assert error["message"] == "body: a JSON object is needed"
    assert "hint" not in error


@every_case("query", ["limit=0", "limit=201", "limit=x", "offset=-1", "offset=1e9", "language=fr"])
@every_case("kind", ["cases", "rules"])
def test_a_page_that_does_not_exist_is_refused(client: TestClient, kind: str, query: str) -> None:
    assert_error(client.get(f"/v1/{kind}?{query}"), 422)


def test_what_was_sent_is_not_sent_back_in_an_error(client: TestClient) -> None:
    for path, sent in (
        ("/v1/ask", {"question": "q", "language": TOKEN}),
        ("/v1/ask", {"question": "q", TOKEN: 1}),
        ("/v1/ask", {"question": "q", "x" * 5_000: 1}),
        ("/v1/feedback", {"answer_id": TOKEN, "reaction": "up"}),
    ):
        response = client.post(path, json=sent)
        assert_error(response, response.status_code)
        assert TOKEN not in response.text
    assert TOKEN not in client.get(f"/v1/cases/{TOKEN}").text
    assert TOKEN not in client.get(f"/v1/rules/{TOKEN}").text


@every_case("name", ["..%2F..%2Fetc%2Fpasswd", "%00", "%F0%9F%92%A5", "a" * 3000, "%ff", "{case_id}"])
def test_odd_ids_are_not_found(client: TestClient, name: str) -> None:
    assert_error(client.get(f"/v1/cases/{name}"), 404)
    assert_error(client.get(f"/v1/rules/{name}"), 404)


# --- many at once ---------------------------------------------------------------------------------------------------


def test_sixteen_questions_at_once_get_the_answers_they_get_alone(client: TestClient) -> None:
    asked = [body(INCIDENTS[n % len(INCIDENTS)], ("en", "zh")[n % 2]) for n in range(16)]
    alone = [steady(client.post("/v1/ask", json=one).json()) for one in asked]
    with ThreadPoolExecutor(16) as threads:
        responses = list(threads.map(lambda one: client.post("/v1/ask", json=one), asked))
    assert [steady(response.json()) for response in responses] == alone
    assert len({response.json()["id"] for response in responses}) == 16
    assert len({response.headers["x-trace-id"] for response in responses}) == 16


def test_the_answer_of_the_api_is_that_of_the_advisor(client: TestClient, advisor: Advisor) -> None:
    from trainmedic.kb.serialization import plain

    incident = INCIDENTS[3]
    direct = advisor.ask(Ask(question=incident.en, attachments=incident.files))
    assert isinstance(direct, Answer)
    shown = plain(direct)
    assert isinstance(shown, dict)
    assert steady(client.post("/v1/ask", json=body(incident)).json()) == steady(json.loads(json.dumps(shown)))


def test_programs_are_told_how_to_ask_by_calls_that_exist(client: TestClient) -> None:
    told = client.get("/llms.txt")
    assert (told.status_code, told.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    named = set(re.findall(r"(?:POST |\()(/[\w./]+)", told.text))
    assert named
    assert named <= {path for _, path, _ in REQUIREMENTS}
