"""Many people on the pages at once, over real sockets: nobody waits for another, nobody sees another's question."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from trainmedic.service.access.slots import Worker
from trainmedic.service.advisor import Advisor
from trainmedic.service.answer.assemble import assemble
from trainmedic.service.answer.schema import Section
from trainmedic.service.answering import Delta, Draft, Executor, Parts
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.settings import Settings
from trainmedic.ui.context import AppContext

pytest.importorskip("gradio", reason="the pages need the extra 'serve'")

import httpx
import uvicorn

from trainmedic.ui.chat.pages import make_pages

TABS = 4
USERS = ("/", "/zh/")
PATIENCE_S = 60.0


class Together:
    """Writes no text before ``count`` questions are being answered at the same time."""

    def __init__(self, advisor: Advisor, count: int) -> None:
        self._advisor = advisor
        self._all = asyncio.Barrier(count)

    async def stream(self, request: Ask, trace_id: str, run: Executor) -> Parts:
        """See the class."""
        prepared = await run(lambda: self._advisor.prepare(request, trace_id))
        yield Draft(answer=assemble(prepared), sources=prepared.context.evidence.sources)
        await self._all.wait()
        text = f"The answer to: {request.question}"
        yield Delta("model_text", text)
        answer = replace(assemble(prepared), answer=text, sections=(Section(kind="model_text", body=text),))
        await run(lambda: self._advisor.memory.remember(prepared.asked, answer))
        yield answer


@asynccontextmanager
async def serving(advisor: Advisor, answerer: Together) -> AsyncIterator[str]:
    """The pages on a port of loopback, until the end."""
    settings = Settings()
    run = Worker(settings.concurrency, PATIENCE_S).run
    context = AppContext(settings=settings, advisor=advisor, answerer=answerer, executor=run)
    # Made here and not in a thread, where the framework would make an event loop and leave it open.
    app = make_pages(context)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


async def submit_of(client: httpx.AsyncClient, path: str) -> int:
    """The number of the event that sends a question."""
    config = (await client.get(f"{path}config")).json()
    box = next(each["id"] for each in config["components"] if each["props"].get("elem_id") == "tm-question")
    events = (each["id"] for each in config["dependencies"] if [box, "submit"] in each["targets"])
    return int(next(events))


async def asked(client: httpx.AsyncClient, path: str, event: int, tab: str, question: str) -> str:
    """Everything that one tab is sent about its question."""
    body = {"data": [{"text": question, "files": []}, None, ""], "fn_index": event, "session_hash": tab}
    joined = await client.post(f"{path}gradio_api/queue/join", json=body)
    assert joined.status_code == 200, joined.text
    got: list[str] = []
    async with client.stream("GET", f"{path}gradio_api/queue/data", params={"session_hash": tab}) as stream:
        async for line in stream.aiter_lines():
            got.append(line)
            message = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
            if message.get("msg") == "process_completed":
                assert message["success"], message
                break
    return "\n".join(got)


async def crowd(advisor: Advisor) -> dict[str, str]:
    """What each tab was sent, by the word that only its question has."""
    async with (
        asyncio.timeout(PATIENCE_S),
        serving(advisor, Together(advisor, TABS * len(USERS))) as url,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as first,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as second,
    ):
        calls: dict[str, Coroutine[None, None, str]] = {}
        for client, path in zip((first, second), USERS, strict=True):
            event = await submit_of(client, path)
            for number in range(TABS):
                word = f"run{len(calls)}x"
                question = f"KTO loss is nan in {word}, why?"
                calls[word] = asked(client, path, event, f"tab{path.strip('/')}{number}", question)
        return dict(zip(calls, await asyncio.gather(*calls.values()), strict=True))


def test_many_questions_of_two_users_are_answered_at_once_and_none_is_mixed_up(advisor: Advisor) -> None:
    shown = asyncio.run(crowd(advisor))
    assert len(shown) == TABS * len(USERS)
    for word, text in shown.items():
        assert set(re.findall(r"run\d+x", text)) == {word}
        assert f"The answer to: KTO loss is nan in {word}, why?" in text
    ids = [set(re.findall(r'data-answer=\\"([0-9a-f-]+)', text)) for text in shown.values()]
    assert [len(each) for each in ids] == [1] * len(shown)
    assert len(set[str]().union(*ids)) == len(shown)
