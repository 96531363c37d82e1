"""The model's client against a server that does everything a server can do wrong."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any
from unittest.mock import ANY

import pytest
from pydantic import BaseModel, ConfigDict

from tests.every_case import every_case
from tests.fake_model import NAME, SILENT, FakeModel, Reply, Thought, failing, form
from tests.service.test_breaker import Clock
from trainmedic.kb.breaker import State
from trainmedic.service.llm.chat import ChatModel, Completion, Message, ModelError, ModelOptions, Piece
from trainmedic.service.llm.endpoint import BYTES_PER_TOKEN
from trainmedic.service.llm.errors import BREAKS

KEY = "sk-the-key-nobody-may-read"
ASKED = (Message(role="system", content="Be short."), Message(role="user", content="Why is the loss NaN?"))
SOON_S = 0.2
"""A limit that is meant to pass."""
REACHED_S = 1.0
"""One that is meant to pass after the request has reached the server."""
GOOD = Reply("The loss", " is NaN", " [1].")


class Colour(BaseModel):
    """A small form."""

    model_config = ConfigDict(extra="forbid")

    name: str
    depth: int


@asynccontextmanager
async def chat(base_url: str, clock: Callable[[], float] | None = None, **changes: Any) -> AsyncIterator[ChatModel]:
    values: dict[str, Any] = {"base_url": base_url, "api_key": KEY, "timeout_s": 20, "first_token_s": 20} | changes
    options = ModelOptions(**values)
    model = ChatModel(options) if clock is None else ChatModel(options, clock=clock)
    try:
        yield model
    finally:
        await model.aclose()


async def written(model: ChatModel, **how: Any) -> str:
    return (await streamed(model, **how))[-1].text


async def streamed(model: ChatModel, **how: Any) -> list[Piece | Completion]:
    """The pieces, then the whole."""
    async with aclosing(model.stream(ASKED, **how)) as pieces:
        return [piece async for piece in pieces]


async def filled(model: ChatModel) -> Colour:
    return await model.structured(ASKED, Colour, max_tokens=50)


async def failure(call: Awaitable[object]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await call
    return caught.value


def state_of(model: ChatModel) -> State:
    """The breaker's state, asked anew."""
    return model.state


Scenario = Callable[[ChatModel, FakeModel], Awaitable[None]]


def against(*script: Reply, fake: dict[str, Any] | None = None, **how: Any) -> Callable[[Scenario], Callable[[], None]]:
    """A test with a model whose server follows the script."""

    def decorated(then: Scenario) -> Callable[[], None]:
        async def scenario() -> None:
            with FakeModel(*script, **(fake or {})) as server:
                async with chat(server.url, **how) as model:
                    await then(model, server)

        return lambda: asyncio.run(scenario())

    return decorated


# --- what is written ------------------------------------------------------------------------------------------------


@against(GOOD)
async def test_a_text_comes_in_its_pieces_with_its_counts_and_its_end(model: ChatModel, server: FakeModel) -> None:
    *pieces, whole = await streamed(model, max_tokens=77)
    assert [piece.text for piece in pieces] == ["The loss", " is NaN", " [1]."]
    usage = {"prompt_tokens": 100, "completion_tokens": 3, "cached_tokens": 64}
    assert whole == Completion(text="The loss is NaN [1].", usage=usage)
    (asked,) = server.texts
    assert asked.body["messages"] == [{"role": m.role, "content": m.content} for m in ASKED]
    assert (asked.body["model"], asked.body["stream"], asked.body["temperature"]) == (NAME, True, 0.2)
    assert asked.body.get("max_tokens", asked.body.get("max_completion_tokens")) == 77
    assert asked.headers["authorization"] == f"Bearer {KEY}"


@against(GOOD, name="configured")
async def test_the_name_configured_is_used_and_nothing_is_listed_for_it(model: ChatModel, server: FakeModel) -> None:
    assert await model.name() == "configured"
    await written(model)
    assert [request.path for request in server.requests] == ["/v1/chat/completions"]
    assert server.texts[0].body["model"] == "configured"


