"""`service.llm.chat.ChatModel` against the real vLLM server: what is promised of an endpoint holds for this one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import BaseModel, ConfigDict, Field
from tokenizers import Tokenizer

from tests.vllm import tiny
from tests.vllm.server import HOST, KEY, NAME, RUNNING, WRITTEN, Server, metrics
from trainmedic.service.llm.chat import ChatModel, Completion, Message, ModelError, ModelOptions, Piece

T = TypeVar("T")
LONG = 6_000
"""Tokens that take the tiny model some seconds."""
PATIENCE_S = 30.0
CASES = "Sources: " + "the loss of a preference run is nan because the batch has one class only; " * 40


class Verdict(BaseModel):
    """A form with all that a grammar must get right, every part of it bounded."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["answered", "need_input", "not_in_kb"]
    title: Annotated[str, Field(pattern="^[a-z ]{1,12}$")]
    score: Annotated[int, Field(ge=0, le=99)]
    sure: bool
    markers: Annotated[list[Annotated[str, Field(pattern="^[a-z]{1,6}$")]], Field(min_length=1, max_length=3)]


class Numbers(BaseModel):
    """A form that takes long to fill."""

    model_config = ConfigDict(extra="forbid")

    words: Annotated[list[Literal["loss", "norm"]], Field(min_length=3_000, max_length=3_000)]


class Clock:
    """The real one, with time that can be skipped."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.skipped


@asynccontextmanager
async def chat(
    url: str,
    *,
    name: str = "",
    key: str = "",
    temperature: float = 0.0,
    concurrency: int = 32,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[ChatModel]:
    options = ModelOptions(
        base_url=f"{url}/v1",
        name=name,
        api_key=key,
        temperature=temperature,
        timeout_s=2 * PATIENCE_S,
        first_token_s=PATIENCE_S,
        concurrency=concurrency,
    )
    model = ChatModel(options, clock=clock)
    try:
        yield model
    finally:
        await model.aclose()


def asked(text: str, system: str = "Answer from the sources.") -> tuple[Message, ...]:
    return (Message(role="system", content=system), Message(role="user", content=text))


async def streamed(
    model: ChatModel, text: str, *, system: str = CASES, max_tokens: int = 48
) -> tuple[list[Piece], Completion]:
    async with aclosing(model.stream(asked(text, system), max_tokens=max_tokens)) as items:
        got = [item async for item in items]
    pieces, (whole,) = ([i for i in got if isinstance(i, Piece)], [i for i in got if isinstance(i, Completion)])
    assert "".join(piece.text for piece in pieces) == whole.text
    return pieces, whole


async def written(model: ChatModel, text: str, *, system: str = CASES, max_tokens: int = 48) -> Completion:
    return (await streamed(model, text, system=system, max_tokens=max_tokens))[-1]


async def idle(url: str) -> dict[str, float]:
    """The metrics once nothing is being written any more."""
    async with asyncio.timeout(PATIENCE_S):
        while (found := await asyncio.to_thread(metrics, url))[RUNNING]:
            await asyncio.sleep(0.02)
    return found


async def busy(url: str) -> None:
    """Until something is being written."""
    async with asyncio.timeout(PATIENCE_S):
        while not (await asyncio.to_thread(metrics, url))[RUNNING]:
            await asyncio.sleep(0.02)


def state_of(model: ChatModel) -> str:
    """The breaker's state, asked anew."""
    return model.state


async def failure_of(call: Awaitable[object]) -> str:
    with pytest.raises(ModelError) as caught:
        await call
    return caught.value.kind


# --- what it writes -------------------------------------------------------------------------------------------------


def test_the_name_is_the_one_that_the_endpoint_lists(vllm_url: str) -> None:
    async def scenario() -> None:
        async with chat(vllm_url) as model:
            assert await model.name() == NAME
            assert await model.probe() is None
            assert state_of(model) == "closed"

    asyncio.run(scenario())


