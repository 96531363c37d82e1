"""The service beside a real vLLM server: as users start it, or its application in this process on a real socket."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from tests.live import Live
from tests.openai_app import openai_app
from tests.vllm.server import HOST, free_port
from trainmedic.service.advisor import Advisor
from trainmedic.service.diagnosis.assistant import Assistant
from trainmedic.service.settings import Settings
from trainmedic.ui.app import build_model

START_LIMIT_S = 90.0
SERVE = "import sys; from trainmedic.ui.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event, and when it came (seconds, `time.monotonic`)."""

    name: str
    data: Any
    at: float


@contextmanager
def serving(data_dir: Path, log: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """``trainmedic serve`` in a process of its own; its address. Raises `RuntimeError` where it never is ready."""
    port = free_port()
    given = {f"TRAINMEDIC_{name.upper()}": value for name, value in {**settings, "data_dir": str(data_dir)}.items()}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, "serve", "--port", str(port)],
            env={**os.environ, **given},
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        until = time.monotonic() + START_LIMIT_S
        while process.poll() is None and time.monotonic() < until:
            try:
                socket.create_connection((HOST, port), timeout=0.2).close()
                break
            except OSError:
                time.sleep(0.05)
        else:
            raise RuntimeError(f"the service did not start:\n{log.read_text(encoding='utf-8', errors='replace')}")
        yield f"http://{HOST}:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def served(advisor: Advisor, settings: Settings) -> Iterator[str]:
    """The application over this advisor, with the model of the settings if any, on a free port; its address."""
    model = build_model(settings) if settings.model.base_url else None
    assistant, probes = (Assistant(advisor, model), {"model": model.probe}) if model else (None, {})
    app = openai_app(advisor, settings, assistant, probes=probes)
    usual = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(started: FastAPI) -> AsyncIterator[None]:
        async with usual(started):
            yield
        if model is not None:
            await model.aclose()

    app.router.lifespan_context = lifespan
    with Live(app) as live:
        yield live.url


def events(response: httpx.Response) -> Iterator[Event]:
    """The events of a stream as they come."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield Event(name, json.loads(line.removeprefix("data: ")), time.monotonic())
