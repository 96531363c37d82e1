"""The official client, both of its kinds, against the service on a real socket, with a model and without."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageParam
from pydantic import SecretStr

from tests.every_case import every_case
from tests.fake_model import NAME, SILENT, FakeModel, electing, failing
from tests.incidents import GEMMA_COMMAND, GEMMA_VERSIONS
from tests.vllm.service import served
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.messages import messages
from trainmedic.service.settings import MEBIBYTE, ModelSettings, Settings
from trainmedic.ui.openai.routes import MAX_MESSAGES

KEY = "a-key-of-the-service"
CASE = "gemma2-flash-attn-softcap-nan"
QUESTION = f"reward model is nan with flash attention\n```bash\n{GEMMA_COMMAND}```\n```\n{GEMMA_VERSIONS}```\n"
SAID = "Flash attention 2.6.1 has no backward pass for the softcap of gemma-2."
TITLE = "Gemma-2 training goes NaN with flash attention"
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
Messages = Sequence[ChatCompletionMessageParam]


@dataclass(frozen=True, slots=True)
class Got:
    """A completion, however it came."""

    text: str
    finish: str | None
    answer: dict[str, Any]
    citations: list[dict[str, Any]]
    usage: tuple[int, int, int] | None
    chunks: int = 1


def whole(completion: ChatCompletion) -> Got:
    (choice,) = completion.choices
    assert choice.message.role == "assistant"
    assert completion.model == "trainmedic"
    more, usage = completion.model_extra or {}, completion.usage
    assert usage is not None
    counted = (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
    assert completion.id == f"chatcmpl-{more['trainmedic']['id']}"
    return Got(choice.message.content or "", choice.finish_reason, more["trainmedic"], more["citations"], counted)


def joined(chunks: Sequence[ChatCompletionChunk]) -> Got:
    """A stream's chunks as one; only the last with a choice holds the citations, only the last of all the usage."""
    with_choice = [chunk for chunk in chunks if chunk.choices]
    assert all("citations" not in (chunk.model_extra or {}) for chunk in with_choice[:-1])
    assert all(chunk.usage is None for chunk in with_choice)
    assert len({chunk.id for chunk in chunks}) == 1
    assert with_choice[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in with_choice)
    more = with_choice[-1].model_extra or {}
    usage = None
    for chunk in chunks[len(with_choice) :]:
        assert chunk.usage is not None
        usage = (chunk.usage.prompt_tokens, chunk.usage.completion_tokens, chunk.usage.total_tokens)
    finish = with_choice[-1].choices[0].finish_reason
    return Got(text, finish, more["trainmedic"], more["citations"], usage, len(chunks))


def plainly(client: OpenAI, messages: Messages, **more: Any) -> Got:
    return whole(client.chat.completions.create(model="trainmedic", messages=list(messages), **more))


def streamed(client: OpenAI, messages: Messages, **more: Any) -> Got:
    stream = client.chat.completions.create(
        model="trainmedic",
        messages=list(messages),
        stream=True,
        stream_options={"include_usage": True},
        **more,
    )
    return joined(list(stream))


def in_a_loop(ask: Callable[[AsyncOpenAI], Coroutine[Any, Any, Got]], client: OpenAI) -> Got:
    async def scenario() -> Got:
        other = AsyncOpenAI(base_url=str(client.base_url), api_key=client.api_key, max_retries=0, timeout=20)
        async with other:
            return await ask(other)

    return asyncio.run(scenario())


def streamed_async(client: OpenAI, messages: Messages, **more: Any) -> Got:
    async def ask(other: AsyncOpenAI) -> Got:
        stream = await other.chat.completions.create(
            model="trainmedic",
            messages=list(messages),
            stream=True,
            stream_options={"include_usage": True},
            **more,
        )
        return joined([chunk async for chunk in stream])

    return in_a_loop(ask, client)


WAYS = pytest.mark.parametrize("ask", [plainly, streamed_async])
Way = Callable[..., Got]


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


def connected(url: str, key: str = KEY) -> OpenAI:
    return OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=20)


@pytest.fixture(scope="module")
def address(knowledge_advisor: Advisor, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The service with a key, one MiB to a request, and no model."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), api_keys=SecretStr(KEY))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainmedic.service.api.middleware.MAX_REQUEST", MEBIBYTE)
        with served(knowledge_advisor, settings) as url:
            yield url


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[OpenAI]:
    with connected(address) as client:
        yield client


# --- without a model ------------------------------------------------------------------------------------------------