@against(fake={"models": ("one", "two")})
async def test_the_name_that_is_listed_first_is_asked_for_once(model: ChatModel, server: FakeModel) -> None:
    assert [await model.name(), await model.name()] == ["one", "one"]
    assert [request.path for request in server.requests] == ["/v1/models"]


@against(Reply("The loss", finish="length"))
async def test_a_text_cut_by_the_limit_of_tokens_says_so(model: ChatModel, server: FakeModel) -> None:
    (*_, whole) = await streamed(model)
    assert whole == Completion(text="The loss", usage=ANY, cut=True)


@against(Reply("Let me look.", calls=[("look", {"at": 1}), ("look", "no arguments")]))
async def test_calls_of_tools_come_with_the_whole_and_malformed_ones_without_arguments(
    model: ChatModel, server: FakeModel
) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    (*_, whole) = await streamed(model, tools=[tool], tool_choice="none")
    assert isinstance(whole, Completion)
    assert [(call["name"], call["args"]) for call in whole.calls] == [("look", {"at": 1}), ("look", {})]
    assert (server.texts[0].body["tools"], server.texts[0].body["tool_choice"]) == ([tool], "none")


# --- every failure has a name ---------------------------------------------------------------------------------------

TOO_LONG = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
FAILURES = [
    ("slow", SILENT), ("slow", Reply("said", end="hold")), ("slow", failing(504)),
    ("refused", failing(401, f"Incorrect API key provided: {KEY}")),
    ("refused", failing(400, f"bad request with {KEY}")), ("refused", failing(422)), ("overloaded", failing(429)),
    ("overloaded", failing(503)), ("server_error", failing(500, f"Traceback … {KEY}")),
    ("server_error", Reply(raw=b'data: {"error": {"message": "the engine died", "code": 500}}\n\n')),
    ("cut", Reply("said", end="cut")), ("cut", Reply("said", end="unfinished")), ("absent", Reply(end="cut")),
    ("garbage", Reply()), ("garbage", Reply("", " \n")), ("garbage", Reply(raw=b"<html>Welcome to the proxy</html>")),
    ("garbage", Reply(raw=b"data: {not json\n\n")), ("garbage", Reply(raw=b"data: [1, 2]\n\n")),
    ("garbage", Reply(raw=b'data: {"choices": [{"text": "another protocol"}]}\n\ndata: [DONE]\n\n')),
    ("garbage", Reply(raw=b'data: {"answer": 42}\n\ndata: [DONE]\n\n')),
    ("unknown_model", failing(404, "The model `x` does not exist.")), ("too_long", failing(400, TOO_LONG)),
    ("too_long", Reply(raw=f'data: {{"error": {{"message": "{TOO_LONG}", "code": 400}}}}\n\n'.encode())),
]  # fmt: skip


@every_case(("kind", "reply"), FAILURES)
def test_whatever_goes_wrong_is_one_failure_with_its_name(kind: str, reply: Reply) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        await model.name()
        limits = {"within_s": SOON_S} if kind == "slow" else {}
        found = await failure(written(model, **limits))
        assert found.kind == kind
        text = "".join([str(found), repr(found), found.detail, *traceback.format_exception(found)])
        assert KEY not in text

    against(reply)(then)()


FORM_FAILURES = [
    ("garbage", form({"name": "red"})), ("garbage", form({"name": "red", "depth": "deep"})),
    ("garbage", form({"name": "red", "depth": 1, "more": True})), ("garbage", form(["red"])),
    ("garbage", Reply("red, I think")), ("garbage", Reply()), ("garbage", Reply('{"name": "re', finish="length")),
    ("garbage", Reply(raw=b"<html>")), ("garbage", Reply(raw=b'{"choices": []}')),
    ("garbage", Reply(raw=b'{"answer": 42}')), ("refused", failing(400, f"no grammar for {KEY}")),
    ("too_long", failing(400, TOO_LONG)), ("unknown_model", failing(404)), ("overloaded", failing(429)),
    ("server_error", failing(500)), ("absent", Reply(end="cut")),
]  # fmt: skip