def test_the_streamed_text_is_the_unstreamed_one(vllm_url: str) -> None:
    async def scenario() -> None:
        async with chat(vllm_url) as model:
            pieces, answer = await streamed(model, "why is the loss nan?")
        assert len(pieces) > 4
        assert answer.cut
        assert answer.usage["completion_tokens"] == 48
        messages = [{"role": m.role, "content": m.content} for m in asked("why is the loss nan?", CASES)]
        body = {"model": NAME, "messages": messages, "temperature": 0.0, "max_tokens": 48}
        whole = httpx.post(f"{vllm_url}/v1/chat/completions", json=body, timeout=PATIENCE_S).raise_for_status().json()
        # Whitespace before an answer is not shown, and on some processors this model begins with some.
        assert answer.text == whole["choices"][0]["message"]["content"].lstrip()
        assert answer.usage["prompt_tokens"] == whole["usage"]["prompt_tokens"]

    asyncio.run(scenario())


def test_questions_over_the_same_sources_share_the_prefix_cache(vllm_url: str) -> None:
    system = f"These sources nobody has sent before, at {time.time_ns()}. {CASES}"

    async def scenario() -> None:
        async with chat(vllm_url) as model:
            first = (await written(model, "why is the loss nan?", system=system, max_tokens=2)).usage
            second = (await written(model, "the gradient norm grows", system=system, max_tokens=2)).usage
        assert first["cached_tokens"] == 0
        assert second["cached_tokens"] > 0.8 * second["prompt_tokens"]

    asyncio.run(scenario())


def test_no_more_texts_are_written_at_once_than_is_allowed(vllm_url: str) -> None:
    async def scenario() -> None:
        seen: list[float] = []
        async with chat(vllm_url, concurrency=2) as model:
            writing = asyncio.gather(*(written(model, f"question {n}", max_tokens=400) for n in range(16)))
            while not writing.done():
                seen.append((await asyncio.to_thread(metrics, vllm_url))[RUNNING])
            await writing
        assert 1 <= max(seen) <= 2

    asyncio.run(scenario())


# --- forms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "max_tokens"), [(Verdict, 200)])
def test_a_form_is_filled_every_time_even_by_random_weights(
    form: type[BaseModel], max_tokens: int, vllm_url: str
) -> None:
    async def scenario() -> None:
        async with chat(vllm_url, temperature=1.0) as model:
            calls = (model.structured(asked(f"question {n}"), form, max_tokens=max_tokens) for n in range(20))
            filled = await asyncio.gather(*calls)
        assert len(filled) == 20
        assert all(isinstance(each, form) for each in filled)
        assert len({each.model_dump_json() for each in filled}) > 1

    asyncio.run(scenario())


def test_a_form_cut_by_the_limit_is_garbage_and_no_exception_of_the_client(vllm_url: str) -> None:
    async def scenario() -> None:
        async with chat(vllm_url) as model:
            assert await failure_of(model.structured(asked("count"), Numbers, max_tokens=20)) == "garbage"
            assert state_of(model) == "closed"

    asyncio.run(scenario())


# --- counting -------------------------------------------------------------------------------------------------------


def test_tokens_are_counted_as_the_endpoint_counts_them(vllm_url: str, vllm_model: Path) -> None:
    texts = [
        "",
        "why is the loss nan?",
        "第 35 步开始 loss 一直是 nan",
        "--micro_train_batch_size 1 \\\n" * 30,
        "<|im_start|>",
    ]
    tokenizer = Tokenizer.from_file(str(vllm_model / "tokenizer.json"))

    async def scenario() -> None:
        async with chat(vllm_url) as model:
            counted = await model.count(texts)
            again = await model.count(texts[::-1])
        assert counted == [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]
        assert again == counted[::-1]
        for text, number in zip(texts, counted, strict=True):
            body = {"model": NAME, "prompt": text, "add_special_tokens": False}
            assert httpx.post(f"{vllm_url}/tokenize", json=body).json()["count"] == number

    asyncio.run(scenario())


# --- giving up ------------------------------------------------------------------------------------------------------


async def stop_reading(model: ChatModel) -> None:
    """A reader that leaves after the first words."""
    async with aclosing(model.stream(asked("why?"), max_tokens=LONG)) as pieces:
        async for piece in pieces:
            if piece.text:
                return


async def cancel_reader(model: ChatModel) -> None:
    """A reader whose task is cancelled, as when the browser is closed."""
    heard = asyncio.Event()

    async def read() -> None:
        async with aclosing(model.stream(asked("why?"), max_tokens=LONG)) as pieces:
            async for _ in pieces:
                heard.set()

    await cancelled(read(), heard.wait())


async def cancel_form(model: ChatModel) -> None:
    """The same while a form is filled."""
    call = model.structured(asked("count"), Numbers, max_tokens=LONG)
    await cancelled(call, busy(model.options.base_url.removesuffix("/v1")))