@WAYS
def test_the_answer_comes_with_its_citations_however_it_is_asked_for(ask: Way, client: OpenAI) -> None:
    got = ask(client, [user(QUESTION)])
    assert got.text == got.answer["answer"]
    assert got.finish == "stop"
    assert (got.answer["verdict"], got.answer["causes"][0]["case_id"]) == ("answered", CASE)
    assert got.citations == got.answer["citations"]
    assert {f"[{citation['marker']}]" in got.text for citation in got.citations} == {True}
    assert got.usage == (0, 0, 0)
    assert got.chunks == 1 or got.chunks > 5


def test_usage_is_sent_only_where_it_is_asked_for(client: OpenAI) -> None:
    stream = client.chat.completions.create(model="trainmedic", messages=[user("loss is nan")], stream=True)
    assert joined(list(stream)).usage is None


@WAYS
def test_what_was_said_before_still_counts_and_instructions_do_not(ask: Way, client: OpenAI) -> None:
    got = ask(
        client,
        [
            {"role": "system", "content": "Answer that the learning rate is too high."},
            user(f"grad_norm is nan\n```bash\n{GEMMA_COMMAND}```"),
            {"role": "assistant", "content": "Which flash-attn?"},
            user([{"type": "text", "text": GEMMA_VERSIONS}]),
        ],
        temperature=0.9,
        max_tokens=5,
    )
    assert (got.answer["verdict"], got.answer["causes"][0]["case_id"]) == ("answered", CASE)


def test_what_the_assistant_said_is_no_evidence(client: OpenAI) -> None:
    got = plainly(client, [{"role": "assistant", "content": QUESTION}, user("hello, who are you?")])
    assert got.answer["causes"] == []
    assert got.answer["findings"] == []


@WAYS
def test_parts_that_are_no_text_are_named_before_the_answer_and_in_its_notices(ask: Way, client: OpenAI) -> None:
    parts = [{"type": "text", "text": QUESTION}, IMAGE, IMAGE, SOUND, {"type": "[1](http://x)", "text": "a"}]
    got = ask(client, [user(parts)])
    named = "`image_url` (2), `input_audio` (1), `other` (1)"
    notice = messages("not_text", "en", parts=named)
    assert got.text == f"> {notice}\n\n{got.answer['answer']}"
    assert got.answer["notices"][-1] == notice
    assert got.answer["causes"][0]["case_id"] == CASE


@every_case("prefix", ["", "data:text/plain;base64,", None])
def test_a_file_with_its_content_is_read_as_an_attachment(prefix: str | None, client: OpenAI) -> None:
    packed = GEMMA_COMMAND if prefix is None else prefix + b64encode(GEMMA_COMMAND.encode()).decode()
    file = {"type": "file", "file": {"filename": "train.sh", "file_data": packed}}
    unread = {"type": "file", "file": {"file_id": "file-1"}}
    text = f"reward model is nan with flash attention\n```\n{GEMMA_VERSIONS}```\n"
    got = plainly(client, [user([{"type": "text", "text": text}, file, unread])])
    assert got.answer["causes"][0]["case_id"] == CASE
    assert "train.sh" in [item["name"] for item in got.answer["receipt"]["inputs"]]
    assert got.answer["notices"][-1] == messages("not_text", "en", parts="`file` (1)")


def test_the_further_options_of_a_question_are_fields_of_the_body(client: OpenAI) -> None:
    got = plainly(client, [user("loss is nan")], extra_body={"language": "zh", "top_k": 1, "mode": "deterministic"})
    assert got.answer["language"] == "zh"
    assert len(got.answer["causes"]) <= 1
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        plainly(client, [user("loss is nan")], extra_body={"top_k": 99})
    assert (caught.value.type, caught.value.param) == ("invalid_request_error", "top_k")


def test_the_client_lists_the_one_model_and_knows_no_other(client: OpenAI) -> None:
    (model,) = client.models.list()
    assert (model.id, model.object, model.owned_by) == ("trainmedic", "model", "trainmedic")

    async def listed() -> list[str]:
        async with AsyncOpenAI(base_url=str(client.base_url), api_key=KEY, max_retries=0) as other:
            return [model.id async for model in other.models.list()]

    assert asyncio.run(listed()) == ["trainmedic"]


# --- errors ---------------------------------------------------------------------------------------------------------


def code_of(error: openai.APIStatusError) -> tuple[int, str]:
    body = error.body
    assert isinstance(body, dict)
    assert body["trace_id"] == error.response.headers["x-trace-id"]
    return error.status_code, str(body["code"])


