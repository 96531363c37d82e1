"""The typed client against the real service, and against servers that misbehave."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.every_case import every_case
from tests.incidents import INCIDENTS, KTO_SINGLE, SWIFT_LOG
from tests.live import Live
from tests.scripted import Respond, Scripted, sends
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.channels.files import is_binary
from trainmedic.ui.client import Answer, Client, Delta, ServiceError, Step, read_files
from trainmedic.ui.client.requests import files

KEY = "correct-horse-battery-staple"
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def served(knowledge_advisor: Advisor) -> Iterator[Live]:
    advisor = Advisor(knowledge_advisor.knowledge, knowledge_advisor.read, Memory(History("sqlite://")))
    with Live(create_app(advisor, Settings.model_validate({"api_keys": KEY}))) as live:
        yield live
    assert advisor.memory.history is not None
    advisor.memory.history.close()


@pytest.fixture
def client(served: Live) -> Iterator[Client]:
    with Client(served.url, api_key=KEY, timeout_s=30) as client:
        yield client


VERSIONS = {"trainmedic": "9", "kb_version": "k", "ruleset_version": "r", "index": "i"}
OK = sends(200, json.dumps({**VERSIONS, "something_new": {"a": 1}}))
BUSY = sends(503, json.dumps({"error": {"code": "timeout", "message": "busy", "hint": "later", "trace_id": "t1"}}))


# --- the real service -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("incident", INCIDENTS[:2], ids=lambda i: i.name)
def test_an_answer_comes_typed_and_whole(client: Client, incident: Any) -> None:
    files = {file.name: str(file.content) for file in incident.files}
    answer = client.ask(incident.en, files, language="en")
    assert answer.verdict == incident.verdict
    assert incident.rule in {finding.rule_id for finding in answer.findings}
    assert answer.causes[0].rank == 1
    assert {citation.marker for citation in answer.citations}
    assert answer.raw["answer"] == answer.answer
    assert all(isinstance(e.line, int) for finding in answer.findings for e in finding.evidence)


def test_a_stream_that_is_left_early_ends_at_once_and_the_client_goes_on(client: Client) -> None:
    parts = client.stream("loss is nan", {"train.sh": KTO_SINGLE})
    assert isinstance(next(parts), Delta)
    parts.close()
    assert client.version().trainmedic


def test_a_stream_is_pieces_and_the_answer_they_make_with_numbers_that_json_has_no_word_for(client: Client) -> None:
    *pieces, answer = client.stream("loss 变成 nan", {"train.log": SWIFT_LOG})
    assert isinstance(answer, Answer)
    assert answer.language == "zh"
    assert "".join(piece.text for piece in pieces if isinstance(piece, Delta)) == answer.answer
    assert any(signal.value is not None and math.isnan(signal.value) for signal in answer.signals)


def test_a_check_lists_what_fired(client: Client, tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text(KTO_SINGLE)
    report = client.check(read_files(tmp_path / "train.sh"), language="zh")
    assert "openrlhf-kto-vanilla-loss-single-class" in {finding.rule_id for finding in report.fired}
    assert [each.name for each in report.receipt.inputs if each.name] == [str(tmp_path / "train.sh")]


def test_paths_in_place_of_texts_are_refused_with_what_reads_them(client: Client) -> None:
    with pytest.raises(ServiceError, match="attachments map names to texts") as failure:
        client.ask("why?", ["train.sh"])  # type: ignore[arg-type]
    assert failure.value.hint == "read_files reads paths"


def test_the_knowledge_can_be_searched(client: Client) -> None:
    hits = client.search("KTO loss nan", top_k=3, framework="openrlhf").hits
    assert 1 <= len(hits) <= 3


def test_feedback_is_stored_and_the_answer_can_be_had_again(client: Client) -> None:
    answer = client.ask("loss is nan")
    client.feedback(answer.id, "resolved", comment="thanks")
    assert client.answer(answer.id) == answer
    with pytest.raises(ServiceError) as refused:
        client.feedback("nope", "up")
    assert refused.value.code == "not_found"


def test_the_versions_need_no_key(served: Live) -> None:
    with Client(served.url) as client:
        assert client.version().kb_version
        with pytest.raises(ServiceError) as refused:
            client.ask("loss is nan")
    assert (refused.value.code, refused.value.status) == ("unauthorized", 401)
    assert refused.value.trace_id
    assert "Bearer" in str(refused.value.hint)


@pytest.mark.parametrize("answer_id", ["nope", "../../readyz", "..", "", "%2e", "a?b#c"])
def test_an_id_that_is_none_is_not_found_and_never_another_path(client: Client, answer_id: str) -> None:
    with pytest.raises(ServiceError) as refused:
        client.answer(answer_id)
    assert refused.value.code == "not_found"


def failure_of(call: Callable[[Client], object], *script: Respond) -> ServiceError:
    with Scripted(*script) as server, Client(server.url) as client, pytest.raises(ServiceError) as refused:
        call(client)
    assert len(server.posted) == 1  # nothing is repeated
    return refused.value


def ask(client: Client) -> object:
    return client.ask("loss is nan")


def stream(client: Client) -> object:
    return list(client.stream("loss is nan"))


def test_an_error_of_the_service_is_told_whole(client: Client) -> None:
    with pytest.raises(ServiceError) as refused:
        list(client.stream(""))
    assert (refused.value.code, refused.value.status, bool(refused.value.trace_id)) == ("invalid_request", 400, True)
    error = failure_of(Client.version, BUSY)
    assert (error.code, error.message, error.status) == ("timeout", "busy", 503)
    assert (error.hint, error.trace_id) == ("later", "t1")
    event = 'event: error\ndata: {"error": {"code": "timeout", "message": "busy"}}\n\n'
    error = failure_of(stream, streamed(event))
    assert (error.code, error.trace_id) == ("timeout", "t9")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "htp:/nowhere"])
def test_a_service_that_is_not_there_is_unreachable(url: str) -> None:
    with Client(url) as client, pytest.raises(ServiceError) as refused:
        client.version()
    assert (refused.value.code, refused.value.status) == ("unreachable", None)


@every_case("call", [ask, stream])
@every_case("status", [200, 403])
@every_case("body", ["<html>hello</html>", "[]", '{"id": "a", "verdict": "b", "causes": 1}'])
def test_what_is_no_response_of_this_api_is_said_to_be_none(
    call: Callable[[Client], object], status: int, body: str
) -> None:
    assert failure_of(call, sends(status, body)).code == "bad_response"


def test_a_service_that_does_not_answer_in_time_is_a_timeout() -> None:
    release = threading.Event()

    def waits(handler: BaseHTTPRequestHandler) -> None:
        release.wait(20)

    with Scripted(waits) as server:
        started = time.monotonic()
        with Client(server.url, timeout_s=0.1) as client, pytest.raises(ServiceError) as refused:
            client.ask("loss is nan")
        release.set()
        assert time.monotonic() - started < 15
    assert refused.value.code == "timeout"


def streamed(text: str) -> Respond:
    return sends(200, text, "text/event-stream", X_Trace_Id="t9")


def test_a_stream_that_ends_early_is_interrupted() -> None:
    text = 'event: answer.delta\ndata: {"text": "so"}\n\n'
    with Scripted(streamed(text)) as server, Client(server.url) as client:
        parts = client.stream("loss is nan")
        assert next(iter(parts)) == Delta(text="so")
        with pytest.raises(ServiceError) as refused:
            list(parts)
    assert refused.value.code == "interrupted"


def test_what_a_newer_or_older_service_sends_differently_does_not_trouble_the_client(client: Client) -> None:
    answer = dict(client.ask("loss is nan", {"train.sh": KTO_SINGLE}).raw)
    newer = {**answer, "brand_new": [1], "verdict": "brand_new"}
    older = {name: value for name, value in answer.items() if name not in ("series", "steps", "notices", "trace_id")}
    text = (
        ": a comment\n"
        'event: answer.step\ndata: {"number": 1, "tool": "search", "what": "looked", "arguments": {"q": "nan"}, '
        '"result": "found"}\n\n'
        'event: answer.later\ndata: {"x": 1}\n\n'
        f"event: answer\ndata: {json.dumps(newer)}\n\n"
    )
    with Scripted(streamed(text), sends(200, json.dumps(older))) as server, Client(server.url) as stub:
        step, last = list(stub.stream("loss is nan"))
        assert step == Step(number=1, tool="search", what="looked", arguments={"q": "nan"}, result="found")
        assert isinstance(last, Answer)
        assert (last.verdict, last.raw["brand_new"]) == ("brand_new", [1])
        assert stub.ask("loss is nan").series == ()


def test_the_key_is_shown_nowhere(served: Live) -> None:
    with Client(served.url, api_key=KEY) as client:
        assert KEY not in repr(client) + repr(vars(client))


def test_importing_the_client_loads_nothing_heavy() -> None:
    heavy = ("fastapi", "pydantic", "numpy", "gradio", "starlette", "sqlalchemy", "openai", "yaml")
    code = f"import sys, trainmedic.ui.client; sys.exit(', '.join(n for n in {heavy} if n in sys.modules) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_a_file_that_is_no_text_is_sent_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.wandb").write_bytes(b":W&B\xe1\xbe\x00")
    (tmp_path / "a.log").write_text("损失", encoding="utf-8")
    read = read_files(tmp_path / "a.wandb", tmp_path / "a.log")
    assert [file.get("encoding") for file in files(read)] == ["base64", None]
    assert b64decode(files(read)[0]["content"]) == b":W&B\xe1\xbe\x00"
    assert not is_binary(b":W&B\xe1\xbe\x00")