@every_case(("kind", "reply"), FORM_FAILURES)
def test_a_form_that_is_not_filled_as_asked_is_the_same_failure(kind: str, reply: Reply) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        found = await failure(filled(model))
        assert found.kind == kind
        assert KEY not in "".join(traceback.format_exception(found))

    against(fake={"forms": [reply]})(then)()


@against(fake={"forms": [form({"name": "red", "depth": 3})]})
async def test_a_form_is_asked_for_by_its_schema_and_comes_filled(model: ChatModel, server: FakeModel) -> None:
    assert await filled(model) == Colour(name="red", depth=3)
    (asked,) = server.forms
    assert asked.body["response_format"]["type"] == "json_schema"
    schema = asked.body["response_format"]["json_schema"]
    assert schema["schema"]["additionalProperties"] is False
    assert (schema["name"], schema["strict"]) == ("Colour", True)


@against(fake={"forms": [SILENT]}, name=NAME)
async def test_a_form_that_takes_too_long_is_slow(model: ChatModel, server: FakeModel) -> None:
    call = model.structured(ASKED, Colour, max_tokens=50, within_s=REACHED_S)
    assert (await failure(call)).kind == "slow"
    await server.until_disconnected()


@every_case("url", ["localhost:8000", "http://\0/v1", "ftp://127.0.0.1/v1", "http://127.0.0.1:99999/v1"])
def test_an_address_that_is_none_is_a_failure_like_another(url: str) -> None:
    async def scenario() -> None:
        async with chat(url) as model:
            assert await model.probe() == "absent"
            assert (await failure(written(model))).kind == "absent"
            assert await model.count(["four"]) == [2]

    asyncio.run(scenario())


LISTS = [
    ("unknown_model", ()), ("unknown_model", Reply(raw=b'{"data": [{"id": null}, 3]}')),
    ("garbage", Reply(raw=b'{"data": null}')), ("garbage", Reply(raw=b"{}")), ("garbage", Reply(raw=b"[]")),
    ("garbage", Reply(raw=b"<html>")), ("refused", failing(401, KEY)), ("overloaded", failing(429)),
    ("server_error", failing(500)), ("absent", Reply(end="cut")),
]  # fmt: skip


@every_case(("kind", "models"), LISTS)
def test_a_list_of_models_that_is_none_is_found_by_the_probe(kind: str, models: Reply | Sequence[str]) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        assert await model.probe() == kind
        assert (await failure(model.name())).kind == kind

    against(fake={"models": models})(then)()


def test_the_probe_finds_nothing_wrong_with_the_model_that_is_served() -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        assert await model.probe() is None

    against()(then)()
    against(name=NAME)(then)()


@against(name="another")
async def test_the_probe_misses_a_model_that_is_not_served(model: ChatModel, server: FakeModel) -> None:
    assert await model.probe() == "unknown_model"


# --- a second try ---------------------------------------------------------------------------------------------------


@every_case("first", [failing(429), failing(500), failing(503), Reply(end="cut")])
def test_what_may_pass_is_tried_once_more_before_the_first_word(first: Reply) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        assert await written(model) == "The loss is NaN [1]."
        assert len(server.texts) == 2
        assert state_of(model) == "closed"

    against(first, GOOD)(then)()


@against(failing(500), failing(500), GOOD)
async def test_there_is_no_third_try(model: ChatModel, server: FakeModel) -> None:
    assert (await failure(written(model))).kind == "server_error"
    assert len(server.texts) == 2


@every_case("first", [Reply("said", end="cut"), failing(401), failing(404), Reply("")])
def test_what_would_go_wrong_again_or_was_heard_already_is_not_tried_again(first: Reply) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        await failure(written(model))
        assert len(server.texts) == 1

    against(first, GOOD)(then)()


@against(failing(500), GOOD)
async def test_there_is_no_second_try_without_time_for_one(model: ChatModel, server: FakeModel) -> None:
    await model.name()
    await failure(written(model, within_s=SOON_S / 2))
    assert len(server.texts) <= 1


