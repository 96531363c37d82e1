"""The typed client against the real service, and against servers that misbehave."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.incidents import INCIDENTS, KTO_SINGLE, SWIFT_LOG
from tests.live import Live
from trainmedic.kb.serialization import from_json
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.observers.destination import signature
from trainmedic.service.settings import Settings
from trainmedic.service.storage.history import History
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.channels.files import is_binary
from trainmedic.ui.client import Answer, AsyncClient, Client, Delta, ServiceError, Step, read_files, verified
from trainmedic.ui.client.requests import files

KEY = "correct-horse-battery-staple"
ROOT = Path(__file__).parent.parent.parent
Respond = Callable[[BaseHTTPRequestHandler], None]


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


class Scripted(ThreadingHTTPServer):
    """Handles the n-th request with the n-th response of its script, further ones with the last."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *script: Respond) -> None:
        super().__init__(("127.0.0.1", 0), ScriptedHandler)
        self.script = list(script)
        self.requests = 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Scripted:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error here."""


class ScriptedHandler(BaseHTTPRequestHandler):
    server: Scripted

    def respond(self) -> None:
        respond = self.server.script[min(self.server.requests, len(self.server.script) - 1)]
        self.server.requests += 1
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        respond(self)

    do_GET = do_POST = respond

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing to the terminal."""


def sends(status: int, body: str, kind: str = "application/json", **headers: str) -> Respond:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        data = body.encode()
        handler.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return respond


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


VERSIONS = {"trainmedic": "9", "kb_version": "k", "ruleset_version": "r", "index": "i"}
OK = sends(200, json.dumps({**VERSIONS, "something_new": {"a": 1}}))
BUSY = sends(503, json.dumps({"error": {"code": "timeout", "message": "busy", "hint": "later", "trace_id": "t1"}}))


# --- the real service -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda i: i.name)
def test_an_answer_comes_typed_and_whole(client: Client, incident: Any) -> None:
    files = {file.name: str(file.content) for file in incident.files}
    answer = client.ask(incident.en, files, language="en")
    assert answer.verdict == incident.verdict
    assert incident.rule in {finding.rule_id for finding in answer.findings}
    assert answer.causes[0].rank == 1
    assert {citation.marker for citation in answer.citations}
    assert answer.raw["answer"] == answer.answer
    assert all(isinstance(e.line, int) for finding in answer.findings for e in finding.evidence)


def test_both_clients_have_the_same_methods_with_the_same_arguments() -> None:
    public = {name.replace("aclose", "close"): name for name in vars(AsyncClient) if not name.startswith("_")}
    assert public.keys() == {name for name in vars(Client) if not name.startswith("_")}
    for name, asynchronous in (*public.items(), ("__init__", "__init__")):
        assert str(inspect.signature(getattr(Client, name)).parameters) == str(
            inspect.signature(getattr(AsyncClient, asynchronous)).parameters
        )


def test_a_stream_that_is_left_early_ends_at_once_and_the_client_goes_on(client: Client) -> None:
    parts = client.stream("loss is nan", {"train.sh": KTO_SINGLE})
    assert isinstance(next(parts), Delta)
    parts.close()
    assert client.version().trainmedic


def test_the_client_works_inside_a_running_event_loop(served: Live) -> None:
    async def notebook() -> str:
        with Client(served.url, api_key=KEY) as client:
            return client.version().trainmedic

    assert asyncio.run(notebook())


def test_a_follow_up_in_the_same_conversation_counts_what_was_sent_before(client: Client) -> None:
    first = client.ask("loss is nan", {"train.sh": KTO_SINGLE})
    again = client.ask("and what if I raise the batch size?", conversation_id=first.conversation_id)
    assert again.conversation_id == first.conversation_id
    assert again.run.framework == first.run.framework == "openrlhf"


