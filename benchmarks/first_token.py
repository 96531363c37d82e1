"""Time to the first token through our prompt and `ChatModel`, against raw HTTP streaming of the same messages.

    python -m benchmarks.first_token URL       a running endpoint, including /v1
    python -m benchmarks.first_token --tiny    the real vLLM server on CPU with random weights, as in `make test-vllm`

Ours: the prompt is built (its tokens counted by the endpoint if its size does not show that it fits), then streamed
through langchain-openai. Raw: the same messages through the standard library's client over one open connection. Both
find the prompt in the server's prefix cache, because it was sent once before; which of the two comes first alternates.
No question repeats, and retrieval is part of neither.
Budget: 10 ms added (the difference of the medians). Exit code 1 if it is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from benchmarks.ask import CHINESE, ENGLISH, config, log, questions
from benchmarks.table import Row, Table
from trainmedic.kb.model.place import Attachment
from trainmedic.service.advisor import Advisor
from trainmedic.service.dialogue.request import Ask
from trainmedic.service.llm.chat import ChatModel, Message, ModelOptions
from trainmedic.service.llm.prompts import build
from trainmedic.service.pipeline import Draft
from trainmedic.service.settings import Settings
from trainmedic.ui.app import build_advisor

BUDGET_MS = 10.0
ROUNDS = 2
WARM_UP = 6
MEASURED = 30
"""Questions needed for meaningful medians."""
WRITTEN = 16
"""Tokens generated for each question."""


class Raw:
    """A minimal client of the chat endpoint."""

    def __init__(self, base_url: str, name: str, temperature: float) -> None:
        place = urlsplit(base_url)
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(place.netloc, timeout=120)
        self._path = f"{place.path.rstrip('/')}/chat/completions"
        self._fixed = {"model": name, "temperature": temperature, "stream": True}

    def first(self, messages: Sequence[Message], max_tokens: int) -> float:
        """Milliseconds to the first text; reads the rest too. Raises `RuntimeError` if there is no text."""
        payload = [{"role": message.role, "content": message.content} for message in messages]
        body = json.dumps({**self._fixed, "messages": payload, "max_tokens": max_tokens}).encode()
        started = time.perf_counter()
        self._connection.request("POST", self._path, body, {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        duration = None
        for line in response:
            if duration is None and line.startswith(b"data: {"):
                choices = json.loads(line[6:])["choices"]
                if choices and choices[0]["delta"].get("content"):
                    duration = (time.perf_counter() - started) * 1000
        if duration is None:
            raise RuntimeError(f"no text came: status {response.status}")
        return duration


class Comparison:
    """Our client and the raw one, timed alternately."""

    def __init__(self, options: ModelOptions, name: str) -> None:
        self.options = options
        self.ours, self.planning = ChatModel(options), ChatModel(options)
        self.raw = Raw(options.base_url, name, options.temperature)
        self.built: list[float] = []
        self.first: list[float] = []
        self.plain: list[float] = []

    async def messages(self, prepared: Draft, model: ChatModel) -> tuple[Message, ...]:
        """The prompt within the settings' own limits."""
        options = self.options
        prompt = await build(
            prepared, model.count, context_tokens=options.context_tokens, max_tokens=options.max_tokens
        )
        return prompt.messages

    async def question(self, prepared: Draft, number: int) -> None:
        messages = await self.messages(prepared, self.planning)
        self.raw.first(messages, 1)
        if number % 2:
            self.plain.append(self.raw.first(messages, WRITTEN))
        await self.timed(prepared)
        if not number % 2:
            self.plain.append(self.raw.first(messages, WRITTEN))

    async def timed(self, prepared: Draft) -> None:
        """Time ours, from the finished retrieval to the first text; reads the rest too."""
        started = time.perf_counter()
        messages = await self.messages(prepared, self.ours)
        self.built.append((time.perf_counter() - started) * 1000)
        waiting = True
        async with aclosing(self.ours.stream(messages, max_tokens=WRITTEN)) as pieces:
            async for piece in pieces:
                if waiting and piece.text:
                    self.first.append((time.perf_counter() - started) * 1000)
                    waiting = False

    def forget(self) -> None:
        for values in (self.built, self.first, self.plain):
            values.clear()

    async def aclose(self) -> None:
        await self.ours.aclose()
        await self.planning.aclose()

    def table(self) -> Table:
        table = Table(f"time to the first token, {len(self.plain)} questions, prompt in the prefix cache")
        table.add("raw HTTP", self.plain, "ms")
        table.add("prompt built and ChatModel", self.first, "ms")
        table.add("of that, building the prompt", self.built, "ms")
        added = [ours - plain for ours, plain in zip(self.first, self.plain, strict=True)]
        judged = statistics.median(self.first) - statistics.median(self.plain)
        table.rows.append(Row(what="added", values=added, unit="ms", budget=BUDGET_MS, judged=judged))
        return table


def prepare(advisor: Advisor) -> list[Draft]:
    """Questions that the model would answer, every second one with a configuration and a log."""
    prompts = []
    for turn in range(ROUNDS):
        for number, question in enumerate(questions((*ENGLISH, *CHINESE), turn + 1)):
            files = (("train.sh", config(number)), ("train.log", log(number))) if number % 2 else ()
            attachments = tuple(Attachment(name=name, content=text.encode()) for name, text in files)
            prepared = advisor.prepare(Ask(question=question, attachments=attachments))
            if prepared.diagnosis.causes:
                prompts.append(prepared)
    return prompts


async def measure(base_url: str) -> Table:
    """Raises `RuntimeError` if too few questions have an answer."""
    with TemporaryDirectory() as folder:
        prompts = prepare(build_advisor(Settings(data_dir=Path(folder)), with_history=False))
    if len(prompts) < WARM_UP + MEASURED:
        raise RuntimeError(f"only {len(prompts)} of the questions have an answer")
    options = ModelOptions(base_url=base_url)
    lister = ChatModel(options)
    name = await lister.name()
    await lister.aclose()
    comparison = Comparison(options, name)
    for number, prepared in enumerate(prompts):
        if number == WARM_UP:
            comparison.forget()
        await comparison.question(prepared, number)
    await comparison.aclose()
    return comparison.table()


@contextmanager
def endpoint(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    from tests.vllm import tiny
    from tests.vllm.server import NAME, running

    with TemporaryDirectory() as folder:
        place = Path(folder)
        with running(tiny.make(place / NAME), place / "vllm.log") as server:
            yield f"{server.url}/v1"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_token")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("url", nargs="?", help="an endpoint, including /v1")
    which.add_argument("--tiny", action="store_true", help="start the real vLLM server on CPU with random weights")
    options = parser.parse_args(argv)
    with endpoint(options.url) as url:
        return asyncio.run(measure(url)).print()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