# --- the circuit breaker --------------------------------------------------------------------------------------------


def test_after_three_failures_running_nobody_asks_until_a_trial_succeeds() -> None:
    clock = Clock()

    async def then(model: ChatModel, server: FakeModel) -> None:
        for _ in range(3):
            assert state_of(model) == "closed"
            assert (await failure(written(model))).kind == "server_error"
        asked = len(server.requests)
        assert state_of(model) == "open"
        assert (await failure(written(model))).kind == "open"
        assert (await failure(filled(model))).kind == "open"
        assert await model.count(["abc"]) == [1]
        assert len(server.requests) == asked
        clock.now += 30
        assert state_of(model) == "half_open"
        assert await written(model) == "The loss is NaN [1]."
        assert state_of(model) == "closed"

    against(*[failing(500)] * 6, GOOD, clock=clock)(then)()


def test_a_trial_that_is_given_up_does_not_shut_the_model_out_for_good() -> None:
    clock = Clock()

    async def then(model: ChatModel, server: FakeModel) -> None:
        holding = asyncio.ensure_future(written(model))
        await server.until_held()
        for _ in range(3):
            model._turns._breaker.failed(model._turns._breaker.admit())
        clock.now += 30
        waiting = asyncio.ensure_future(written(model))  # for the only slot
        await asyncio.sleep(0)
        for task in (waiting, holding):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert await written(model) == "The loss is NaN [1]."

    against(Reply("x", end="hold"), GOOD, clock=clock, concurrency=1)(then)()


@every_case("reply", [failing(400), failing(404), Reply(""), Reply(raw=b"<html>")])
def test_a_server_that_answers_at_all_is_asked_again(reply: Reply) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        for _ in range(4):
            assert (await failure(written(model))).kind not in BREAKS
        assert state_of(model) == "closed"

    against(reply)(then)()


# --- leaving --------------------------------------------------------------------------------------------------------


@against(Reply("The", " loss", end="hold"))
async def test_whoever_stops_reading_closes_the_connection(model: ChatModel, server: FakeModel) -> None:
    async with aclosing(model.stream(ASKED)) as pieces:
        async for _ in pieces:
            break
    await server.until_disconnected()
    assert state_of(model) == "closed"


@every_case("reply", [Reply("The", end="hold"), SILENT])
def test_whoever_is_cancelled_closes_the_connection_and_frees_the_slot(reply: Reply) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        for _ in range(4):  # more than would open the breaker
            task = asyncio.ensure_future(written(model))
            await server.until_held(len(server.texts) + 1)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert task.cancelled()
        await server.until_disconnected(4)
        assert state_of(model) == "closed"

    against(reply, concurrency=1)(then)()


@against(SILENT, first_token_s=REACHED_S)
async def test_a_text_that_comes_too_late_is_left_at_the_server(model: ChatModel, server: FakeModel) -> None:
    await model.name()
    assert (await failure(written(model))).kind == "slow"
    await server.until_disconnected()


# --- how many at once -----------------------------------------------------------------------------------------------


@against(Reply("yes", end="hold"), concurrency=2)
async def test_no_more_are_written_at_once_than_is_allowed(model: ChatModel, server: FakeModel) -> None:
    writing = [asyncio.ensure_future(written(model)) for _ in range(5)]
    await server.until_held(2)
    assert len(server.texts) == 2
    server.release()
    assert await asyncio.gather(*writing) == ["yes"] * 5
    assert len(server.texts) == 5


@against(Reply("yes", end="hold"), concurrency=1)
async def test_who_gets_no_slot_in_time_is_told_that_the_model_is_busy(model: ChatModel, server: FakeModel) -> None:
    writing = asyncio.ensure_future(written(model))
    await server.until_held()
    for _ in range(4):
        assert (await failure(written(model, within_s=SOON_S / 4))).kind == "busy"
    assert state_of(model) == "closed"
    server.release()
    assert await writing == "yes"


# --- counting -------------------------------------------------------------------------------------------------------