def test_a_stream_is_pieces_and_then_the_answer_they_make(client: Client) -> None:
    *pieces, answer = client.stream("loss 变成 nan", {"train.log": SWIFT_LOG})
    assert isinstance(answer, Answer)
    assert answer.language == "zh"
    assert "".join(piece.text for piece in pieces if isinstance(piece, Delta)) == answer.answer
    assert len(pieces) > 1


def test_a_stream_that_is_left_early_gives_the_connection_back(client: Client) -> None:
    parts = client.stream("loss is nan", {"train.log": SWIFT_LOG})
    assert isinstance(next(iter(parts)), Delta)
    parts.close()
    assert client.version().trainmedic


def test_numbers_that_json_has_no_word_for_are_numbers_again(client: Client) -> None:
    answer = client.ask("why", {"train.log": SWIFT_LOG})
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


def test_the_knowledge_can_be_searched_listed_and_read(client: Client, knowledge_advisor: Advisor) -> None:
    hits = client.search("KTO loss nan", top_k=3, framework="openrlhf").hits
    assert 1 <= len(hits) <= 3
    assert client.case(hits[0].case_id, language="zh").markdown.startswith("# ")
    cases = list(client.cases())
    assert [case.id for case in cases] == sorted(knowledge_advisor.knowledge.case_pages)
    mechanisms = list(client.mechanisms())
    assert [item.id for item in mechanisms] == [m.id for m in knowledge_advisor.knowledge.mechanisms.mechanisms]
    origin = mechanisms[0].origins[0]
    assert client.mechanism(mechanisms[0].id).mechanism == mechanisms[0]
    assert client.case(origin.id).markdown.startswith(f"# {origin.title}")
    rules = list(client.rules())
    assert len(rules) == len(knowledge_advisor.knowledge.rules.rules)
    assert client.rule(rules[0].id).rule["id"] == rules[0].id
    assert 0 < len(list(client.cases(framework="trl"))) < len(cases)


def test_feedback_is_stored_and_the_answer_can_be_had_again(client: Client) -> None:
    answer = client.ask("loss is nan")
    client.feedback(answer.id, "resolved", comment="thanks")
    assert client.answer(answer.id) == answer
    with pytest.raises(ServiceError) as refused:
        client.feedback("nope", "up")
    assert refused.value.code == "not_found"


def test_conversations_are_listed_read_and_deleted(client: Client) -> None:
    answer = client.ask("loss is nan", {"train.sh": "deepspeed train.py --bf16"}, conversation_id="client-listed")
    assert "client-listed" in [conversation.id for conversation in client.conversations()]
    (turn,) = client.conversation("client-listed")
    assert (turn.question, turn.files, turn.answer_id) == ("loss is nan", ("train.sh",), answer.id)
    assert turn.verdict == answer.verdict
    client.delete_conversation("client-listed")
    assert "client-listed" not in [conversation.id for conversation in client.conversations()]
    for gone in (
        lambda: client.answer(answer.id),
        lambda: client.delete_conversation("client-listed"),
        lambda: next(client.conversation("client-listed")),
    ):
        with pytest.raises(ServiceError) as refused:
            gone()
        assert refused.value.code == "not_found"


def test_readiness_and_versions_need_no_key(served: Live) -> None:
    with Client(served.url) as client:
        assert client.ready().status == "ok"
        assert client.version().kb_version
        with pytest.raises(ServiceError) as refused:
            client.ask("loss is nan")
    assert (refused.value.code, refused.value.status) == ("unauthorized", 401)
    assert refused.value.trace_id
    assert "Bearer" in str(refused.value.hint)


@pytest.mark.parametrize("case_id", ["nope", "../../readyz", "a/b", "..", ".", "", "%2e", "a?b#c", "中文"])
def test_an_id_that_is_none_is_not_found_and_never_another_path(client: Client, case_id: str) -> None:
    with pytest.raises(ServiceError) as refused:
        client.case(case_id)
    assert refused.value.code == "not_found"


