"""Traces, logs and metrics of a request belong together, and hold nothing that a user or a model wrote."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.fake_model import NAME, FakeModel, Reply, calling, diagnosis, hypothesis
from trainmedic.service.advisor import Advisor
from trainmedic.service.api.app import create_app
from trainmedic.service.api.metrics import Metrics
from trainmedic.service.diagnosis.assistant import Assistant
from trainmedic.service.settings import ModelSettings, Settings
from trainmedic.service.storage.memory import Memory
from trainmedic.ui.app import build_model
from trainmedic.ui.cli.serve import announce
from trainmedic.ui.logs import log_json
from trainmedic.ui.tracing import ENDPOINT, sending_traces

WORD = "xylophonic"
"""In the question, the file and the model's text, and nowhere else."""
QUESTION = {
    "question": f"why is my {WORD} loss nan?",
    "attachments": [{"name": f"{WORD}.json", "content": '{"bf16": {"enabled": true}, "fp16": {"enabled": true}}'}],
}
_EXPORTER = InMemorySpanExporter()


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """The spans that have ended."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(_EXPORTER))
        trace.set_tracer_provider(provider)
    _EXPORTER.clear()
    yield _EXPORTER
    _EXPORTER.clear()


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What is logged as JSON."""
    root, ours = logging.getLogger(), logging.getLogger("trainmedic")
    before, level, our_level = list(root.handlers), root.level, ours.level
    root.handlers[:] = []
    stream = io.StringIO()
    log_json(stream)
    yield stream
    logging.captureWarnings(False)
    root.handlers[:] = before
    root.setLevel(level)
    ours.setLevel(our_level)


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def test_a_request_is_one_trace_whose_id_is_in_the_response_the_answer_and_the_log(
    advisor: Advisor, spans: InMemorySpanExporter, log: io.StringIO
) -> None:
    with TestClient(create_app(advisor, Settings())) as client:
        response = client.post("/v1/ask", json=QUESTION)
    trace_id = response.headers["x-trace-id"]
    assert response.json()["trace_id"] == trace_id
    request, diagnose = by_name(spans)["POST /v1/ask"], by_name(spans)["diagnose"]
    assert request.context is not None
    assert trace.format_trace_id(request.context.trace_id) == trace_id
    assert parent_of(diagnose) == id_of(request)
    assert attributes(diagnose)["trainmedic.verdict"] == response.json()["verdict"]
    assert attributes(request) == {
        "http.request.method": "POST",
        "http.route": "/v1/ask",
        "http.response.status_code": 200,
    }
    (line,) = [line for line in lines(log) if line["logger"] == "trainmedic.request"]
    assert (line["trace_id"], line["route"], line["status"], line["level"]) == (trace_id, "/v1/ask", 200, "INFO")
    assert line["seconds"] > 0


def test_a_callers_trace_is_taken_over(advisor: Advisor, spans: InMemorySpanExporter) -> None:
    theirs, span_id = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    with TestClient(create_app(advisor, Settings())) as client:
        response = client.get("/version", headers={"traceparent": f"00-{theirs}-{span_id}-01"})
        other = client.get("/version", headers={"traceparent": "nonsense"})
    assert response.headers["x-trace-id"] == theirs
    assert len(other.headers["x-trace-id"]) == 32
    assert parent_of(spans.get_finished_spans()[0]) == int(span_id, 16)