@against(fake={"tokenize": lambda text: len(text.split())})
async def test_tokens_are_counted_by_the_endpoint_and_each_text_once(model: ChatModel, server: FakeModel) -> None:
    assert await model.count(["one two", "", "one", "one two"]) == [2, 0, 1, 2]
    assert await model.count(["one", "three four five"]) == [1, 3]
    assert sorted(server.counted) == ["", "one", "one two", "three four five"]
    asked = next(request for request in server.requests if request.path == "/tokenize")
    assert asked.body == {"model": NAME, "prompt": asked.body["prompt"], "add_special_tokens": False}


@every_case(
    "tokenize",
    [None, failing(500), failing(401), Reply(raw=b"[]"), Reply(raw=b"{}"), Reply(raw=b"<"), Reply(end="cut")],
)
def test_where_the_endpoint_cannot_count_tokens_are_estimated_and_it_is_left_alone_a_while(
    tokenize: Reply | None,
) -> None:
    clock = Clock()
    texts = ["four", "第 35 步开始 loss 一直是 nan", ""]

    async def then(model: ChatModel, server: FakeModel) -> None:
        estimates = [-(-len(text.encode()) // BYTES_PER_TOKEN) for text in texts]
        assert await model.count(texts) == estimates
        asked = len(server.counted)
        assert await model.count(texts) == estimates
        assert len(server.counted) == asked
        clock.now += 30
        await model.count(texts)
        assert len(server.counted) > asked
        assert state_of(model) == "closed"

    against(fake={"tokenize": tokenize}, clock=clock)(then)()


# --- tracing --------------------------------------------------------------------------------------------------------


# --- thinking aloud -------------------------------------------------------------------------------------------------

THOUGHT = (Thought("Hm. "), Thought("Let me see. "))
VLLM = {"id": NAME, "owned_by": "vllm", "max_model_len": 4096}
FIELD = "chat_template_kwargs"


@every_case(
    "reply",
    [
        Reply("<th", "ink>Hm.</thi", "nk>\n\n", "It", " overflows."),
        Reply(*THOUGHT, "It", " overflows."),
        Reply("It overflows.<think>And", " so on", finish="length"),
    ],
)
def test_what_is_thought_aloud_never_shows(reply: Reply) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        assert await written(model) == "It overflows."

    against(reply)(then)()


@every_case("reply", [Reply("<think>Hm, ", "well", finish="length"), Reply(*THOUGHT)])
def test_a_text_that_is_nothing_but_thought_is_none(reply: Reply) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        assert (await failure(written(model))).kind == "garbage"

    against(reply)(then)()


@against(Reply("Hm. ", "So:</think>", "It overflows."))
async def test_text_before_a_block_that_only_ends_is_taken_back_and_the_next_such_text_waits(
    model: ChatModel, server: FakeModel
) -> None:
    *pieces, whole = await streamed(model)
    (at,) = [n for n, piece in enumerate(pieces) if isinstance(piece, Piece) and piece.anew]
    assert "".join(piece.text for piece in pieces[at:]) == whole.text == "It overflows."
    assert await written(model) == "It overflows."


@every_case("template", ["<think>\n", "<think>\n\n</think>\n\n", ""])
def test_where_the_template_opens_the_block_not_a_word_of_it_shows(template: str) -> None:
    opened = template == "<think>\n"

    async def then(model: ChatModel, server: FakeModel) -> None:
        await model.limits()
        *pieces, whole = await streamed(model)
        assert any(piece.anew for piece in pieces if isinstance(piece, Piece)) != opened
        assert "".join(piece.text for piece in pieces) == ("Done." if opened else "Hm.Done.")
        assert whole.text == "Done."

    against(Reply("Hm.", "</think>Done."), fake={"models": [VLLM], "template": template})(then)()


def test_thinking_counts_as_a_sign_of_life() -> None:
    slow = Reply(*[Thought("Hm. ")] * 6, "It overflows.", between_s=SOON_S)

    async def then(model: ChatModel, server: FakeModel) -> None:
        assert await written(model) == "It overflows."

    against(slow, name=NAME, first_token_s=3 * SOON_S)(then)()


@against(GOOD, fake={"forms": [form({"name": "red", "depth": 3})]})
async def test_templates_are_asked_for_no_thought(model: ChatModel, server: FakeModel) -> None:
    await written(model)
    await filled(model)
    assert [each.body[FIELD] for each in (*server.texts, *server.forms)] == [{"enable_thinking": False}] * 2


@against(GOOD, fake={"refused": FIELD, "forms": [form({"name": "red", "depth": 3})]})
async def test_an_endpoint_that_refuses_the_field_is_asked_without_it_and_never_with_it_again(
    model: ChatModel, server: FakeModel
) -> None:
    for _ in range(2):
        assert await written(model) == "The loss is NaN [1]."
    assert await filled(model) == Colour(name="red", depth=3)
    asked = [FIELD in each.body for each in server.requests if each.path.endswith("completions")]
    assert asked == [True, False, False, False]


@against(failing(400), failing(400), GOOD, failing(422))
async def test_what_is_refused_in_either_form_is_refused_and_decides_nothing(
    model: ChatModel, server: FakeModel
) -> None:
    assert (await failure(written(model))).kind == "refused"
    assert [FIELD in each.body for each in server.texts] == [True, False]
    assert await written(model) == "The loss is NaN [1]."
    assert (await failure(written(model))).kind == "refused"
    assert [FIELD in each.body for each in server.texts[2:]] == [True, True]


# --- how much room there is -----------------------------------------------------------------------------------------


@every_case(
    ("listed", "name", "context", "most"),
    [
        ([VLLM], "", 4096, 1024), ([VLLM], NAME, 4096, 1024), ([{**VLLM, "max_model_len": 2048}], "", 2048, 512),
        ([{**VLLM, "max_model_len": 32_768}], "", 8192, 2_000), ([{**VLLM, "max_model_len": None}], "", 8192, 2_000),
        ([{"id": "adapter", "parent": NAME, "max_model_len": None}, VLLM], "adapter", 4096, 1024),
        ([VLLM], "another", 8192, 2_000), ([NAME], "", 8192, 2_000), (failing(500), "", 8192, 2_000),
        (Reply(raw=b"<html>"), NAME, 8192, 2_000),
    ],
)  # fmt: skip
def test_the_smaller_of_the_settings_and_what_is_served_is_the_room(
    listed: Any, name: str, context: int, most: int
) -> None:
    async def then(model: ChatModel, server: FakeModel) -> None:
        for _ in range(3):
            limits = await model.limits()
            assert (limits.context_tokens, limits.max_tokens) == (context, most)
        assert len([each for each in server.requests if each.path == "/v1/models"]) == 1

    against(fake={"models": listed}, name=name)(then)()


def test_a_server_that_comes_later_is_asked_for_its_room_then() -> None:
    clock = Clock()

    async def then(model: ChatModel, server: FakeModel) -> None:
        server.listing = failing(500)
        assert (await model.limits()).context_tokens == 8192
        server.listing = (VLLM,)
        assert (await model.limits()).context_tokens == 8192
        clock.now += 30
        assert (await model.limits()).context_tokens == 4096

    against(clock=clock)(then)()


@against(GOOD)
async def test_warming_up_asks_for_one_token_and_learns_what_a_question_needs(
    model: ChatModel, server: FakeModel
) -> None:
    await model.warm(ASKED[:1])
    (asked,) = server.texts
    assert asked.body.get("max_tokens", asked.body.get("max_completion_tokens")) == 1
    before = len(server.requests)
    await model.limits()
    await model.count([ASKED[0].content])
    assert len(server.requests) == before
    assert state_of(model) == "closed"


def test_warming_up_a_model_that_is_not_there_is_no_failure() -> None:
    async def scenario() -> None:
        with FakeModel() as gone:
            url = gone.url
        async with chat(url) as model:
            await model.warm(ASKED)

    asyncio.run(scenario())