def test_a_refused_question_says_why_when_streamed_too(client: Client) -> None:
    for call in (lambda: client.ask(""), lambda: list(client.stream(""))):
        with pytest.raises(ServiceError) as refused:
            call()
        assert (refused.value.code, refused.value.status) == ("invalid_request", 400)
        assert refused.value.trace_id


def test_the_awaited_client_has_the_same_methods_and_answers(served: Live, client: Client) -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")} - {"close", "aclose"}

    assert public(Client) == public(AsyncClient)

    async def use() -> None:
        async with AsyncClient(served.url, api_key=KEY, timeout_s=30) as other:
            answer = await other.ask("loss is nan", {"train.sh": KTO_SINGLE})
            assert (await other.answer(answer.id)) == answer
            await other.feedback(answer.id, "up")
            parts = [part async for part in other.stream("loss is nan", {"train.sh": KTO_SINGLE})]
            assert isinstance(parts[-1], Answer)
            assert parts[-1].causes == answer.causes
            assert "".join(part.text for part in parts if isinstance(part, Delta)) == parts[-1].answer
            assert (await other.check({"train.sh": KTO_SINGLE})).fired
            hits = (await other.search("KTO loss nan")).hits
            assert (await other.case(hits[0].case_id)).markdown
            assert [case.id async for case in other.cases()] == [case.id for case in client.cases()]
            rules = [rule.id async for rule in other.rules(framework="trl")]
            assert rules == [rule.id for rule in client.rules(framework="trl")]
            assert (await other.rule(rules[0])).markdown
            assert (await other.ready()).status == "ok"
            assert (await other.version()) == client.version()
            with pytest.raises(ServiceError):
                await other.ask("")
            with pytest.raises(ServiceError):
                [part async for part in other.stream("")]

    asyncio.run(use())


# --- servers that misbehave -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble", [BUSY, sends(502, "<html>", "text/html"), sends(429, "", Retry_After="0"), hangs_up]
)
def test_a_read_that_fails_in_passing_is_tried_again(trouble: Respond) -> None:
    with Scripted(trouble, trouble, OK) as server, Client(server.url) as client:
        assert client.version().trainmedic == "9"
        assert server.requests == 3


def test_a_read_that_goes_on_failing_says_what_the_service_said() -> None:
    with Scripted(BUSY) as server, Client(server.url, retries=1) as client:
        with pytest.raises(ServiceError) as refused:
            client.version()
        assert server.requests == 2
    error = refused.value
    assert (error.code, error.message, error.hint, error.trace_id, error.status) == (
        "timeout", "busy", "later", "t1", 503,
    )  # fmt: skip


@pytest.mark.parametrize("trouble", [BUSY, hangs_up])
def test_a_question_is_asked_once_whatever_happens(trouble: Respond) -> None:
    with Scripted(trouble) as server, Client(server.url) as client:
        with pytest.raises(ServiceError):
            client.ask("loss is nan")
        with pytest.raises(ServiceError):
            client.feedback("a", "up")
        assert server.requests == 2


def test_the_awaited_client_tries_reads_again_and_questions_not() -> None:
    async def use(url: str) -> None:
        async with AsyncClient(url) as client:
            assert (await client.version()).trainmedic == "9"
            with pytest.raises(ServiceError):
                await client.ask("loss is nan")

    with Scripted(BUSY, hangs_up, OK, BUSY) as server:
        asyncio.run(use(server.url))
        assert server.requests == 4


def test_a_service_that_is_not_there_is_unreachable() -> None:
    with Scripted(OK) as server:
        url = server.url
    with Client(url, retries=0) as client, pytest.raises(ServiceError) as refused:
        client.version()
    assert (refused.value.code, refused.value.status) == ("unreachable", None)


def test_an_address_that_is_none_is_unreachable_too() -> None:
    with Client("htp:/nowhere", retries=0) as client, pytest.raises(ServiceError) as refused:
        client.version()
    assert refused.value.code == "unreachable"