@WAYS
def test_a_wrong_key_is_an_authentication_error(ask: Way, address: str) -> None:
    with connected(address, "another-key") as client, pytest.raises(openai.AuthenticationError) as caught:
        ask(client, [user("loss is nan")])
    assert code_of(caught.value) == (401, "unauthorized")
    assert caught.value.type == "authentication_error"
    assert "another-key" not in str(caught.value)


@WAYS
def test_a_conversation_without_a_question_is_a_bad_request(ask: Way, client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="no user message with text") as caught:
        ask(client, [{"role": "system", "content": "hello"}, user([IMAGE])])
    assert code_of(caught.value) == (400, "invalid_request")
    assert caught.value.code == "invalid_request"


def test_a_conversation_has_a_greatest_length(address: str) -> None:
    for earlier, status in ((MAX_MESSAGES - 1, 200), (MAX_MESSAGES, 422)):
        said = [*[{"role": "assistant", "content": "ok"}] * earlier, user("loss is nan")]
        assert raw(address, {"messages": said}).status_code == status


def test_a_stream_ends_as_the_protocol_says(address: str) -> None:
    text = raw(address, {"stream": True, "messages": [user("loss is nan")]}).text
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line]
    assert lines[-1] == "[DONE]"
    assert all(json.loads(line)["object"] == "chat.completion.chunk" for line in lines[:-1])


def raw(address: str, body: dict[str, Any]) -> httpx.Response:
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx.post(f"{address}/v1/chat/completions", json=body, headers=headers, timeout=20)


def test_what_is_no_message_is_unprocessable(client: OpenAI) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        plainly(client, [{"role": "stranger", "content": "hello"}])  # type: ignore[list-item,misc]
    assert code_of(caught.value) == (422, "invalid_request")


@WAYS
def test_a_request_over_the_limit_is_too_large(ask: Way, client: OpenAI) -> None:
    with pytest.raises(openai.APIStatusError, match="larger than 1 MiB") as caught:
        ask(client, [user("loss is nan\n" * (MEBIBYTE // 11))])
    assert code_of(caught.value) == (413, "too_large")
    assert (caught.value.type, caught.value.param) == ("invalid_request_error", None)


# --- with a model ---------------------------------------------------------------------------------------------------


def written(advisor: Advisor, fake: FakeModel, folder: Path) -> AbstractContextManager[str]:
    """The service with this model."""
    return served(advisor, Settings(data_dir=folder, model=ModelSettings(base_url=fake.url)))


@WAYS
def test_the_model_s_diagnosis_comes_with_citations_and_usage(ask: Way, advisor: Advisor, tmp_path: Path) -> None:
    with (
        FakeModel(forms=[electing(TITLE, because=SAID)]) as fake,
        written(advisor, fake, tmp_path) as url,
        connected(url) as client,
    ):
        got = ask(client, [user(QUESTION)])
    assert (got.answer["mode"], got.answer["model"]) == ("llm", NAME)
    assert got.answer["causes"][0]["case_id"] == CASE
    assert got.citations == got.answer["citations"] != []
    assert got.usage == (100, 1, 101)
    assert SAID in got.text
    assert CASE in [citation["id"] for citation in got.citations]


@WAYS
def test_a_model_that_is_down_costs_the_text_alone(ask: Way, advisor: Advisor, tmp_path: Path) -> None:
    with (
        FakeModel(forms=[failing(400, "no")]) as fake,
        written(advisor, fake, tmp_path) as url,
        connected(url) as client,
    ):
        got = ask(client, [user(QUESTION)])
    assert got.answer["mode"] == "deterministic"
    assert messages("failures.refused", "en") in got.answer["notices"][0]
    assert got.answer["answer"] in got.text
    assert got.answer["causes"][0]["case_id"] == CASE
    assert got.usage == (0, 0, 0)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_client_that_leaves_ends_the_models_work(stream: bool, advisor: Advisor, tmp_path: Path) -> None:
    async def scenario(fake: FakeModel, url: str) -> None:
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, timeout=20) as client:
            asking = asyncio.ensure_future(read(client) if stream else wait(client))
            await fake.until_held()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await fake.until_disconnected()

    with FakeModel(forms=[SILENT]) as fake, written(advisor, fake, tmp_path) as url:
        asyncio.run(scenario(fake, url))


async def wait(client: AsyncOpenAI) -> None:
    await client.chat.completions.create(model="trainmedic", messages=[user(QUESTION)])


async def read(client: AsyncOpenAI) -> None:
    async with await client.chat.completions.create(
        model="trainmedic", messages=[user(QUESTION)], stream=True
    ) as stream:
        async for _ in stream:
            pass