def test_model_and_tools_are_spans_of_the_request_with_the_names_of_the_conventions(
    advisor: Advisor, spans: InMemorySpanExporter
) -> None:
    metrics = Metrics()
    script = [calling("search_cases", query=f"{WORD} loss"), Reply("enough")]
    with FakeModel(*script, forms=[diagnosis(hypothesis(title=WORD))]) as fake:
        settings = Settings(model=ModelSettings(base_url=fake.url))
        model = build_model(settings, metrics.on_model_call)
        answerer = Assistant(advisor, model)
        with TestClient(create_app(advisor, settings, answerer=answerer, metrics=metrics)) as client:
            answer = client.post("/v1/ask", json={**QUESTION, "mode": "investigate"}).json()
    assert answer["steps"]
    named = by_name(spans)
    request, tool = named["POST /v1/ask"], named["execute_tool search_cases"]
    chats = [span for span in spans.get_finished_spans() if span.name == f"chat {NAME}"]
    assert [parent_of(span) for span in (tool, *chats)] == [id_of(request)] * 4
    for chat in chats:
        values = attributes(chat)
        assert chat.kind is trace.SpanKind.CLIENT
        assert values["gen_ai.operation.name"] == "chat"
        assert values["gen_ai.request.model"] == NAME
        assert values["gen_ai.request.max_tokens"] > 0
        assert values["server.address"] == "127.0.0.1"
        assert values["gen_ai.response.finish_reasons"] in (("tool_calls",), ("stop",))
    assert attributes(tool)["gen_ai.tool.name"] == "search_cases"
    assert value(metrics, "trainmedic_model_calls_total", outcome="ok") == 3
    assert value(metrics, "trainmedic_model_call_duration_seconds_count") == 3


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_a_model_that_fails_is_a_failed_span_without_what_it_said(
    advisor: Advisor, spans: InMemorySpanExporter
) -> None:
    metrics = Metrics()
    with FakeModel(forms=[Reply(status=500, error=f"the {WORD} broke")]) as fake:
        settings = Settings(model=ModelSettings(base_url=fake.url))
        answerer = Assistant(advisor, build_model(settings, metrics.on_model_call))
        with TestClient(create_app(advisor, settings, answerer=answerer, metrics=metrics)) as client:
            assert client.post("/v1/ask", json=QUESTION).status_code == 200
    failed = [span for span in spans.get_finished_spans() if span.name.startswith("chat")]
    assert failed
    assert all(span.status.status_code is trace.StatusCode.ERROR and not span.events for span in failed)
    assert value(metrics, "trainmedic_model_calls_total", outcome="failed") == len(failed)
    assert WORD not in written(spans)


def written(spans: InMemorySpanExporter) -> str:
    return "\n".join(span.to_json() for span in spans.get_finished_spans())


def test_a_service_says_in_the_format_of_its_log_where_it_listens(
    log: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    announce(Settings(port=8123), json=True)
    (line,) = lines(log)
    assert (line["message"], line["level"]) == ("trainmedic listens on http://127.0.0.1:8123", "INFO")
    assert capsys.readouterr().err == ""
    announce(Settings(port=8123), json=False)
    assert capsys.readouterr().err == f"{line['message']}\n"


def test_without_an_address_or_the_extra_no_trace_is_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with sending_traces():
            pass

    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    monkeypatch.delenv(ENDPOINT, raising=False)
    asyncio.run(run())
    assert caplog.text == ""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    asyncio.run(run())
    assert "no traces are sent without the extra otel" in caplog.text


def test_no_trace_log_or_metric_holds_what_a_user_or_the_model_wrote(
    advisor: Advisor, spans: InMemorySpanExporter, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics()
    served = Advisor(advisor.knowledge, advisor.read, Memory(advisor.memory.history, (metrics,)))
    with FakeModel(forms=[diagnosis(hypothesis(because=f"The {WORD} loss is nan."))]) as fake:
        settings = Settings(model=ModelSettings(base_url=fake.url))
        answerer = Assistant(served, build_model(settings, metrics.on_model_call))
        app = create_app(served, settings, answerer=answerer, metrics=metrics)
        with TestClient(app, raise_server_exceptions=False) as client:
            answer = client.post("/v1/ask", json=QUESTION).json()
            comment = {"answer_id": answer["id"], "reaction": "down", "comment": WORD}
            assert client.post("/v1/feedback", json=comment).status_code == 200
            assert client.get(f"/v1/cases/{WORD}").status_code == 404
            assert client.post(f"/v1/search?q={WORD}", json={"query": WORD}).status_code == 200
            # An unexpected error quotes the input, and so does the one that led to it.

            def fail(self: Advisor, *_: object) -> None:
                try:
                    int(WORD)
                except ValueError as error:
                    raise RuntimeError(WORD) from error

            monkeypatch.setattr(Advisor, "explain", fail)
            assert client.post("/v1/messages/explain", json={"message": WORD}).status_code == 500
            figures = client.get("/metrics").text
    assert 'trainmedic_model_calls_total{outcome="ok"} 1.0' in figures
    for text in (written(spans), log.getvalue(), figures):
        assert text
        assert WORD not in text
    (line,) = [line for line in lines(log) if line["level"] == "ERROR"]
    assert "ValueError" in line["message"]
    assert "RuntimeError" in line["message"]
    assert line["trace_id"] in line["message"]


def test_what_a_library_logs_is_masked(log: io.StringIO) -> None:
    secret = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
    logging.getLogger("httpx").info("not shown")
    logging.getLogger("httpx").warning("authorization: Bearer %s", secret)
    (line,) = lines(log)
    assert secret not in log.getvalue()
    assert (line["logger"], line["level"]) == ("httpx", "WARNING")
    assert line["time"]
