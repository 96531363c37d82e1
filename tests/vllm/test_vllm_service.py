"""The whole service beside the real vLLM server. Its model writes noise; everything around that must work."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from tests.incidents import INCIDENTS, Incident
from tests.vllm import tiny
from tests.vllm.server import NAME, RUNNING, WRITTEN, Server, metrics
from tests.vllm.service import events, served, serving
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.messages import messages
from trainmedic.service.api.probes import CACHE_S
from trainmedic.service.diagnosis.form import DiagnosisForm
from trainmedic.service.diagnosis.prompt import instructions
from trainmedic.service.llm.chat import ChatModel, Message, ModelError, ModelOptions
from trainmedic.service.settings import ModelSettings, Settings

LIMIT_S = 60.0
"""How long a client waits."""
TEXT = 900
"""Tokens of an ordinary answer here: noise seldom ends its form before."""
LONG = tiny.LONGEST // 4
"""Tokens that take the tiny model ten seconds and more: as many as a text may have."""
SETTLED = ("findings", "signals", "run", "receipt", "differential")
"""What no model may change."""
GEMMA = next(incident for incident in INCIDENTS if incident.name == "gemma2-flash-attn")


@pytest.fixture(scope="module")
def address(vllm_url: str, knowledge_advisor: Advisor, knowledge_folder: Path, tmp_path_factory: Any) -> Iterator[str]:
    """``trainmedic serve`` beside the shared server."""
    folder = tmp_path_factory.mktemp("serve")
    settings = {"model_base_url": f"{vllm_url}/v1", "model_max_tokens": str(TEXT), "concurrency": "8"}
    with serving(folder, folder / "serve.log", settings) as address:
        yield address


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=LIMIT_S) as client:
        yield client


def body(incident: Incident, language: str = "en", **more: object) -> dict[str, object]:
    attachments = [{"name": file.name, "content": str(file.content)} for file in incident.files]
    return {"question": incident.zh if language == "zh" else incident.en, "attachments": attachments, **more}


def asked(client: httpx.Client, request: Mapping[str, object], address: str = "") -> Any:
    return client.post(f"{address}/v1/ask", json=request).raise_for_status().json()


def settled(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: answer[name] for name in SETTLED}


def said_by(answer: Mapping[str, Any]) -> str:
    """Who decided, checked for sense: a form that noise did not fill is rejected whole, and then a notice says so."""
    if answer["mode"] == "llm":
        assert answer["model"] == NAME
    else:
        assert "The language model failed" in answer["notices"][0] or "没有给出可用的文本" in answer["notices"][0]
    assert answer["answer"].strip()
    return str(answer["mode"])


def idle(url: str, within_s: float) -> Mapping[str, float]:
    """The metrics once nothing is being written, which must be soon."""
    until = time.monotonic() + within_s
    while (found := metrics(url))[RUNNING]:
        assert time.monotonic() < until, "it is still writing"
        time.sleep(0.02)
    return found


def busy(url: str) -> None:
    """Until something is being written, which must be soon."""
    until = time.monotonic() + LIMIT_S
    while not metrics(url)[RUNNING]:
        assert time.monotonic() < until, "it is not writing"


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_stream_ends_with_the_answer_that_the_model_decided(
    language: str, client: httpx.Client, vllm_url: str
) -> None:
    before = metrics(vllm_url)[WRITTEN]
    with client.stream("POST", "/v1/ask", json=body(GEMMA, language, stream=True)) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        came = list(events(response))
    deltas = ["answer.delta"] * (len(came) - 2)
    assert [event.name for event in came] == ["answer.draft", *deltas, "answer"]
    answer = came[-1].data
    assert came[0].data["findings"] == answer["findings"]
    assert answer["language"] == language
    said_by(answer)
    assert metrics(vllm_url)[WRITTEN] > before
    assert settled(answer) == settled(asked(client, body(GEMMA, language, mode="deterministic")))
    assert "".join(event.data["text"] for event in came[1:-1]) == answer["answer"]


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda incident: incident.name)
def test_what_is_settled_is_the_same_with_the_model_and_without(incident: Incident, client: httpx.Client) -> None:
    answer = asked(client, body(incident))
    alone = asked(client, body(incident, mode="deterministic"))
    said_by(answer)
    assert alone["mode"] == "deterministic"
    assert settled(answer) == settled(alone)
    assert (alone["verdict"], alone["causes"][0]["case_id"]) == (incident.verdict, incident.case)


async def form_by_noise(url: str, number: int) -> DiagnosisForm:
    """Noise under the grammar of the form, whose texts end somewhere."""
    async with aclosing(ChatModel(ModelOptions(base_url=f"{url}/v1", temperature=1.0))) as model:
        prompt = [Message(role="system", content=instructions()), Message(role="user", content=f"Question {number}")]
        return await model.structured(prompt, DiagnosisForm, max_tokens=LONG, within_s=LIMIT_S)


def test_the_instructions_are_in_the_cache_after_the_first_question(client: httpx.Client, vllm_url: str) -> None:
    (swift,) = [incident for incident in INCIDENTS if incident.name == "swift-dpo-sequence-parallel"]
    asked(client, body(swift, mode="auto"))
    second = asked(client, {**body(swift), "question": f"{swift.en} It began on Monday."})
    text = {"model": NAME, "prompt": instructions(), "add_special_tokens": False}
    fixed = httpx.post(f"{vllm_url}/tokenize", json=text, timeout=LIMIT_S).json()["count"]
    if said_by(second) == "llm":
        assert second["usage"]["cached_tokens"] > 0.9 * fixed


def test_sixteen_questions_at_once_are_all_answered_right(
    address: str, vllm_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [(incident, language) for language in ("en", "zh") for incident in INCIDENTS]
    wanted = (wanted * 2)[:16]
    before = metrics(vllm_url)[WRITTEN]

    def one(job: tuple[Incident, str]) -> tuple[int, Any]:
        response = httpx.post(f"{address}/v1/ask", json=body(*job), timeout=LIMIT_S)
        return response.status_code, response.json()

    started = time.monotonic()
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(one, wanted))
    took = time.monotonic() - started
    written = metrics(vllm_url)[WRITTEN] - before
    with capsys.disabled():
        sys.stdout.write(f"\n16 questions at once: {took:.1f} s, {written:.0f} tokens\n")
    assert [status for status, _ in answers] == [200] * 16
    for (incident, language), (_, answer) in zip(wanted, answers, strict=True):
        if said_by(answer) == "deterministic":
            assert (answer["verdict"], answer["causes"][0]["case_id"]) == (incident.verdict, incident.case)
        assert answer["language"] == language
    assert took < LIMIT_S
    assert written > TEXT


def test_noise_fills_the_form_of_a_diagnosis_or_is_cut_short(vllm_url: str) -> None:
    async def scenario() -> list[DiagnosisForm | BaseException]:
        jobs = (form_by_noise(vllm_url, time.time_ns() + n) for n in range(8))
        return await asyncio.gather(*jobs, return_exceptions=True)

    found = asyncio.run(scenario())
    assert all(isinstance(each, DiagnosisForm | ModelError) for each in found), "no other exception comes out"


def test_the_official_client_streams_the_text_and_gets_citations_and_usage(address: str) -> None:
    files = "".join(f"\n```\n{file.content!s}```\n" for file in GEMMA.files)
    parts: list[str] = []
    last: dict[str, Any] = {}
    usage = None
    with OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=LIMIT_S) as openai:
        stream = openai.chat.completions.create(
            model="trainmedic",
            messages=[{"role": "user", "content": GEMMA.en + files}],
            stream=True,
            stream_options={"include_usage": True},
        )
        for chunk in stream:
            parts += [choice.delta.content or "" for choice in chunk.choices]
            last = (chunk.model_extra or {}).get("trainmedic", last)
            usage = chunk.usage or usage
    assert "".join(parts) == last["answer"]
    assert usage is not None
    if said_by(last) == "llm":
        assert usage.completion_tokens > 0
    else:
        assert last["causes"][0]["case_id"] == GEMMA.case


def test_an_investigation_by_noise_ends_with_an_answer(client: httpx.Client) -> None:
    with client.stream("POST", "/v1/ask", json=body(GEMMA, mode="investigate", stream=True)) as response:
        assert response.status_code == 200
        came = list(events(response))
    assert {event.name for event in came[:-1]} <= {"answer.draft", "answer.delta", "answer.step"}
    assert came[-1].name == "answer"
    answer = came[-1].data
    assert settled(answer) == settled(asked(client, body(GEMMA, mode="deterministic")))
    assert answer["mode"] == "llm" or answer["notices"]


# --- leaving and dying ----------------------------------------------------------------------------------------------


def long_answers(url: str, tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path,
        model=ModelSettings(base_url=f"{url}/v1", max_tokens=LONG, context_tokens=tiny.LONGEST, timeout_s=LIMIT_S),
    )


def test_a_client_that_leaves_stops_the_generation(advisor: Advisor, vllm_falling: Server, tmp_path: Path) -> None:
    url = vllm_falling.url
    before = idle(url, LIMIT_S)[WRITTEN]
    with served(advisor, long_answers(url, tmp_path)) as address, httpx.Client(timeout=LIMIT_S) as client:
        with client.stream("POST", f"{address}/v1/ask", json=body(GEMMA, stream=True)) as response:
            busy(url)
            assert response.status_code == 200
        after = idle(url, LIMIT_S)
        # What a request that was left had written is not always counted.
        assert after[WRITTEN] - before < LONG / 2
        assert asked(client, body(GEMMA, mode="deterministic"), address)["verdict"] == GEMMA.verdict
        assert metrics(url)[WRITTEN] == after[WRITTEN]


def test_a_server_that_dies_costs_the_diagnosis_alone(advisor: Advisor, vllm_falling: Server, tmp_path: Path) -> None:
    settings = long_answers(vllm_falling.url, tmp_path)
    with served(advisor, settings) as address, httpx.Client(base_url=address, timeout=LIMIT_S) as client:
        assert client.get("/readyz").json()["down"] == {}
        alone = asked(client, body(GEMMA, mode="deterministic"))
        with client.stream("POST", "/v1/ask", json=body(GEMMA, stream=True)) as response:
            assert response.status_code == 200
            busy(vllm_falling.url)
            vllm_falling.kill()
            rest = list(events(response))
        answer = rest[-1].data
        assert rest[-1].name == "answer"
        assert answer["mode"] == "deterministic"
        assert reason_in(answer["notices"], "en") in ("cut", "absent", "server_error")
        assert settled(answer) == settled(alone)
        assert answer["answer"] == alone["answer"]
        assert alone["answer"] == "".join(event.data["text"] for event in rest[1:-1])
        reasons = []
        for number in range(4):
            started = time.monotonic()
            answer = asked(client, body(INCIDENTS[number], "zh"))
            assert time.monotonic() - started < 10.0
            assert answer["verdict"] == INCIDENTS[number].verdict
            reasons.append(reason_in(answer["notices"], "zh"))
        assert reasons == ["absent", "absent", "open", "open"]
        time.sleep(CACHE_S)  # so long the endpoint's last word holds
        ready = client.get("/readyz")
        assert ready.status_code == 200
        assert ready.json()["status"] == "degraded"
        assert ready.json()["down"] == {"model": "absent"}


def reason_in(notices: Sequence[str], language: str) -> str:
    """The kind of failure that the notice names."""
    failures = {
        name.partition(".")[2]: forms[language] for name, forms in messages.items() if name.startswith("failures.")
    }
    (kind,) = [kind for kind, text in failures.items() if text in notices[0]]
    return kind
