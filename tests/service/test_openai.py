"""The OpenAI protocol, driven by the official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest
from openai import OpenAI
from starlette.testclient import TestClient

from tests.incidents import GEMMA_COMMAND, GEMMA_VERSIONS
from tests.openai_app import openai_app
from trainmedic.service.advisor import Advisor
from trainmedic.service.settings import Settings
from trainmedic.ui.openai.routes import MAX_MESSAGES

QUESTION = f"reward model is nan with flash attention\n```bash\n{GEMMA_COMMAND}```\n```\n{GEMMA_VERSIONS}```\n"


@pytest.fixture
def http(advisor: Advisor, tmp_path: Path) -> Iterator[TestClient]:
    with TestClient(openai_app(advisor, Settings(data_dir=tmp_path))) as client:
        yield client


@pytest.fixture
def client(http: TestClient) -> OpenAI:
    def forward(request: httpx.Request) -> httpx.Response:
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        answer = http.request(request.method, request.url.path, content=request.content, headers=headers)
        return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)

    transport = httpx.Client(transport=httpx.MockTransport(forward))
    return OpenAI(base_url="http://testserver/v1", api_key="none", http_client=transport, max_retries=0)  # type: ignore[arg-type]


def test_the_client_lists_the_one_model(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["trainmedic"]
    assert client.models.retrieve("trainmedic").id == "trainmedic"
    with pytest.raises(openai.NotFoundError, match="no model 'another'"):
        client.models.retrieve("another")


def test_the_client_gets_the_answer_with_its_citations(client: OpenAI) -> None:
    got = client.chat.completions.create(model="trainmedic", messages=[{"role": "user", "content": QUESTION}])
    assert "softcap" in (got.choices[0].message.content or "")
    assert got.choices[0].finish_reason == "stop"
    more = got.model_extra or {}
    assert more["trainmedic"]["causes"][0]["case_id"] == "gemma2-flash-attn-softcap-nan"
    assert [citation["marker"] for citation in more["citations"]] == list(range(1, len(more["citations"]) + 1))


def test_a_stream_gives_the_same_text_and_the_citations_last(client: OpenAI) -> None:
    messages: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
    whole = client.chat.completions.create(model="trainmedic", messages=messages)
    parts, citations, usage = [], None, None
    stream = client.chat.completions.create(
        model="trainmedic", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    for chunk in stream:
        if chunk.choices:
            parts.append(chunk.choices[0].delta.content or "")
        citations = (chunk.model_extra or {}).get("citations", citations)
        usage = chunk.usage or usage
    assert "".join(parts) == whole.choices[0].message.content
    assert citations == (whole.model_extra or {})["citations"]
    assert usage is not None
    assert usage.total_tokens == 0


def test_what_was_said_before_still_counts(client: OpenAI) -> None:
    got = client.chat.completions.create(
        model="trainmedic",
        temperature=0.3,
        messages=[
            {"role": "system", "content": "Answer that the learning rate is too high."},
            {"role": "user", "content": f"grad_norm is nan\n```bash\n{GEMMA_COMMAND}```"},
            {"role": "assistant", "content": "Which flash-attn?"},
            {"role": "user", "content": [{"type": "text", "text": GEMMA_VERSIONS}]},
        ],
    )
    answer = (got.model_extra or {})["trainmedic"]
    assert (answer["verdict"], answer["causes"][0]["case_id"]) == ("answered", "gemma2-flash-attn-softcap-nan")


def test_a_conversation_without_a_user_is_refused(http: TestClient) -> None:
    got = http.post("/v1/chat/completions", json={"messages": [{"role": "system", "content": "hello"}]})
    assert got.status_code == 400
    assert got.json()["error"]["code"] == "invalid_request"


@pytest.mark.parametrize(("earlier", "status"), [(MAX_MESSAGES - 1, 200), (MAX_MESSAGES, 422)])
def test_a_conversation_has_a_greatest_length(http: TestClient, earlier: int, status: int) -> None:
    messages = [{"role": "assistant", "content": "ok"}] * earlier
    asked = {"messages": [*messages, {"role": "user", "content": "loss is nan"}]}
    assert http.post("/v1/chat/completions", json=asked).status_code == status


def test_a_stream_ends_as_the_protocol_says(http: TestClient) -> None:
    text = http.post(
        "/v1/chat/completions", json={"stream": True, "messages": [{"role": "user", "content": "loss is nan"}]}
    ).text
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line]
    assert lines[-1] == "[DONE]"
    assert json.loads(lines[0])["choices"][0]["delta"]["role"] == "assistant"
    assert all(json.loads(line)["object"] == "chat.completion.chunk" for line in lines[:-1])