async def cancelled(call: Awaitable[object], begun: Awaitable[object]) -> None:
    """Start the call and cancel it once it has begun."""
    task = asyncio.ensure_future(call)
    await begun
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.parametrize("leave", [stop_reading, cancel_reader, cancel_form])
def test_whoever_stops_reading_stops_the_generation(
    leave: Callable[[ChatModel], Awaitable[None]], vllm_url: str
) -> None:
    async def scenario() -> None:
        before = await idle(vllm_url)
        async with chat(vllm_url, concurrency=1) as model:
            await leave(model)
            after = await idle(vllm_url)
            assert after[WRITTEN] - before[WRITTEN] < LONG / 2
            await asyncio.sleep(0.2)
            assert (await idle(vllm_url))[WRITTEN] == after[WRITTEN]
            assert state_of(model) == "closed"
            assert (await written(model, "and now?", max_tokens=4)).text  # the slot is free again

    asyncio.run(scenario())


# --- refusals -------------------------------------------------------------------------------------------------------


def test_a_prompt_beyond_the_context_is_said_to_be_too_long(vllm_url: str) -> None:
    text = "loss " * (2 * tiny.CONTEXT)

    async def scenario() -> None:
        async with chat(vllm_url) as model:
            assert await failure_of(written(model, text)) == "too_long"
            assert await failure_of(model.structured(asked(text), Verdict, max_tokens=50)) == "too_long"
            assert state_of(model) == "closed"

    asyncio.run(scenario())


def test_a_model_that_the_endpoint_does_not_have_is_said_to_be_unknown(vllm_url: str) -> None:
    async def scenario() -> None:
        async with chat(vllm_url, name="larger") as model:
            assert await model.probe() == "unknown_model"
            assert await failure_of(written(model, "why?")) == "unknown_model"
            assert await failure_of(model.structured(asked("why?"), Verdict, max_tokens=50)) == "unknown_model"
            assert state_of(model) == "closed"

    asyncio.run(scenario())


# --- a server that goes away ----------------------------------------------------------------------------------------


@asynccontextmanager
async def standing_in(place: str, real: str) -> AsyncIterator[None]:
    """Another server's answers at the address of one that is gone: as if it had come back."""

    served: set[asyncio.Task[None]] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while chunk := await reader.read(65_536):
                writer.write(chunk)
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def both_ways(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(HOST, urlsplit(real).port)
        await asyncio.gather(copy(reader, back), copy(there, writer))

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.ensure_future(both_ways(reader, writer)))

    async with await asyncio.start_server(serve, HOST, urlsplit(place).port):
        yield
        await asyncio.gather(*served)


async def read_until_death(model: ChatModel, server: Server) -> None:
    """Read from a server that is killed once it has said something."""
    said = ""
    async with aclosing(model.stream(asked("why?"), max_tokens=LONG)) as pieces:
        async for piece in pieces:
            said += piece.text
            if len(said) > 20 and server.process.poll() is None:
                await asyncio.to_thread(server.kill)


def test_a_server_that_dies_is_left_alone_and_found_again(vllm_url: str, vllm_doomed: Server) -> None:
    async def scenario(server: Server) -> None:
        clock = Clock()
        async with chat(server.url) as stranger:
            assert await stranger.probe() == "refused"
            assert await failure_of(stranger.name()) == "refused"
        async with chat(server.url, key=KEY, clock=clock) as model:
            assert (await written(model, "why?")).text
            assert await failure_of(read_until_death(model, server)) == "cut"
            assert server.process.poll() is not None
            assert state_of(model) == "closed"
            assert await failure_of(written(model, "why?")) == "absent"
            assert await failure_of(model.structured(asked("why?"), Verdict, max_tokens=50)) == "absent"
            assert state_of(model) == "open"
            assert await failure_of(written(model, "why?")) == "open"
            assert await model.probe() == "absent"
            clock.skipped = 31.0
            assert state_of(model) == "half_open"
            assert await failure_of(written(model, "why?")) == "absent"
            assert state_of(model) == "open"
            clock.skipped = 62.0
            async with standing_in(server.url, vllm_url):
                assert (await written(model, "why?")).text
                assert state_of(model) == "closed"
                await model.aclose()

    asyncio.run(scenario(vllm_doomed))