def test_a_service_that_does_not_answer_in_time_is_a_timeout() -> None:
    release = threading.Event()

    def waits(handler: BaseHTTPRequestHandler) -> None:
        release.wait(20)

    with Scripted(waits) as server:
        started = time.monotonic()
        with Client(server.url, timeout_s=0.1, retries=0) as client, pytest.raises(ServiceError) as refused:
            client.ask("loss is nan")
        release.set()
        assert time.monotonic() - started < 15
    assert refused.value.code == "timeout"


@pytest.mark.parametrize(
    "body", ["<html>hello</html>", "[]", "{}", '{"id": 1}', '{"id": "a", "verdict": "b", "answer": "c", "causes": 1}']
)
def test_what_is_no_answer_of_this_api_is_said_to_be_none(body: str) -> None:
    with Scripted(sends(200, body)) as server, Client(server.url) as client, pytest.raises(ServiceError) as refused:
        client.ask("loss is nan")
    assert refused.value.code == "bad_response"


def test_an_error_page_of_a_proxy_is_a_bad_response() -> None:
    with Scripted(sends(403, "<html>")) as server, Client(server.url) as client, pytest.raises(ServiceError) as refused:
        client.version()
    assert (refused.value.code, refused.value.status) == ("bad_response", 403)


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


def test_an_error_inside_a_stream_is_raised_with_the_trace_id_of_the_response() -> None:
    text = 'event: error\ndata: {"error": {"code": "timeout", "message": "busy"}}\n\n'
    with Scripted(streamed(text)) as server, Client(server.url) as client, pytest.raises(ServiceError) as refused:
        list(client.stream("loss is nan"))
    assert (refused.value.code, refused.value.trace_id) == ("timeout", "t9")


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


def test_a_page_instead_of_a_stream_is_a_bad_response() -> None:
    page = sends(200, "<html>", "text/html")
    with Scripted(page) as server, Client(server.url) as client, pytest.raises(ServiceError) as refused:
        list(client.stream("loss is nan"))
    assert refused.value.code == "bad_response"


# --- the rest -------------------------------------------------------------------------------------------------------


def test_a_receiver_tells_a_genuine_event_from_a_forged_or_old_one() -> None:
    body = json.dumps({"event": "resolved", "answer_id": "a", "causes": [{"case_id": "c"}], "later": 1}).encode()
    headers = {"X-Trainmedic-Signature": signature("secret", 1000, body)}
    event = verified(headers, body, "secret", now_s=1100)
    assert (event.event, event.answer_id, event.causes[0].case_id) == ("resolved", "a", "c")
    for wrong, secret, now, given in (
        (body + b" ", "secret", 1100, headers),
        (body, "other", 1100, headers),
        (body, "", 1100, headers),
        (body, "secret", 2000, headers),
        (body, "secret", 0, headers),
        (body, "secret", 1100, {}),
        (body, "secret", 1100, {"x-trainmedic-signature": "t=abc,v1=é"}),
    ):
        with pytest.raises(ServiceError) as refused:
            verified(given, wrong, secret, now_s=now)
        assert refused.value.code == "bad_signature"


def test_a_signed_body_that_is_no_event_is_a_bad_response() -> None:
    headers = {"X-Trainmedic-Signature": signature("secret", 1000, b"[]")}
    with pytest.raises(ServiceError) as refused:
        verified(headers, b"[]", "secret", now_s=1000)
    assert refused.value.code == "bad_response"


@pytest.mark.parametrize("data", [{"rank": {}, "case_id": "c"}, {"rank": 1}, {"rank": None, "case_id": "c"}, 5])
def test_a_value_of_another_shape_is_refused(data: object) -> None:
    from trainmedic.ui.client import Cause

    with pytest.raises(ValueError):
        from_json(Cause, json.dumps(data))


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
